package attn_test

import (
	"slices"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// If a query attends to a single key, the weight is 1 for every score, so the gradient of the
// score is exactly 0: also with dropout, and for large queries and keys.
func TestOneKeyHasNoScoreGradient(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: every score; TestGolden has gradients")
	}
	eachScore(t, func(t *testing.T, c scoreCase) {
		for _, s := range []sizes{
			{1, 1, 1, 1, 1, 1}, {2, 6, 3, 5, 1, 3}, {2, 6, 3, 5, 7, 67}, {1, 4, 2, 33, 300, 16}, {1, 2, 1, 1, 600, 32},
		} {
			masks := map[string]attn.Mask{
				"the first key":       mask.Lengths(slices.Repeat([]int{1}, s.b)...),
				"a key behind others": mask.AllowFunc(func(b, h, i, j int) bool { return j == (7*i+h)%s.lk }),
			}
			for name, m := range masks {
				for seed := range uint64(4) {
					x := newCall(c, s).mask(m)
					if x.o.Weights = seed&1 == 1; !x.o.Weights {
						x.dweights = nil
					}
					if x.o.Dropout = 0.3; seed&2 == 2 {
						x.o.Dropout = 0
					}
					x.v = tensor.Randn(newRand(100+seed), x.v.Shape()...)
					x.q, x.k = tensor.Scale(nil, x.q, float32(1+1000*seed)), tensor.Scale(nil, x.k, float32(1+1000*seed))
					tr := x.run()
					for grad, g := range tr {
						if !slices.Contains([]string{"out", "weights", "dv"}, grad) {
							tensortest.Same(t, name+": "+grad, g.Data(), make([]float32, g.Len()))
						}
					}
				}
			}
		}
	})
}
