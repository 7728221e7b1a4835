package tensor_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// The direction of a vector does not depend on its length, even if the square overflows or underflows float32.
func TestNormalizeOfExtremes(t *testing.T) {
	const n, d = 3, 13
	rng := rand.New(rand.NewPCG(71, 72))
	x0, dy := tensor.Randn(rng, n, d), tensor.Randn(rng, n, d)
	for i := range d {
		dy.Data()[d+i] = 0 // one row has no gradient
	}
	for _, eps := range []float32{0, 1e-12, 1} {
		for _, power := range []int{-140, -126, -110, -63, -47, -40, -1, 0, 30, 60, 63, 64, 100, 123} {
			x := x0.Clone().Param()
			for i := range x.Data() {
				x.Data()[i] = float32(math.Ldexp(float64(x.Data()[i]), power))
			}
			tape := training()
			y := tensor.Normalize(tape, x, eps)
			tape.Backward(y, dy)
			want, dx := make([]float64, n*d), make([]float64, n*d)
			most := 0.0
			for r := 0; r < n*d; r += d {
				length := math.Sqrt(sum(d, func(i int) float64 { return math.Pow(float64(x.Data()[r+i]), 2) }))
				by := max(length, float64(eps))
				along := 0.0
				if length > float64(eps) {
					along = sum(d, func(i int) float64 { return float64(dy.Data()[r+i]) * float64(x.Data()[r+i]) / by })
				}
				for i := range d {
					want[r+i] = float64(x.Data()[r+i]) / by
					dx[r+i] = (float64(dy.Data()[r+i]) - want[r+i]*along) / by
					most = max(most, math.Abs(dx[r+i]))
				}
			}
			what := fmt.Sprintf("eps %v, times 2^%d", eps, power)
			tensortest.Close(t, what, y.Data(), want, 0)
			if most > math.MaxFloat32 {
				continue // and it has no gradient
			}
			scaled := make([]float32, n*d) // scaled to the range of the tolerance
			for i, g := range x.Grad().Data() {
				scaled[i] = float32(float64(g) / most)
				dx[i] /= most
			}
			tensortest.Close(t, what+": gradient", scaled, dx, 0)
		}
	}

	zero := tensor.Zeros(2, d).Param()
	tape := training()
	y := tensor.Normalize(tape, zero, 0)
	tape.Backward(y, tensor.Full(1, 2, d))
	tensortest.Same(t, "no direction", y.Data(), make([]float32, 2*d))
	tensortest.Same(t, "gradient of no direction", zero.Grad().Data(), make([]float32, 2*d))

	y = tensor.Normalize(nil, tensor.New([]float32{math.MaxFloat32, 0}, 1, 2), math.MaxFloat32)
	tensortest.Same(t, "the largest eps", y.Data(), []float32{1, 0})
}
