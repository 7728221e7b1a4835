package chat

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// A text ends before the first stop that is complete, however it is cut into pieces, and nothing is held back at the end.
func TestStops(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	word := func(n int) string {
		b := make([]byte, 1+rng.IntN(n))
		for i := range b {
			b[i] = "ab"[rng.IntN(2)]
		}
		return string(b)
	}
	for range 2000 {
		text, stops := word(30), []string{word(5), word(5)}
		var out strings.Builder
		p := &printer{out: &out, plain: true, stops: stops}
		more, read := true, 0
		for more && read < len(text) {
			n := min(1+rng.IntN(4), len(text)-read)
			more = p.next(text[read : read+n])
			read += n
		}
		if more {
			p.rest()
		}
		want, stopped := text[:read], ""
		for _, stop := range stops { // within what was read, the first one
			if at := strings.Index(text[:read], stop); at >= 0 && (stopped == "" || at < len(want)) {
				want, stopped = text[:at], stop
			}
		}
		if out.String() != want || p.text.String() != want || p.stopped != stopped || more != (stopped == "") {
			t.Fatalf("%q with stops %q, %d bytes read: %q until %q, want %q until %q", text, stops, read, &out, p.stopped, want, stopped)
		}
	}
}
