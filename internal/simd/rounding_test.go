package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Numbers are rounded for storage as the formulas say, including ties and numbers out of range, at
// every length around a vector.
func TestRounding(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(37, 38))
		special := []float32{0, float32(math.Copysign(0, -1)), 0.5, -0.5, 1.5, 2.5, 126.5, -126.5, 127.4, -300, 300, 1e-40, 3.4e38, float32(math.Inf(1)), float32(math.NaN()), 1.00390625, 1.01171875}
		for _, n := range lengths {
			x := make([]float32, n)
			for i := range x {
				x[i] = float32(60 * r.NormFloat64())
				if r.IntN(4) == 0 {
					x[i] = special[r.IntN(len(special))]
				}
			}
			halves, wantHalves := make([]uint16, n+1), make([]uint16, n+1)
			bytes, wantBytes := make([]int8, n+1), make([]int8, n+1)
			halves[n], bytes[n] = 7, 7
			ToBFloat16(halves[:n], x)
			toBFloat16Generic(wantHalves[:n], x)
			if wantHalves[n] = 7; !slices.Equal(halves, wantHalves) {
				t.Fatalf("%d numbers: bfloat16 %v, want %v", n, halves, wantHalves)
			}
			var most float64
			for i, v := range x {
				if v-v != 0 {
					x[i] = 1 // the integer of a NaN is undefined
				}
				most = max(most, math.Abs(float64(x[i])))
			}
			inverse := 1 + r.Float64()/2
			toInt8(bytes[:n], x, inverse)
			toInt8Generic(wantBytes[:n], x, inverse)
			if wantBytes[n] = 7; !slices.Equal(bytes, wantBytes) {
				t.Fatalf("%d numbers: int8 %v, want %v", n, bytes, wantBytes)
			}
			if got := Magnitude(x); float64(got) != most {
				t.Fatalf("%d numbers: the largest magnitude is %v, want %v", n, got, most)
			}
			if n > 0 {
				x[r.IntN(n)] = float32(math.NaN())
				if got := Magnitude(x); got == got {
					t.Fatalf("%d numbers with a NaN: the largest magnitude is %v", n, got)
				}
			}
		}
	})
}
