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
	for p, most := range map[tensor.Format]float64{tensor.BFloat16: 0.01, tensor.Int8: 0.02} {
		var maps []tensor.Affine
		var exact []*tensor.Tensor
		for _, out := range []int{70, 300, 16} {
			w, exactly := tensor.NewPacked(out, in, p), tensor.NewPacked(out, in, tensor.Float32)
			if w.Format() != p || exactly.Format() != tensor.Float32 {
				t.Fatalf("formats %v and %v, want %v and float32", w.Format(), exactly.Format(), p)
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
}

// On a tape in bfloat16, Linear and its gradients are products of rounded factors.
func TestTapeFormat(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	round := func(x *tensor.Tensor) *tensor.Tensor {
		y := x.Clone()
		for i, v := range y.Data() {
			y.Data()[i] = roundedToBFloat16(v)
		}
		return y
	}
	x, w, b, dout := tensor.Randn(r, 3, 25, 33), tensor.Randn(r, 41, 33), tensor.Randn(r, 41), tensor.Randn(r, 3, 25, 41)
	run := func(p tensor.Format, x, w, dout *tensor.Tensor) []*tensor.Tensor {
		tape := tensor.NewTape(tensor.Train)
		if tape.SetFormat(p); tape.Format() != p {
			t.Errorf("format %v, want %v", tape.Format(), p)
		}
		tape.Reset()
		x, w, b := x.Clone().Param(), w.Clone().Param(), b.Clone().Param()
		y := tensor.Linear(tape, x, w, b)
		tape.Backward(y, dout)
		return []*tensor.Tensor{y.Clone(), x.Grad().Clone(), w.Grad().Clone()}
	}
	want := run(tensor.Float32, round(x), round(w), round(dout))
	for i, got := range run(tensor.BFloat16, x, w, dout) {
		if !slices.Equal(got.Data(), want[i].Data()) {
			t.Errorf("result %d is not that of rounded factors", i)
		}
	}
	if got := (*tensor.Tape)(nil).Format(); got != tensor.Float32 {
		t.Errorf("a nil tape has format %v", got)
	}
	for _, f := range []func(){
		func() { (*tensor.Tape)(nil).SetFormat(tensor.BFloat16) },
		func() { tensor.NewTape(tensor.Infer).SetFormat(tensor.Int8) },
		func() { tensor.NewTape(tensor.Infer).SetFormat(0) },
	} {
		var bad *tensor.ValueError
		if err := tensor.Catch(f); !errors.As(err, &bad) {
			t.Errorf("error %v, want a ValueError", err)
		}
	}
}

// roundedToBFloat16 returns the nearest number with 8 bits of precision, ties to even.
func roundedToBFloat16(x float32) float32 {
	bits := math.Float32bits(x)
	return math.Float32frombits((bits + 0x7fff + bits>>16&1) &^ 0xffff)
}

// Maps of several formats in one call do not share rounded inputs.
func TestLinearsOfSeveralFormats(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	x := tensor.Randn(r, 5, 140)
	for _, first := range tensor.Formats() {
		var maps []tensor.Affine
		for _, f := range append([]tensor.Format{first}, tensor.Formats()...) {
			w := tensor.NewPacked(33, 140, f)
			w.SetRows(0, tensor.Randn(r, 33, 140).Data())
			maps = append(maps, tensor.Affine{Weight: w})
		}
		for i, y := range tensor.Linears(nil, x, maps) {
			if want := maps[i].Weight.Linear(nil, x, nil); !slices.Equal(y.Data(), want.Data()) {
				t.Errorf("%v after %v: other bits than alone", maps[i].Weight.Format(), first)
			}
		}
	}
}
