package simd

import (
	"math"
	"math/rand/v2"
	"testing"
)

var additiveSizes = [][2]int{{0, 3}, {3, 0}, {1, 1}, {5, 7}, {2, 16}, {3, 17}, {7, 31}, {4, 33}, {11, 64}, {13, 67}, {300, 129}}

func TestAdditiveScores(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(31, 32))
		for _, size := range additiveSizes {
			nk, h := size[0], size[1]
			q, k, w, dst := newGuarded(r, h), newGuarded(r, nk*h), newGuarded(r, h), newGuarded(r, nk)
			if nk > 2 && h > 0 {
				k.x[h] = float32(math.Inf(1))
				k.x[2*h] = float32(math.NaN())
			}
			AdditiveScores(dst.x, q.x, k.x, w.x, nk, h)
			for j, got := range dst.x {
				want, magnitude := 0.0, 0.0
				for f, wf := range w.x {
					want += float64(wf) * math.Tanh(float64(q.x[f]+k.x[j*h+f]))
					magnitude += math.Abs(float64(wf))
				}
				if want != want && got != got {
					continue
				}
				if off := math.Abs(float64(got) - want); !(off <= 3e-7*magnitude) {
					t.Fatalf("nk=%d h=%d: score %d is %v, want %v", nk, h, j, got, want)
				}
			}
			// The score of a key depends on nothing else.
			for j := range dst.x {
				var alone [1]float32
				AdditiveScores(alone[:], q.x, k.x[j*h:][:h], w.x, 1, h)
				if !same(alone[:], dst.x[j:j+1]) {
					t.Fatalf("nk=%d h=%d: score %d is %v, alone %v", nk, h, j, dst.x[j], alone[0])
				}
			}
			for _, g := range []guarded{q, k, w, dst} {
				if !g.intact() {
					t.Fatalf("nk=%d h=%d: wrote outside", nk, h)
				}
			}
		}
	})
}

func TestAdditiveGrad(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(33, 34))
		for _, size := range additiveSizes {
			nk, h := size[0], size[1]
			q, k, w, ds := newGuarded(r, h), newGuarded(r, nk*h), newGuarded(r, h), newGuarded(r, nk)
			dq, dk, dw := newGuarded(r, h), newGuarded(r, nk*h), newGuarded(r, h)
			for j := 1; j < nk; j += 3 {
				ds.x[j] = float32(math.Copysign(0, float64(j%2)-0.5))
				for f := range h {
					k.x[j*h+f] = float32(math.NaN())
				}
			}
			want := [3][]float64{widen(dq.x), widen(dk.x), widen(dw.x)}
			magnitude := 1.0
			for j, d := range ds.x {
				if d == 0 {
					continue
				}
				for f, wf := range w.x {
					th := math.Tanh(float64(q.x[f] + k.x[j*h+f]))
					g := float64(d) * float64(wf) * (1 - th*th)
					want[0][f] += g
					want[1][j*h+f] += g
					want[2][f] += float64(d) * th
					magnitude = max(magnitude, math.Abs(float64(d)), math.Abs(float64(d*wf)))
				}
			}
			AdditiveGrad(dq.x, dk.x, dw.x, ds.x, q.x, k.x, w.x, nk, h)
			for i, got := range [][]float32{dq.x, dk.x, dw.x} {
				for f, v := range got {
					if off := math.Abs(float64(v) - want[i][f]); !(off <= 5e-7*magnitude*float64(nk+2)) {
						t.Fatalf("nk=%d h=%d: gradient %d, element %d is %v, want %v", nk, h, i, f, v, want[i][f])
					}
				}
			}
			for _, g := range []guarded{q, k, w, ds, dq, dk, dw} {
				if !g.intact() {
					t.Fatalf("nk=%d h=%d: wrote outside", nk, h)
				}
			}
		}
	})
}

func widen(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}
