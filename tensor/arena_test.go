package tensor_test

import (
	"slices"
	"testing"

	"github.com/attn-go/attn/tensor"
)

// Large requests get separate slices.
func TestLargeFloats(t *testing.T) {
	const large = 500_009
	tape := tensor.NewTape(tensor.Infer)
	first := func(n int) *float32 { return &tape.Floats(n)[0] }
	a, b := first(large), first(2*large)
	if a == b {
		t.Fatal("memory was handed out twice")
	}
	tape.Reset()
	// The smallest slice that fits is used, so that the larger one is left for the second request.
	if first(large-1000) != a || first(2*large-1000) != b {
		t.Error("Reset did not hand back large memory")
	}
	tape.Reset()
	if first(large+10_000) != a {
		t.Error("a request that is a little larger found no room")
	}
	tape.Reset()
	if c := first(4 * large); c == a || c == b {
		t.Error("a request for more got memory that is too short")
	}
	s := tape.Floats(3 * large) // no free slice is long enough
	s[3*large-1] = 1
	if len(s) != 3*large || cap(s) != len(s) {
		t.Errorf("Floats(%d) has length %d and capacity %d", 3*large, len(s), cap(s))
	}
}

// A slice that is too short is replaced by a longer one, so that rounds with growing requests keep only the last.
func TestLargeFloatsThatGrow(t *testing.T) {
	const large = 500_009
	tape := tensor.NewTape(tensor.Infer)
	var longest *float32
	for n := large; n <= 8*large; n *= 2 {
		longest = &tape.Floats(n)[0]
		tape.Reset()
	}
	if &tape.Floats(large)[0] != longest {
		t.Error("a shorter slice was kept beside the longest")
	}
}

func TestFloatsAreApart(t *testing.T) {
	tape := tensor.NewTape(tensor.Infer)
	for range 2 {
		var all [][]float32
		for n := range 2000 { // more than fits in the first slabs
			s := tape.Floats(n % 97)
			if len(s) != n%97 || cap(s) != len(s) {
				t.Fatalf("Floats(%d) has length %d and capacity %d", n%97, len(s), cap(s))
			}
			for i := range s {
				s[i] = float32(n)
			}
			all = append(all, s)
		}
		all = append(all, tape.Floats(1<<20))
		clear(all[2000])
		for n, s := range all[:2000] {
			if len(s) > 0 && (slices.Min(s) != float32(n) || slices.Max(s) != float32(n)) {
				t.Fatalf("scratch memory %d was handed out twice", n)
			}
		}
		tape.Reset()
	}
}
