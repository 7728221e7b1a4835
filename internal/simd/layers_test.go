package simd

import (
	"math"
	"math/rand/v2"
	"testing"
)

var (
	nan     = float32(math.NaN())
	inf     = float32(math.Inf(1))
	minus0  = float32(math.Copysign(0, -1))
	special = []float32{nan, inf, -inf, 0, minus0, math.SmallestNonzeroFloat32, -math.MaxFloat32}
)

// spoil puts special numbers into x.
func spoil(r *rand.Rand, x []float32) {
	for _, v := range special {
		if len(x) > 0 {
			x[r.IntN(len(x))] = v
		}
	}
}

func TestReLU(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(51, 52))
		for _, n := range lengths {
			x, dx, dy := newGuarded(r, n), newGuarded(r, n), newGuarded(r, n)
			spoil(r, x.x)
			spoil(r, dx.x)
			spoil(r, dy.x)
			y, grad := make([]float32, n), clone(dx.x)
			for i, v := range x.x {
				if y[i] = max(v, 0); v > 0 {
					grad[i] += dy.x[i]
				}
			}
			ReLUGrad(dx.x, dy.x, x.x)
			ReLU(x.x, x.x)
			if !same(x.x, y) || !same(dx.x, grad) || !x.intact() || !dx.intact() || !dy.intact() {
				t.Fatalf("wrong at length %d", n)
			}
		}
	})
}

func TestSoftmaxGrad(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(53, 54))
		for _, n := range lengths {
			dx, dy, y := newGuarded(r, n), newGuarded(r, n), newGuarded(r, n)
			mean, magnitude := 0.0, 0.0
			for i := range y.x {
				if y.x[i] = r.Float32() / float32(n); r.IntN(3) == 0 {
					y.x[i], dy.x[i] = []float32{0, minus0}[r.IntN(2)], []float32{nan, inf, 1}[r.IntN(3)]
					continue
				}
				mean += float64(y.x[i]) * float64(dy.x[i])
				magnitude += math.Abs(float64(y.x[i]) * float64(dy.x[i]))
			}
			before := clone(dx.x)
			SoftmaxGrad(dx.x, dy.x, y.x)
			bound := magnitude * float64(min(n, 1<<14)+10) / (1 << 24)
			for i, w := range y.x {
				want := float64(before[i])
				if w != 0 {
					want += float64(w) * (float64(dy.x[i]) - mean)
				}
				off := math.Abs(float64(dx.x[i]) - want)
				if w == 0 && off != 0 || !(off <= 3e-7*(math.Abs(want)+float64(w)*10)+float64(w)*bound) {
					t.Fatalf("length %d: element %d is %v, want %v", n, i, dx.x[i], want)
				}
			}
			// Hidden columns at the end change nothing.
			long := func(x []float32, v float32) []float32 {
				x = clone(x)
				for range 70 {
					x = append(x, v)
				}
				return x
			}
			more := long(before, 5)
			SoftmaxGrad(more, long(dy.x, nan), long(y.x, 0))
			if !same(more[:n], dx.x) || more[n] != 5 || !dx.intact() || !dy.intact() || !y.intact() {
				t.Fatalf("length %d: wrote outside, or a hidden element has an effect", n)
			}
		}
	})
}

func TestNorm(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(55, 56))
		for _, n := range lengths {
			x, gain, shift, dy := newGuarded(r, n), newGuarded(r, n), newGuarded(r, n), newGuarded(r, n)
			y, dx := newGuarded(r, n), newGuarded(r, n)
			const mean, inv, flat, along = 0.3, 1.7, 0.2, -0.4
			mean64, inv64 := float64(float32(mean)), float64(float32(inv))
			squares, sum, dot, sumAbs, dotAbs := 0.0, 0.0, 0.0, 0.0, 0.0
			before := clone(dx.x)
			Norm(y.x, x.x, gain.x, shift.x, mean, inv)
			NormGrad(dx.x, dy.x, x.x, gain.x, mean, inv, flat, along)
			near := func(what string, got float32, want, bound float64) {
				if off := math.Abs(float64(got) - want); !(off <= bound) {
					t.Fatalf("length %d: %s is %v, want %v within %v", n, what, got, want, bound)
				}
			}
			for i, v := range x.x {
				u, a, d := (float64(v)-mean64)*inv64, float64(gain.x[i]), float64(dy.x[i])
				squares += (float64(v) - mean64) * (float64(v) - mean64)
				sum, sumAbs = sum+a*d, sumAbs+math.Abs(a*d)
				dot, dotAbs = dot+a*d*u, dotAbs+math.Abs(a*d*u)
				near("result", y.x[i], a*u+float64(shift.x[i]), 4e-7*(math.Abs(a*u)+math.Abs(float64(shift.x[i]))+1))
				g := inv64 * (a*d - flat - u*along)
				near("gradient", dx.x[i], float64(before[i])+g, 4e-7*(math.Abs(a*d)*2+math.Abs(u)+math.Abs(float64(before[i]))+1))
			}
			terms := float64(min(n, 1<<14)+10) / (1 << 24)
			near("sum of squares", sumSquaresAbout(x.x, mean), squares, squares*terms)
			gotSum, gotDot := NormSums(dy.x, x.x, gain.x, mean, inv)
			near("sum", gotSum, sum, sumAbs*terms)
			near("product", gotDot, dot, dotAbs*terms)
			for _, g := range []guarded{x, gain, shift, dy, y, dx} {
				if !g.intact() {
					t.Fatalf("length %d: wrote outside", n)
				}
			}
		}
	})
}

// Sums over rows have the same order in every column, whatever the other columns are.
func TestSumsOverRows(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(57, 58))
		for _, size := range [][3]int{{0, 3, 5}, {3, 0, 5}, {1, 1, 1}, {7, 5, 9}, {5, 16, 16}, {3, 17, 40}, {11, 64, 64}, {13, 67, 70}, {300, 130, 130}, {2, 2100, 2101}, {40, 1100, 1100}} {
			rows, cols, stride := size[0], size[1], size[2]
			x, dy := newGuarded(r, max(0, (rows-1)*stride+cols)), newGuarded(r, max(0, (rows-1)*stride+cols))
			mean, inv := newGuarded(r, rows), newGuarded(r, rows)
			sum, gain, shift := newGuarded(r, cols), newGuarded(r, cols), newGuarded(r, cols)
			for i := range dy.x {
				if i%3 == 0 && cols > 1 {
					dy.x[i], x.x[i] = 0, []float32{nan, inf}[i%2]
				}
			}
			wantSum, wantGain, wantShift := clone(sum.x), clone(gain.x), clone(shift.x)
			for i := range rows {
				for j := range cols {
					d := dy.x[i*stride+j]
					wantSum[j] += d
					if d != 0 {
						wantGain[j] = fma32(d, (x.x[i*stride+j]-mean.x[i])*inv.x[i], wantGain[j])
						wantShift[j] += d
					}
				}
			}
			SumRows(sum.x, dy.x, rows, stride)
			NormGains(gain.x, shift.x, dy.x, x.x, mean.x, inv.x, stride)
			if !same(sum.x, wantSum) || !same(gain.x, wantGain) || !same(shift.x, wantShift) {
				t.Errorf("%d rows of %d: wrong", rows, cols)
			}
			for _, g := range []guarded{x, dy, mean, inv, sum, gain, shift} {
				if !g.intact() {
					t.Fatalf("%d rows of %d: wrote outside", rows, cols)
				}
			}
		}
	})
}

func TestRows(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(59, 60))
		for _, c := range [][4]int{ // rows, columns, strides
			{0, 3, 5, 4}, {3, 0, 5, 4}, {1, 1, 1, 1}, {7, 5, 9, 5}, {14, 16, 64, 16}, {14, 16, 16, 64}, {9, 64, 64, 0}, {11, 67, 70, 71}, {300, 33, 40, 130}, {2, 2100, 2101, 2103},
		} {
			rows, cols, dstStride, stride := c[0], c[1], c[2], c[3]
			long := func(stride int) int { return max(0, (rows-1)*stride+cols) }
			dst, x := newGuarded(r, long(dstStride)), newGuarded(r, long(stride))
			sum, moved := clone(dst.x), clone(dst.x)
			for i := range rows {
				for j := range cols {
					sum[i*dstStride+j] += x.x[i*stride+j]
					moved[i*dstStride+j] = x.x[i*stride+j]
				}
			}
			AddRows(dst.x, dstStride, x.x, stride, rows, cols)
			if !same(dst.x, sum) || !dst.intact() {
				t.Errorf("AddRows: %d rows of %d: wrong", rows, cols)
			}
			turned := make([]float32, rows*cols) // x transposed
			for i := range rows {
				for j := range cols {
					turned[j*rows+i] = x.x[i*stride+j]
				}
			}
			CopyTransposed(dst.x, dstStride, turned, rows, rows, cols)
			if !same(dst.x, moved) || !dst.intact() {
				t.Errorf("CopyTransposed: %d rows of %d: wrong", rows, cols)
			}
			copy(dst.x, sum)
			CopyRows(dst.x, dstStride, x.x, stride, rows, cols)
			if !same(dst.x, moved) || !dst.intact() || !x.intact() {
				t.Errorf("CopyRows: %d rows of %d: wrong", rows, cols)
			}
		}
	})
}

func TestLayerNorm(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(61, 62))
		for _, size := range [][2]int{{0, 5}, {3, 0}, {1, 1}, {7, 5}, {5, 16}, {3, 33}, {130, 64}, {4, 67}, {3, 8191}, {2, 1 << 14}, {2, 1<<14 + 1}} {
			rows, d := size[0], size[1]
			x, dst, gain, shift := newGuarded(r, rows*d), newGuarded(r, rows*d), newGuarded(r, d), newGuarded(r, d)
			mean, inv := newGuarded(r, rows), newGuarded(r, rows)
			if rows > 2 && d > 0 {
				x.x[d] = nan // affects its own row
			}
			LayerNorm(dst.x, x.x, gain.x, shift.x, mean.x, inv.x, 1e-5)
			for i := range rows {
				row, got := x.x[i*d:(i+1)*d], dst.x[i*d:(i+1)*d]
				var m, variance float64
				for _, v := range row {
					m += float64(v) / float64(d)
				}
				for _, v := range row {
					variance += (float64(v) - m) * (float64(v) - m) / float64(d)
				}
				for j, v := range row {
					u := (float64(v) - m) / math.Sqrt(variance+float64(float32(1e-5)))
					want := u*float64(gain.x[j]) + float64(shift.x[j])
					if off := math.Abs(float64(got[j]) - want); !(off <= 1e-5*(1+math.Abs(want))) && want == want {
						t.Fatalf("%d rows of %d: element %d of row %d is %v, want %v", rows, d, j, i, got[j], want)
					}
					if (got[j] == got[j]) != (want == want) {
						t.Fatalf("%d rows of %d: element %d of row %d is %v, want %v", rows, d, j, i, got[j], want)
					}
				}
				alone, one := make([]float32, d), make([]float32, 2)
				LayerNorm(alone, row, gain.x, shift.x, one[:1], one[1:], 1e-5)
				if !same(alone, got) || d > 0 && !same(one, []float32{mean.x[i], inv.x[i]}) {
					t.Errorf("%d rows of %d: row %d alone differs", rows, d, i)
				}
			}
			for _, g := range []guarded{x, dst, gain, shift, mean, inv} {
				if !g.intact() {
					t.Fatalf("%d rows of %d: wrote outside", rows, d)
				}
			}
		}
	})
}

func TestLayerNormGrad(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(63, 64))
		for _, size := range [][2]int{{0, 5}, {3, 0}, {1, 1}, {7, 5}, {5, 16}, {4, 33}, {130, 64}, {4, 67}, {3, 8191}, {2, 1 << 14}, {2, 1<<14 + 1}} {
			rows, d := size[0], size[1]
			x, dx, dy, gain := newGuarded(r, rows*d), newGuarded(r, rows*d), newGuarded(r, rows*d), newGuarded(r, d)
			mean, inv := newGuarded(r, rows), newGuarded(r, rows)
			hidden := -1
			if rows > 2 && d > 0 {
				hidden = 1 // a row with NaN but without a gradient
				x.x[d], mean.x[1], inv.x[1] = nan, nan, nan
				for i := range d {
					dy.x[d+i] = []float32{0, minus0}[i%2]
				}
			}
			before := clone(dx.x)
			LayerNormGrad(dx.x, dy.x, x.x, gain.x, mean.x, inv.x)
			for i := range rows {
				row := func(g []float32) []float32 { return g[i*d : (i+1)*d] }
				if i == hidden {
					if !same(row(dx.x), row(before)) {
						t.Errorf("%d rows of %d: a row without gradient changes dx", rows, d)
					}
					continue
				}
				var flat, along, flatAbs, alongAbs float64
				m, s := float64(mean.x[i]), float64(inv.x[i])
				for j, v := range row(x.x) {
					g := float64(gain.x[j]) * float64(row(dy.x)[j])
					u := (float64(v) - m) * s
					flat, along = flat+g/float64(d), along+g*u/float64(d)
					flatAbs, alongAbs = flatAbs+math.Abs(g)/float64(d), alongAbs+math.Abs(g*u)/float64(d)
				}
				for j, v := range row(x.x) {
					g := float64(gain.x[j]) * float64(row(dy.x)[j])
					u := (float64(v) - m) * s
					want := float64(row(before)[j]) + s*(g-flat-u*along)
					bound := 1e-6*(math.Abs(want)+math.Abs(s)*(math.Abs(g)+math.Abs(u*along))) + math.Abs(s)*(flatAbs+math.Abs(u)*alongAbs)*float64(d/4+10)/(1<<24)
					if off := math.Abs(float64(row(dx.x)[j]) - want); !(off <= bound) {
						t.Fatalf("%d rows of %d: element %d of row %d is %v, want %v within %v", rows, d, j, i, row(dx.x)[j], want, bound)
					}
				}
				alone := clone(row(before))
				LayerNormGrad(alone, row(dy.x), row(x.x), gain.x, mean.x[i:i+1], inv.x[i:i+1])
				if !same(alone, row(dx.x)) {
					t.Errorf("%d rows of %d: row %d alone differs", rows, d, i)
				}
			}
			for _, g := range []guarded{x, dx, dy, gain, mean, inv} {
				if !g.intact() {
					t.Fatalf("%d rows of %d: wrote outside", rows, d)
				}
			}
		}
	})
}
