// Package factor has what lesson 8 computes, for its program and its page: a kernel of lesson 1 that is a product of
// features, and layers that recall.
package factor

import (
	"math"

	"github.com/attn-go/attn/linear"
	"github.com/attn-go/attn/tensor"
)

// Waves returns a feature of numbers x [… 1] with 2p+1 elements, the waves of the period 10 with 0 to p periods:
//
//	φ(q)·φ(k) = cos(π·(q−k)/10)^2p ≈ exp(−½·(w·(q−k))²),   w = π·√(p/50)
//
// It has no gradient.
func Waves(p int) linear.Feature {
	return func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
		shape := append([]int(nil), x.Shape()...)
		shape[len(shape)-1] = 2*p + 1
		y := t.Make(shape...)
		for i, x := range x.Data() {
			row := y.Data()[i*(2*p+1):][:2*p+1]
			// The power of a cosine is a sum of cosines, whose coefficients are binomial.
			c := 1.0
			for m := 1; m <= p; m++ {
				c *= float64(2*m-1) / float64(2*m)
			}
			row[0] = float32(math.Sqrt(c))
			for m := 1; m <= p; m++ {
				c = float64(c * (float64(p-m+1) / float64(p+m)))
				sin, cos := math.Sincos(float64(m) * math.Pi * float64(x) / 5)
				row[2*m-1], row[2*m] = float32(math.Sqrt(2*c)*cos), float32(math.Sqrt(2*c)*sin)
			}
		}
		return y
	}
}
