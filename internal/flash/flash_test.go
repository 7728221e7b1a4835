package flash

import (
	"fmt"
	"math"
	"testing"
	"unsafe"
)

// forwardOf runs Forward with memory full of garbage.
func forwardOf(p *problem) []float32 {
	p.changes()
	out := rubbish(p.B * p.H * p.Lq * p.EV)
	p.Results = p.rubbishResults(headFirst(out, p.H, p.Lq, p.EV))
	Forward(&p.Attention)
	return out
}

// rubbishResults returns results in memory full of garbage, except out.
func (a *Attention) rubbishResults(out Heads) Results {
	rows := a.B * a.H * a.Lq
	return Results{Out: out, Shift: rubbish(rows), Inverse: rubbish(rows), LogSumExp: rubbish(rows)}
}

func rubbish(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(math.NaN())
	}
	return x
}

// within fails the test unless the error of got is at most twice the error of the plain formula
// in float32, plus a floor for results that the formula happens to compute exactly. It compares
// root mean squares, and, with another factor of two, the largest errors, because the largest of
// a few errors is a matter of luck.
func (p *problem) within(t *testing.T, name string, got []float32, want []float64, singles ...[]float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d elements, want %d", name, len(got), len(want))
		return
	}
	var largest, worst, squares, plainWorst, plainSquares float64
	at := 0
	for _, single := range singles {
		var sum float64
		for i, w := range want {
			d := math.Abs(float64(single[i]) - w)
			plainWorst, sum = max(plainWorst, d), sum+d*d
		}
		plainSquares = max(plainSquares, sum)
	}
	for i, w := range want {
		largest = max(largest, math.Abs(w))
		d := math.Abs(float64(got[i]) - w)
		if squares += d * d; !(d <= worst) {
			worst, at = d, i
		}
	}
	floor := max(largest, 1) * 0x1p-19
	if p.Rounded {
		floor *= 0x1p11 // half of the distance between two numbers in bfloat16
	}
	n := float64(max(len(want), 1))
	if budget := 4*plainWorst + floor; !(worst <= budget) {
		t.Errorf("%s: element %d is %v, want %v: off by %.3g, allowed %.3g", name, at, got[at], want[at], worst, budget)
	}
	if rms, budget := math.Sqrt(squares/n), 2*math.Sqrt(plainSquares/n)+floor; !(rms <= budget) {
		t.Errorf("%s: off by %.3g in the mean of squares, allowed %.3g", name, rms, budget)
	}
}

func TestForwardSizes(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: TestKinds has some sizes")
	}
	for _, lk := range []int{1, 15, 16, 17, 63, 64, 65, 127, 511, 512, 513, 1025} {
		for _, lq := range []int{1, 5, 11, 12, 13, 48, 49} {
			e := 1 + (lq*7+lk)%70
			ev := 1 + (lq*5+lk*3)%70
			t.Run(fmt.Sprintf("Lq=%d,Lk=%d,E=%d,EV=%d", lq, lk, e, ev), func(t *testing.T) {
				p := newProblem(1, 1, 2, 1, lq, lk, e, ev)
				want, single := solve[float64](p), singles(p)
				out := forwardOf(p)
				p.within(t, "out", out, want.out, single[0].out, single[1].out)
			})
		}
	}
}

// Large numbers of weights, which are written past the caches, equal the rows that Row receives.
func TestStreamedWeights(t *testing.T) {
	const lq, lk = 1031, 1024 // rows of whole cache lines
	p := newProblem(3, 1, 1, 1, lq, lk, 3, 2)
	if lq*lk < streamed {
		t.Fatalf("%d weights are not streamed", lq*lk)
	}
	got, want := make([]float32, lq*lk+16), make([]float32, lq*lk)
	for uintptr(unsafe.Pointer(&got[0]))%64 != 0 {
		got = got[1:]
	}
	forwardOf(p)
	p.Weights = got[:lq*lk]
	Forward(&p.Attention)
	p.Weights, p.Row = nil, func(at Row, w []float32) { copy(want[at.Query*lk:], w) }
	Forward(&p.Attention)
	sameBits(t, "weights", got[:lq*lk], want)
}

func BenchmarkForward(b *testing.B) {
	for _, c := range []struct{ b, h, lq, lk, e int }{
		{1, 12, 512, 512, 64}, {1, 12, 1024, 1024, 64}, {1, 16, 1024, 1024, 128}, {1, 16, 2048, 2048, 128}, {8, 12, 64, 64, 64}, {8, 12, 128, 128, 64}, {64, 6, 12, 10, 50},
		{1, 3, 1024, 1024, 64}, {1, 32, 1, 8192, 128},
	} {
		b.Run(fmt.Sprint(c), func(b *testing.B) {
			p := newProblem(1, c.b, c.h, c.h, c.lq, c.lk, c.e, c.e)
			forwardOf(p)
			b.ReportAllocs()
			for b.Loop() {
				Forward(&p.Attention)
			}
			flop := 4 * float64(c.b*c.h*c.lq*c.lk*c.e)
			b.ReportMetric(flop*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}
