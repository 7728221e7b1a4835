package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// strips calls f with rows of every length around the ends of vectors, in
// guarded memory, for a few numbers of rows.
func strips(t *testing.T, f func(t *testing.T, r *rand.Rand, rows, stride, n int)) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(2, 3))
		for _, n := range lengths {
			if n > piece {
				continue
			}
			for _, rows := range []int{1, 2, 5} {
				f(t, r, rows, n+r.IntN(5), n)
			}
		}
	})
}

// newStrip returns rows in guarded memory; the gaps between them are guards.
func newStrip(r *rand.Rand, rows, stride, n int) guarded {
	g := newGuarded(r, rows*stride)
	for i := range g.x {
		if i%max(stride, 1) >= n {
			g.x[i] = guard
		}
	}
	return g
}

// intactStrip reports whether nothing has been written outside of the rows.
func intactStrip(g guarded, stride, n int) bool {
	first := len(g.all) - 40 - len(g.x) // as in newGuarded
	for i, v := range g.all {
		if at := i - first; v != guard && (at < 0 || at >= len(g.x) || at%stride >= n) {
			return false
		}
	}
	return true
}

func TestRowMax(t *testing.T) {
	strips(t, func(t *testing.T, r *rand.Rand, rows, stride, n int) {
		g, dst := newStrip(r, rows, stride, n), newGuarded(r, rows)
		RowMax(dst.x, g.x, stride, n)
		for i, got := range dst.x {
			want := float32(math.Inf(-1))
			for _, v := range g.x[i*stride:][:n] {
				want = max(want, v)
			}
			if got != want {
				t.Fatalf("%d rows of %d: maximum of row %d is %v, want %v", rows, n, i, got, want)
			}
		}
		if !dst.intact() {
			t.Fatalf("%d rows of %d: wrote too far", rows, n)
		}
	})
}

// The maximum of a row of only NaN is NaN.
func TestRowMaxOfNaN(t *testing.T) {
	onEach(t, func(t *testing.T) {
		for n := 1; n < 70; n++ {
			x, dst := make([]float32, n), make([]float32, 1)
			for i := range x {
				x[i] = float32(math.NaN())
			}
			if RowMax(dst, x, n, n); dst[0] == dst[0] && !math.IsInf(float64(dst[0]), -1) {
				t.Errorf("maximum of %d NaN is %v", n, dst[0])
			}
		}
	})
}

func TestPowerRows(t *testing.T) {
	strips(t, func(t *testing.T, r *rand.Rand, rows, stride, n int) {
		g := newStrip(r, rows, stride, n)
		x, c := clone(g.x), float32(1.7)
		shift, sum := newGuarded(r, rows), newGuarded(r, rows)
		for i := range shift.x {
			shift.x[i] = 3 * float32(i)
		}
		PowerRows(g.x, stride, n, c, shift.x, sum.x)
		for i := range rows {
			var lane [16]float32
			for j, got := range g.x[i*stride:][:n] {
				e := c * (x[i*stride+j] - shift.x[i])
				if u := ulps(got, math.Exp2(float64(e))); u > 1.01 {
					t.Fatalf("2^%v is %v: off by %.2f ulp", e, got, u)
				}
				lane[j%16] += got
			}
			for half := 8; half > 0; half /= 2 {
				for l := range half {
					lane[l] += lane[l+half]
				}
			}
			if sum.x[i] != lane[0] {
				t.Fatalf("%d rows of %d: sum of row %d is %v, want %v", rows, n, i, sum.x[i], lane[0])
			}
		}
		if !sum.intact() || !intactStrip(g, stride, n) {
			t.Fatalf("%d rows of %d: wrote too far", rows, n)
		}
	})
}

// The kernels return 0 for hidden elements and for results too small to be normal, and NaN for NaN.
func TestPowersAtTheEdges(t *testing.T) {
	inf := float32(math.Inf(1))
	onEach(t, func(t *testing.T) {
		for n := 1; n < 40; n++ {
			for _, c := range []struct{ x, want float32 }{
				{-inf, 0}, {-1e30, 0}, {-125.01, 0}, {-125, 0x1p-125}, {0, 1}, {1, 2}, {20, 1 << 20}, {float32(math.NaN()), float32(math.NaN())},
			} {
				x, shift, sum := make([]float32, n), []float32{0}, []float32{0}
				for i := range x {
					x[i] = c.x
				}
				PowerRows(x, n, n, 1, shift, sum)
				for _, got := range x {
					if !same([]float32{got}, []float32{c.want}) {
						t.Fatalf("2^%v = %v, want %v", c.x, got, c.want)
					}
				}
				for i := range x {
					x[i] = c.x
				}
				WeightRows(x, n, n, 1, shift, []float32{0.5})
				for _, got := range x {
					if !same([]float32{got}, []float32{c.want / 2}) {
						t.Fatalf("2^%v/2 = %v, want %v", c.x, got, c.want/2)
					}
				}
			}
		}
	})
}

// WeightRows is PowerRows and a multiplication.
func TestWeightRows(t *testing.T) {
	strips(t, func(t *testing.T, r *rand.Rand, rows, stride, n int) {
		g := newStrip(r, rows, stride, n)
		want := clone(g.x)
		shift, factor, sum := make([]float32, rows), make([]float32, rows), make([]float32, rows)
		for i := range shift {
			shift[i], factor[i] = float32(i), 1/float32(i+3)
		}
		PowerRows(want, stride, n, 0.3, shift, sum)
		for i, f := range factor {
			for j := range n {
				want[i*stride+j] *= f
			}
		}
		WeightRows(g.x, stride, n, 0.3, shift, factor)
		if !same(g.x, want) || !intactStrip(g, stride, n) {
			t.Fatalf("%d rows of %d differ", rows, n)
		}
	})
}

func TestGradRows(t *testing.T) {
	strips(t, func(t *testing.T, r *rand.Rand, rows, stride, n int) {
		dw, w := newStrip(r, rows, stride, n), newStrip(r, rows, stride, n)
		mean := newGuarded(r, rows)
		for i := range w.x {
			if i%max(stride, 1) >= n {
				continue
			}
			switch i % 7 {
			case 2:
				w.x[i], dw.x[i] = 0, float32(math.NaN())
			case 3:
				w.x[i] = float32(math.Copysign(0, -1))
			}
		}
		want := clone(dw.x)
		for i, m := range mean.x {
			for j := range n {
				at := i*stride + j
				if w.x[at] == 0 {
					want[at] = 0
				} else {
					want[at] = w.x[at] * (dw.x[at] - m) * 0.3
				}
			}
		}
		GradRows(dw.x, w.x, stride, n, mean.x, 0.3)
		if !same(dw.x, want) || !intactStrip(dw, stride, n) {
			t.Fatalf("%d rows of %d differ", rows, n)
		}
	})
}

func TestScaleRows(t *testing.T) {
	strips(t, func(t *testing.T, r *rand.Rand, rows, stride, n int) {
		src, dst, factor := newStrip(r, rows, stride, n), newStrip(r, rows, stride+3, n), newGuarded(r, rows)
		want := clone(dst.x)
		for i, f := range factor.x {
			for j := range n {
				want[i*(stride+3)+j] = f * src.x[i*stride+j]
			}
		}
		ScaleRows(dst.x, stride+3, src.x, stride, n, factor.x)
		if !same(dst.x, want) || !intactStrip(dst, stride+3, n) {
			t.Fatalf("%d rows of %d differ", rows, n)
		}
	})
}

func TestStreamRows(t *testing.T) {
	strips(t, func(t *testing.T, r *rand.Rand, rows, stride, n int) {
		src, factor := newStrip(r, rows, stride, n), newGuarded(r, rows)
		for _, misaligned := range []int{0, 3} {
			to := roundUp(stride, 16) + misaligned
			all := make([]float32, rows*to+32)
			dst := all[16:]
			for uintptr(unsafe.Pointer(&dst[0]))%64 != 0 {
				dst = dst[1:]
			}
			for i := range all {
				all[i] = float32(i)
			}
			want := clone(dst)
			for i, f := range factor.x {
				for j := range n {
					want[i*to+j] = f * src.x[i*stride+j]
				}
			}
			if StreamRows(dst, to, src.x, stride, n, factor.x); !same(dst, want) || all[len(all)-len(dst)-1] != float32(len(all)-len(dst)-1) {
				t.Fatalf("%d rows of %d, %d apart, differ", rows, n, to)
			}
		}
	})
}

func TestHide(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(2, 5))
		for _, n := range lengths {
			x, seen := newGuarded(r, n), make([]bool, n)
			want := clone(x.x)
			for i := range seen {
				if seen[i] = r.IntN(3) > 0; !seen[i] {
					want[i] = float32(math.Inf(-1))
				}
			}
			if Hide(x.x, seen); !same(x.x, want) || !x.intact() {
				t.Fatalf("%d elements: wrong result", n)
			}
		}
	})
}

func TestRowDots(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(2, 9))
		for _, rows := range []int{0, 1, 7, 15, 16, 17, 40} {
			for _, n := range []int{0, 1, 5, 16, 33, 64, 100} {
				x, y := RowMajor(newGuarded(r, rows*(n+2)).x, n+2), RowMajor(newGuarded(r, rows*n).x, n)
				got, want := newGuarded(r, rows), make([]float32, 1)
				RowDots(got.x, x, y, n)
				for i, v := range got.x {
					Multiply(&Product{M: 1, N: 1, K: n, A: x.from(i, 0), B: Mat{y.from(i, 0).Data, 1, 1}, C: RowMajor(want, 1)})
					if !same([]float32{v}, want) {
						t.Fatalf("%d rows of %d: product of row %d is %v, and %v in Multiply", rows, n, i, v, want[0])
					}
				}
				if !got.intact() {
					t.Fatalf("%d rows of %d: wrote too far", rows, n)
				}
			}
		}
	})
}

func TestBits(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(2, 6))
		for _, n := range lengths {
			seen, words := make([]bool, n), (n+63)/64
			got, want := make([]uint64, words+2), make([]uint64, words+2)
			for i := range got {
				got[i], want[i] = r.Uint64(), 0
			}
			want[0], want[words+1] = got[0], got[words+1]
			for i := range seen {
				if seen[i] = r.IntN(3) > 0; seen[i] {
					want[1+i/64] |= 1 << (i % 64)
				}
			}
			if Bits(got[1:1+words], seen); !slices.Equal(got, want) {
				t.Fatalf("%d booleans: bits %x, want %x", n, got, want)
			}
		}
	})
}

func TestRowsPanic(t *testing.T) {
	x := make([]float32, 20)
	for name, f := range map[string]func(){
		"too short":      func() { RowMax(x[:3], x, 9, 5) },
		"overlapping":    func() { RowMax(x[:3], x, 4, 5) },
		"lengths differ": func() { PowerRows(x, 4, 4, 1, x[:3], x[:2]) },
		"hide":           func() { Hide(x, make([]bool, 19)) },
		"bits":           func() { Bits(make([]uint64, 2), make([]bool, 64)) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

// Panels compute the same as Multiply, bit for bit, for any part of the rows and columns.
func TestMultiplyPanels(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(2, 7))
		for _, s := range []struct{ m, n, k int }{
			{1, 1, 1}, {12, 10, 50}, {5, 64, 7}, {6, 65, 64}, {12, 130, 33}, {60, 200, 20}, {7, 3, 0}, {13, 300, 64},
		} {
			for _, transposed := range []bool{false, true} {
				name := fmt.Sprintf("%dx%dx%d, transposed=%v", s.m, s.n, s.k, transposed)
				a, b := RowMajor(newGuarded(r, s.m*s.k).x, s.k), RowMajor(newGuarded(r, s.k*s.n).x, s.n)
				if transposed {
					a, b = RowMajor(a.Data, s.m).T(), RowMajor(b.Data, s.k).T()
				}
				want := newGuarded(r, s.m*s.n)
				got := clone(want.x)
				Multiply(&Product{M: s.m, N: s.n, K: s.k, A: a, B: b, C: RowMajor(want.x, s.n), Accumulate: true})
				var p Panels
				if transposed || !p.Use(b, s.k, s.n) {
					p.Copy(b, s.k, s.n)
				}
				// In two steps of k and by columns.
				middle := s.k / 3
				for j, j1 := 0, 0; j < s.n || j == 0; j = j1 {
					j1 = min(j+panelAlign()*(1+r.IntN(6)), s.n)
					c := Mat{got[j:], s.n, 1}
					MultiplyPanels(c, a, s.m, &p, 0, middle, j, j1, true)
					if s.k > 0 {
						MultiplyPanels(c, a.from(0, middle), s.m, &p, middle, s.k, j, j1, true)
					}
				}
				if !same(got, want.x) {
					t.Errorf("%s differs from Multiply", name)
				}
			}
		}
	})
}
