package completion

import (
	"strings"
	"testing"
)

// A quote in a help text must not end a string of the script.
func TestCompletionQuotes(t *testing.T) {
	list := []command{{Name: "go", Help: `it's "so": [here]`, Flags: []flag{{Name: "on", Help: `it's \n`, Takes: "N"}}}}
	for _, c := range []struct{ shell, want string }{
		{"zsh", `'go:it'\''s "so"\: \[here\]'`},
		{"zsh", `'--on=[it'\''s \n]:N: '`},
		{"fish", `-a go -d 'it\'s "so": [here]'`},
		{"fish", `-l on -d 'it\'s \\n' -x`},
	} {
		var script strings.Builder
		if err := write(&script, c.shell, list); err != nil || !strings.Contains(script.String(), c.want) {
			t.Errorf("%s\nhas no %s, %v", script.String(), c.want, err)
		}
	}
}
