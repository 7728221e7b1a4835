package linear_test

import (
	"fmt"
	"testing"

	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/linear"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// Outputs, last states and all gradients are those of PyTorch in float64.
func TestGolden(t *testing.T) {
	for _, name := range []string{"delta", "gated", "gated_delta", "gated_delta_each", "gated_each", "normalized"} {
		simd.Each(func(kernels string) {
			t.Run(name+"/"+kernels, func(t *testing.T) {
				g := tensortest.Open(t, "../testdata/golden/linear_"+name+".safetensors")
				var o linear.Options
				for name, x := range map[string]**tensor.Tensor{"in.decay": &o.Decay, "in.beta": &o.Beta, "in.state": &o.State} {
					if g.Has(name) {
						*x = g.Leaf(name)
					}
				}
				if o.Normalize = g.Setting("normalize") == "true"; o.Normalize {
					o.Feature = linear.ELU1
				}
				for i := 0; g.Has(fmt.Sprintf("in.ends%d", i)); i++ {
					o.Documents = append(o.Documents, g.Ints(fmt.Sprintf("in.ends%d", i)))
				}
				g.Setting("rule")
				tape := tensortest.Tape(tensor.Train)
				y := linear.Attend(tape, g.Leaf("in.q"), g.Leaf("in.k"), g.Leaf("in.v"), o)
				g.Check("want.out", y.Out)
				g.Check("want.state", y.State)
				tape.BackwardAll([]*tensor.Tensor{y.Out, y.State}, []*tensor.Tensor{g.Tensor("in.dout"), g.Tensor("in.dstate")})
				g.CheckGrads()
				g.Done()
			})
		})
	}
}
