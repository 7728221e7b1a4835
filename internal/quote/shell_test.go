package quote

import "testing"

func TestShell(t *testing.T) {
	for path, want := range map[string]string{
		"runs/dates": "runs/dates", `C:\runs`: `C:\runs`, "größe_1.run": "größe_1.run",
		"two words": "'two words'", "a;b": "'a;b'", "it's": `'it'\''s'`, "$HOME": "'$HOME'",
		"a\x1b[2J'\u202e": `$'a\x1b[2J\'\u202e'`,
	} {
		if got := Shell(path); got != want {
			t.Errorf("%s is quoted as %s, want %s", path, got, want)
		}
	}
}
