package tensor_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/attn-go/attn/tensor"
)

// Maps in lower precision are near those in float32. Their bits do not depend on the other inputs, on the other maps of
// a call, or on the number of threads.
func TestReduced(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	const in, rows = 200, 150
	random := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		return x
	}
	x := tensor.New(random(rows*in), rows, in)
	for p, most := range map[tensor.Numbers]float64{tensor.BFloat16: 0.01, tensor.Int8: 0.02} {
		var maps []tensor.Affine
		var exact []*tensor.Tensor
		for _, out := range []int{70, 300, 16} {
			w, exactly := tensor.NewReduced(out, in, p), tensor.NewPacked(out, in, tensor.Float32)
			if w.Precision() != p || w.Numbers() != p || exactly.Precision() != tensor.Float32 {
				t.Fatalf("precision %v of weights in %v, want %v; and %v", w.Precision(), w.Numbers(), p, exactly.Precision())
			}
			data, bias := random(out*in), tensor.New(random(out), out)
			w.SetRows(0, data)
			exactly.SetRows(0, data)
			maps, exact = append(maps, tensor.Affine{Weight: w, Bias: bias}), append(exact, exactly.Linear(nil, x, bias))
		}
		for _, threads := range []int{1, 2, 7} {
			before := runtime.GOMAXPROCS(threads)
			for m, y := range tensor.Linears(nil, x, maps) {
				out := y.Dim(1)
				var difference, size float64
				for i, v := range exact[m].Data() {
					difference += math.Pow(float64(v-y.Data()[i]), 2)
					size += math.Pow(float64(v), 2)
				}
				if d := math.Sqrt(difference / size); !(d < most) || d == 0 {
					t.Errorf("%v, map %d: relative difference %v, want below %v, and not 0", p, m, d, most)
				}
				for _, i := range []int{0, 77, rows - 1} {
					one := maps[m].Weight.Linear(nil, tensor.New(x.Data()[i*in:][:in], 1, in), maps[m].Bias)
					if !slices.Equal(one.Data(), y.Data()[i*out:][:out]) {
						t.Errorf("%v, map %d, %d threads: input %d has other bits alone", p, m, threads, i)
					}
				}
			}
			runtime.GOMAXPROCS(before)
		}
	}
	for _, p := range []tensor.Numbers{0, tensor.Float32, tensor.Float16, 77} {
		err := tensor.Catch(func() { tensor.NewReduced(2, 2, p) })
		var bad *tensor.ValueError
		if !errors.As(err, &bad) || bad.Want != "bfloat16 or int8" {
			t.Errorf("%v: %v", p, err)
		}
	}
}
