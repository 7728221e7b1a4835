package nn_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/optim"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// A sequence whose upstream gradient is zero adds nothing to any gradient, even if it contains NaN.
func TestGRUOfSequencesWithoutGradient(t *testing.T) {
	const b, l, d, h = 3, 5, 7, 11
	rng := rand.New(rand.NewPCG(81, 82))
	g := nn.NewGRU(d, h, rng)
	x, h0 := tensor.Randn(rng, b, l, d), tensor.Randn(rng, b, h)
	dout, dlast := tensor.Randn(rng, b, l, h), tensor.Randn(rng, b, h)
	clear(dout.Data()[l*h : 2*l*h])
	clear(dlast.Data()[h : 2*h])
	run := func() map[string][]float32 {
		optim.ZeroGrad(g)
		tape := tensortest.Tape(tensor.Train)
		in, first := x.Clone().Param(), h0.Clone().Param()
		out, last := g.Forward(tape, in, first, nil, nn.Forward)
		tape.BackwardAll([]*tensor.Tensor{out, last}, []*tensor.Tensor{dout, dlast})
		all := map[string][]float32{"x": in.Grad().Clone().Data(), "h0": first.Grad().Clone().Data()}
		for name, p := range g.Params() {
			all[name] = p.Grad().Clone().Data()
		}
		return all
	}
	want := run()
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1))} {
		for _, spoilt := range [][]float32{x.Data()[l*d : 2*l*d], h0.Data()[h : 2*h]} {
			kept := append([]float32(nil), spoilt...)
			for i := range spoilt {
				spoilt[i] = bad
			}
			for name, got := range run() {
				tensortest.Same(t, fmt.Sprintf("gradient of %s with %v", name, bad), got, want[name])
			}
			copy(spoilt, kept)
		}
	}
}
