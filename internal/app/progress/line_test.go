package progress

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// A bar fits in every terminal, and grows with its share.
func TestBar(t *testing.T) {
	for width := 1; width < 80; width++ {
		for _, share := range []float64{0, 0.4, 1, 1.2} {
			var b strings.Builder
			l := line{w: &b, columns: func() int { return width }}
			l.bar("loading", "3s left", share)
			if n := utf8.RuneCountInString(b.String()) - 1; n > max(0, width-1) {
				t.Fatalf("%d characters on %d columns: %q", n, width, b.String())
			}
		}
	}
	var b strings.Builder
	l := line{w: &b, columns: func() int { return 34 }}
	l.bar("loading", "3s left", 0.4)
	if want := "\rloading  40% |████      | 3s left"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
	l.Clear()
	if !strings.HasSuffix(b.String(), "\r"+strings.Repeat(" ", 33)+"\r") {
		t.Errorf("%q is not erased", b.String())
	}
}
