package completion

import (
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// A quote in a help text must not end a string of the script.
func TestCompletionQuotes(t *testing.T) {
	app := kong.Must(&struct {
		Go struct {
			On string `help:"it's \\n" placeholder:"N"`
		} `cmd:"" help:"it's \"so\": [here]"`
	}{})
	for _, c := range []struct{ shell, want string }{
		{"zsh", `'go:it'\''s "so"\: \[here\]'`},
		{"zsh", `'--on=[it'\''s \n]:N: '`},
		{"fish", `-a go -d 'it\'s "so": [here]'`},
		{"fish", `-l on -d 'it\'s \\n' -x`},
	} {
		var script strings.Builder
		if err := Write(&script, c.shell, app.Model); err != nil || !strings.Contains(script.String(), c.want) {
			t.Errorf("%s\nhas no %s, %v", script.String(), c.want, err)
		}
	}
}
