package linear

import (
	"math"

	"github.com/attn-go/attn/tensor"
)

// A Feature maps the queries and keys of linear attention to vectors whose products are their similarities. Every
// function of tensors that works row by row is one, such as tensor.ReLU.
type Feature = func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor

// Unit divides each vector by its length: x/√(Σx² + 1e-6), as layers of the delta rule do with queries and keys.
//
// Source: Yang et al., "Parallelizing Linear Transformers with the Delta Rule", 2024, https://arxiv.org/abs/2406.06484.
func Unit(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
	e := x.Dim(x.Rank() - 1)
	gain := t.Make(e)
	for i := range gain.Data() {
		gain.Data()[i] = float32(1 / math.Sqrt(float64(e)))
	}
	return tensor.RMSNorm(t, x, gain, 1e-6/float32(e))
}

// ELU1 is ELU(x) + 1: x + 1 above 0 and e^x below, which is positive everywhere.
//
// Source: Katharopoulos et al., 2020, https://arxiv.org/abs/2006.16236, equation 7.
func ELU1(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
	return tensor.Shift(t, tensor.ELU(t, x), 1)
}
