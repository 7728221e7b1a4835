package flash

import (
	"fmt"
	"math"
	"testing"
)

// A head has the same result alone and among other heads, although it prefetches the next head
// while it is computed. A query has the same result in strips of twelve, which a mask with a hole
// in another row causes.
func TestHeadsAreIndependent(t *testing.T) {
	const b, h, ev = 2, 3, 59
	for _, s := range []struct{ lq, lk, e int }{{61, 67, 53}, {13, 11, 7}, {101, 131, 64}, {3, 1, 2}} {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			p := newProblem(5, b, h, h, s.lq, s.lk, s.e, ev)
			p.Q.Data[s.e+1] = float32(math.NaN()) // row 1 is not finite
			all := forwardOf(p)
			size := s.lq * ev
			for z := range b * h {
				one := *p
				one.B, one.H, one.G = 1, 1, 1
				one.Q.Data, one.K.Data, one.V.Data = p.Q.at(z/h, z%h, 0), p.K.at(z/h, z%h, 0), p.V.at(z/h, z%h, 0)
				out := forwardOf(&one)
				name := fmt.Sprintf("head %d: ", z)
				sameBits(t, name+"out", out, all[z*size:][:size])
				sameBits(t, name+"log-sum-exp", one.LogSumExp, p.LogSumExp[z*s.lq:][:s.lq])
			}
			if s.lk == 1 {
				return
			}
			holed := *p
			holed.seen = func(b, h, i, j int) bool { return i > 0 || j > 0 }
			holed.Mask = []MaskRule{funcMask{p: &holed}}
			out := forwardOf(&holed)
			for z := range b * h {
				sameBits(t, fmt.Sprintf("head %d under a mask", z), out[z*size+ev:][:size-ev], all[z*size+ev:][:size-ev])
			}
		})
	}
}

// A search of a sequence covers all heads, and its result is not used for another sequence.
func TestScan(t *testing.T) {
	const b, heads, length, size = 2, 3, 4, 5
	x := Heads{make([]float32, b*length*heads*size), length * heads * size, size, heads * size}
	for i := range x.Data {
		x.Data[i] = negInf
		var s scan
		for j := range b {
			want := j != i/x.Batch
			for range 2 {
				if got := s.finite(x, j, heads, length, size); got != want {
					t.Errorf("with element %d infinite, sequence %d is finite: %v, want %v", i, j, got, want)
				}
			}
		}
		x.Data[i] = 0
	}
	apart := Heads{x.Data, x.Batch, length * size, size}
	if new(scan).finite(apart, 0, heads, length, size) {
		t.Error("heads that are not side by side are searched as if they were")
	}
}
