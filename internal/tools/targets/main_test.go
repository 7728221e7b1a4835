package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An error on one target is found there and on no other target.
func TestCheck(t *testing.T) {
	if testing.Short() {
		t.Skip("loads the standard library for each target")
	}
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"go.mod":          "module example.com/m\n\ngo 1.26\n",
		"m.go":            "package m\n\nimport \"os\"\n\nfunc F() *os.File { return os.Stdin }\n",
		"m_windows.go":    "package m\n\nfunc g() int { return undefined }\n",
		"m_386.go":        "package m\n\nconst tooLarge int = 1 << 40\n",
		"m_js.go":         "package m\n\nfunc bodyless()\n",
		"broken/a_arm.go": "package broken\n\nfunc {\n",
		"broken/a.go":     "package broken\n",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for target, want := range map[string]string{
		"linux/amd64":   "",
		"windows/amd64": "undefined: undefined",
		"linux/386":     "cannot use 1 << 40",
		"js/wasm":       "bodyless has no body",
		"linux/arm":     "expected 'IDENT'",
		"linux":         "want a system and a processor",
		"linux/none":    "want a system and a processor",
	} {
		list := check(target)
		switch {
		case want == "" && len(list) > 0:
			t.Errorf("%s: %v", target, list)
		case want != "" && (len(list) != 1 || !strings.Contains(list[0].Error(), want)):
			t.Errorf("%s: %v, want %q alone", target, list, want)
		}
	}
}
