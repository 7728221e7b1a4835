package conformance

import (
	"fmt"
	"math"
	"slices"

	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tensor"
)

// tolerance is the largest accepted error of an element, by the type of the outputs. An error e of an element x
// counts as e/(1 + |x|). Other systems may have rounded at every step to compute expected outputs in half precision.
var tolerance = map[safetensors.DType]float64{
	safetensors.F32:  4e-6,
	safetensors.F16:  5e-3,
	safetensors.BF16: 4e-2,
}

// run computes the case on both paths. It returns the largest error, and an error if that exceeds the tolerance or if
// the case cannot be computed.
func (c *testCase) run() (largest float64, err error) {
	for i, path := range c.node.paths() {
		got, err := c.node.compute(i == 1)
		if err != nil {
			return math.Inf(1), err
		}
		for _, want := range c.want {
			e, err := want.compare(got[want.name])
			largest = max(largest, e)
			if err != nil {
				return largest, fmt.Errorf("%s path: %s %w", path, want.name, err)
			}
		}
	}
	return largest, nil
}

// compare returns the largest error of the elements of got, rounded to the type of o.
func (o *output) compare(got *tensor.Tensor) (largest float64, err error) {
	limit, ok := tolerance[o.typ]
	if !ok {
		return math.Inf(1), fmt.Errorf("has type %s, want F32, F16 or BF16", o.typ)
	}
	if !slices.Equal(got.Shape(), o.shape) {
		return math.Inf(1), fmt.Errorf("has shape %v, want %v", got.Shape(), o.shape)
	}
	at := 0
	for i, want := range o.values {
		e := difference(float64(round(got.Data()[i], o.typ)), want)
		if e > largest {
			largest, at = e, i
		}
	}
	if largest > limit {
		return largest, fmt.Errorf("element %d is %v, want %v to within %v", at, got.Data()[at], o.values[at], limit)
	}
	return largest, nil
}

// difference returns |got − want|/(1 + |want|). Infinities and NaN equal only themselves.
func difference(got, want float64) float64 {
	switch d := math.Abs(got - want); {
	case got == want || math.IsNaN(got) && math.IsNaN(want):
		return 0
	case d-d != 0: // not finite
		return math.Inf(1)
	default:
		return d / (1 + math.Abs(want))
	}
}

// round returns the number of a type that is nearest to x, with ties to even.
func round(x float32, typ safetensors.DType) float32 {
	switch typ {
	case safetensors.F16:
		return simd.Float16Value(simd.NearestFloat16(x))
	case safetensors.BF16:
		return math.Float32frombits(uint32(simd.NearestBFloat16(x)) << 16)
	}
	return x
}
