package main

import (
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What the pages give to copy is pasted into files and run: Go here, PyTorch by examples/torch/check.py, for which the
// files are left in the directory ATTN_PIECES.
func TestAlone(t *testing.T) {
	b := built(t)
	piece := regexp.MustCompile(`(?s)<template class="alone" data-name="([\w.-]+)">(.*?)</template>`)
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir, pieces := t.TempDir(), os.Getenv("ATTN_PIECES")
	if pieces == "" {
		pieces = t.TempDir()
	}
	count := map[string]int{}
	for _, l := range lessonPages {
		page, err := os.ReadFile(filepath.Join(b.out, l.Path()))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range piece.FindAllStringSubmatch(string(page), -1) {
			count[filepath.Ext(m[1])]++
			code := []byte(html.UnescapeString(m[2]))
			if strings.HasSuffix(m[1], ".py") {
				err = os.WriteFile(filepath.Join(pieces, m[1]), code, 0o600)
			} else if err = os.Mkdir(filepath.Join(dir, m[1]), 0o700); err == nil {
				err = os.WriteFile(filepath.Join(dir, m[1], "main.go"), code, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if count[".go"] != count[".py"] || count[".go"] < 18 {
		t.Fatalf("pieces %v, want as many in Go as in PyTorch, at least 18", count)
	}
	if testing.Short() || os.Getenv("ATTN_PIECES") != "" {
		return // linking them all takes a minute
	}
	module := fmt.Sprintf("module lesson\nreplace github.com/attn-go/attn => %s\n%s", root,
		strings.Replace(string(read(t, "go.mod")), "module github.com/attn-go/attn", "require github.com/attn-go/attn v0.0.0", 1))
	for name, text := range map[string]string{"go.mod": module, "go.sum": string(read(t, "go.sum"))} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(name string, args ...string) string {
		t.Helper()
		c := exec.Command(name, args...)
		c.Dir, c.Env = dir, append(os.Environ(), "GOMAXPROCS=1", "GOFLAGS=-mod=mod", "GOPROXY=off") // the models are tiny
		text, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
		return string(text)
	}
	run("go", "build", "-o", "bin/", "./...")
	output := regexp.MustCompile(`(?m)^\t// ?(.*\n)`)
	for _, l := range lessonPages {
		files, err := filepath.Glob(filepath.Join(dir, l.Name+"-*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			name := filepath.Base(file)
			got := run(filepath.Join(dir, "bin", name))
			if got == "" {
				t.Errorf("%s prints nothing", name)
			}
			_, example, _ := strings.Cut(strings.TrimSuffix(name, ".go"), "-")
			for _, source := range []string{"example_basics_test.go", "mask/example_test.go", "position/example_test.go", "linear/example_test.go"} {
				_, body, found := strings.Cut(string(read(t, source)), "\nfunc "+example+"() {\n")
				if !found {
					continue
				}
				_, after, _ := strings.Cut(body, "\t// Output:\n")
				after, _, _ = strings.Cut(after, "\n}")
				if want := output.ReplaceAllString(after+"\n", "$1"); got != want {
					t.Errorf("%s prints\n%swant\n%s", name, got, want)
				}
			}
		}
	}
}

// A statement is kept for a name that it defines or whose value it may change; what only prints is not, nor is a name in
// a string.
func TestNeeded(t *testing.T) {
	list := statements("import os\nimport torch\n\"\"\"y and x.\"\"\"\ntorch.manual_seed(1)\nx = f(\n    1,\n)\nz = 2  # unlike y\ny = torch.ones(1)\nz[0] = 3\n\n\n@no_grad\n" +
		"def g(x):\n    return x + z\n\n\nprint(z)\nfor i in z:\n    print(i)\n\nprint(\"y\", g(2))\n")
	piece := make([]bool, len(list))
	piece[len(list)-1] = true
	want := "import torch\ntorch.manual_seed(1)\nz = 2  # unlike y\nz[0] = 3\n\n\n@no_grad\ndef g(x):\n    return x + z\n\n\nprint(\"y\", g(2))\n"
	if got := needed(list, piece); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
