package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// limbsOf returns the three bfloat16 whose sum is x.
func limbsOf(x float32) (l [3]float32) {
	for i := range l {
		l[i] = math.Float32frombits((math.Float32bits(x) + 0x8000) &^ 0xffff)
		x -= l[i]
	}
	return l
}

// tileReference computes a product as the comment in amx.go describes.
func tileReference(p *Product, a, b, c Mat) []float32 {
	steps := (p.K + 31) / 32 * 32
	// Limbs of rows of A and of columns of B, with zeros for numbers without limbs.
	cut := func(m Mat, rows int) [][3]float32 {
		l := make([][3]float32, rows*steps)
		for i := range rows {
			for k := range p.K {
				if x := m.Data[i*m.Row+k*m.Col]; finiteLimbs(x) {
					l[i*steps+k] = limbsOf(x)
				}
			}
		}
		return l
	}
	rows, columns := cut(a, p.M), cut(b.T(), p.N)
	out := make([]float32, p.M*p.N)
	for i := range p.M {
		for j := range p.N {
			var acc float32
			switch {
			case p.Bias != nil:
				acc = p.Bias[j]
			case p.Accumulate:
				acc = c.Data[i*c.Row+j]
			}
			for block := 0; block < p.K; block += limbDepthOfTest {
				end := min(block+limbDepthOfTest, p.K)
				for k := block; k < end; k += 32 {
					x, y := rows[i*steps+k:], columns[j*steps+k:]
					for _, o := range [][2]int{{2, 0}, {1, 0}, {1, 1}, {0, 1}, {0, 2}, {0, 0}} {
						var even, odd float32
						for q := range 16 {
							even = fma32(x[q][o[0]], y[q][o[1]], even)
							odd = fma32(x[q+16][o[0]], y[q+16][o[1]], odd)
						}
						acc += even + odd
					}
				}
				for k := block; k < end; k++ {
					x, y := a.Data[i*a.Row+k*a.Col], b.Data[k*b.Row+j*b.Col]
					if !(finiteLimbs(x) && finiteLimbs(y)) && !(p.Sparse && x == 0) {
						acc += float32(x * y)
					}
				}
			}
			out[i*p.N+j] = acc
		}
	}
	return out
}

const limbDepthOfTest = 256

func finiteLimbs(x float32) bool { return x < 0x1.ffp127 && x > -0x1.ffp127 }

// onTileUnits makes the test run on tile units, and skips it if the machine has none.
func onTileUnits(t *testing.T) {
	for _, i := range impls {
		if i == amx {
			best := active
			t.Cleanup(func() { active = best })
			active = amx
			if hasTiles() {
				return
			}
		}
	}
	t.Skip("this machine has no tile units")
}

// limbless contains numbers without limbs.
var limbless = []float32{3.4e38, -3.39e38, float32(math.Inf(1)), float32(math.NaN()), math.Float32frombits(0x7fffffff)}

// drawOptions chooses the initial values of the sums of p, and whether zeros count.
func drawOptions(r *rand.Rand, p *Product) {
	switch r.IntN(3) {
	case 0:
		p.Accumulate = true
	case 1:
		bias, _ := matrix(r, 1, p.N, 1, 0)
		p.Bias = bias.Data[:p.N]
	}
	p.Sparse = r.IntN(2) == 0
}

func TestMultiplyOnTileUnits(t *testing.T) {
	onTileUnits(t)
	r := rand.New(rand.NewPCG(3, 4))
	sizes := []int{64, 65, 79, 96, 97, 128, 131}
	for trial := range 30 {
		p := &Product{M: []int{1, 2, 15, 16, 17, 31, 33, 67}[r.IntN(8)], N: sizes[r.IntN(len(sizes))], K: sizes[r.IntN(len(sizes))], Count: 1 + r.IntN(3), Tiles: true}
		switch trial % 15 {
		case 0:
			p.K = 257 + r.IntN(300)
		case 1:
			p.N, p.M = 769+r.IntN(100), 3
		case 2: // enough for all processors
			p.M, p.N, p.K, p.Count = 150+r.IntN(100), 150+r.IntN(50), 260, 1
		}
		p.A, p.StepA = matrix(r, p.M, p.K, p.Count, r.IntN(4))
		p.B, p.StepB = matrix(r, p.K, p.N, p.Count, r.IntN(4))
		p.C, p.StepC = matrix(r, p.M, p.N, p.Count, r.IntN(2)*2)
		drawOptions(r, p)
		for range r.IntN(3) {
			m := []*Mat{&p.A, &p.B}[r.IntN(2)]
			m.Data[r.IntN(len(m.Data))] = limbless[r.IntN(len(limbless))]
		}
		checkProduct(t, p)
	}
}

// Products on tile units are more exact than a chain of multiply-adds: on numbers of similar
// magnitude, numbers that cancel, numbers of one sign, and numbers spread over twelve powers of
// ten.
func TestTilesAreExact(t *testing.T) {
	onTileUnits(t)
	r := rand.New(rand.NewPCG(5, 6))
	spread := func() float32 {
		return float32(math.Copysign(math.Pow(10, 12*r.Float64()-6), r.Float64()-0.5))
	}
	normal := func() float32 { return float32(r.NormFloat64()) }
	for _, c := range []struct {
		name    string
		draw    func() float32
		cancels bool
		most    float64 // limit, as a fraction of the mean square error of a chain
	}{
		{"normal", normal, false, 0.5},
		{"cancelling", normal, true, 0.5},
		{"positive", r.Float32, false, 0.5},
		{"spread", spread, false, 1},
	} {
		for _, depth := range []int{64, 256, 768, 1024} {
			const m, n = 48, 80
			a, b := make([]float32, m*depth), make([]float32, depth*n)
			for _, x := range [][]float32{a, b} {
				for i := range x {
					x[i] = c.draw()
				}
			}
			if c.cancels {
				half := depth / 2
				for k := range half {
					for i := range m {
						a[i*depth+k+half] = a[i*depth+k] * (1 + 1e-4*normal())
					}
					for j := range n {
						b[(k+half)*n+j] = -b[k*n+j]
					}
				}
			}
			product := func(tiles bool) (square float64) {
				out := make([]float32, m*n)
				Multiply(&Product{M: m, N: n, K: depth, A: RowMajor(a, depth), B: RowMajor(b, n), C: RowMajor(out, n), Tiles: tiles})
				for i := range m {
					for j := range n {
						exact := 0.0
						for k := range depth {
							exact += float64(a[i*depth+k]) * float64(b[k*n+j])
						}
						e := float64(out[i*n+j]) - exact
						square += e * e
					}
				}
				return square
			}
			if ratio := product(true) / product(false); !(ratio < c.most) {
				t.Errorf("%s numbers, depth %d: the ratio of mean square errors to a chain is %.3g, want less than %g", c.name, depth, ratio, c.most)
			} else {
				t.Logf("%s, depth %d: %.3g", c.name, depth, ratio)
			}
		}
	}
}

// Products of small numbers are close to the exact products.
func TestTilesOfSmallNumbers(t *testing.T) {
	onTileUnits(t)
	r := rand.New(rand.NewPCG(7, 8))
	const m, n, depth = 32, 64, 64
	for _, c := range []struct{ a, b, relative, absolute float64 }{
		{1e-20, 1, 1e-6, 0},
		{1e-30, 1, 1e-6, 0},
		{3e-33, 1, 2e-6, 0},
		{1e-36, 1, 5e-3, 0},
		{1e-10, 1e-18, 1e-6, 0},
		{1e-18, 1e-18, 5e-3, 0},
		{1e-20, 1e-20, 1, 0},
	} {
		a, b := make([]float32, m*depth), make([]float32, depth*n)
		for i := range a {
			a[i] = float32(c.a * (1 + r.Float64()))
		}
		for i := range b {
			b[i] = float32(c.b * (1 + r.Float64()))
		}
		out := make([]float32, m*n)
		Multiply(&Product{M: m, N: n, K: depth, A: RowMajor(a, depth), B: RowMajor(b, n), C: RowMajor(out, n), Tiles: true})
		worst := 0.0
		for i := range m {
			for j := range n {
				exact := 0.0
				for k := range depth {
					exact += float64(a[i*depth+k]) * float64(b[k*n+j])
				}
				e := math.Abs(float64(out[i*n+j]) - exact)
				worst = max(worst, e/exact)
				if e > c.relative*exact && e > c.absolute {
					t.Fatalf("numbers of %g and %g: %g, want %g", c.a, c.b, out[i*n+j], exact)
				}
			}
		}
		t.Logf("%g by %g: %.2g", c.a, c.b, worst)
	}
}

// Results close to 0 equal the results of vectors, for few and many rows. Only results below all
// normal numbers may be exactly 0.
func TestTinyResultsOnTileUnits(t *testing.T) {
	onTileUnits(t)
	r := rand.New(rand.NewPCG(7, 8))
	const n, depth = 80, 300
	for _, c := range []struct{ a, b float64 }{{1, 1}, {1e-20, 1}, {3e-33, 1}, {1e-36, 1}, {1e-10, 1e-18}, {1e-18, 1e-18}, {1e-20, 1e-20}} {
		for _, m := range []int{1, 3, 40, 60} {
			a, _ := matrix(r, m, depth, 1, 0)
			b, _ := matrix(r, depth, n, 1, m%2)
			bias := make([]float32, n)
			near := 1e-4 * c.a * c.b
			for i := range a.Data {
				a.Data[i] *= float32(c.a)
			}
			for i := range b.Data {
				b.Data[i] *= float32(c.b)
			}
			for j := range bias {
				bias[j] = float32(r.NormFloat64() * c.a * c.b)
			}
			want, got := make([]float32, m*n), make([]float32, m*n)
			for _, bias := range [][]float32{nil, bias} {
				p := Product{M: m, N: n, K: depth, A: a, B: b, C: RowMajor(want, n), Bias: bias}
				Multiply(&p)
				p.C.Data, p.Tiles = got, true
				Multiply(&p)
				compareTiny(t, fmt.Sprintf("%d rows of %g by %g", m, c.a, c.b), got, want, near)
			}
		}
	}
}

// compareTiny fails unless numbers close to 0 are equal and other numbers are near each other.
func compareTiny(t *testing.T, what string, got, want []float32, near float64) {
	t.Helper()
	for i, v := range got {
		w := want[i]
		d := math.Abs(float64(v - w))
		if next := v != 0 && v < leastOnTiles && v > -leastOnTiles; next && v != w || d > max(near, 0x1p-120) {
			t.Fatalf("%s: element %d is %g, and %g with vectors", what, i, v, w)
		}
	}
}

// Panels, in steps of 32 of k and by columns, compute the same as Multiply on tile units, from rows
// and from columns. RowDots computes the same as the diagonal.
func TestPanelsOnTileUnits(t *testing.T) {
	onTileUnits(t)
	r := rand.New(rand.NewPCG(9, 10))
	for _, s := range []struct{ m, n, k int }{{1, 64, 64}, {6, 65, 70}, {40, 200, 129}, {33, 130, 40}} {
		for layout := range 4 {
			a, _ := matrix(r, s.m, s.k, 1, layout)
			b, _ := matrix(r, s.k, s.n, 1, 3-layout)
			if layout == 1 {
				b.Data[len(b.Data)/2] = float32(math.Inf(1))
			}
			want := newGuarded(r, s.m*s.n)
			got := clone(want.x)
			Multiply(&Product{M: s.m, N: s.n, K: s.k, A: a, B: b, C: RowMajor(want.x, s.n), Accumulate: true, Tiles: true, Sparse: true})
			p := Panels{Tiles: true, Sparse: true}
			p.Copy(b, s.k, s.n)
			for j := 0; j < s.n; j += p.Width() {
				for k := 0; k < s.k; k += 32 {
					MultiplyPanels(Mat{got[j:], s.n, 1}, a.from(0, k), s.m, &p, k, min(k+32, s.k), j, min(j+p.Width(), s.n), true)
				}
			}
			if !same(got, want.x) {
				t.Errorf("%v, layout %d: differs from Multiply", s, layout)
			}
			if layout == 1 || s.m > s.n {
				continue
			}
			clear(want.x)
			Multiply(&Product{M: s.m, N: s.n, K: s.k, A: a, B: b, C: RowMajor(want.x, s.n), Tiles: true})
			dots := make([]float32, s.m)
			RowDots(dots, a, b.T(), s.k, true)
			for i, v := range dots {
				if v != want.x[i*s.n+i] {
					t.Errorf("%v: product of row %d is %v, and %v in Multiply", s, i, v, want.x[i*s.n+i])
				}
			}
		}
	}
}

// A zero of a sparse matrix on the right contributes nothing, even against an infinity of A.
func TestSparseRightOnTileUnits(t *testing.T) {
	onTileUnits(t)
	const m, n, k = 3, 37, 61
	r := rand.New(rand.NewPCG(11, 12))
	a, _ := matrix(r, m, k, 1, 0)
	b, _ := matrix(r, k, n, 1, 0)
	for j := 0; j < n; j += 2 {
		b.Data[5*b.Row+j] = 0
	}
	product := func(x float32) []float32 {
		a.Data[a.Row+5] = x
		p := Panels{Tiles: true, SparseRight: true}
		p.Copy(b, k, n)
		c := make([]float32, m*n)
		MultiplyPanels(RowMajor(c, n), a, m, &p, 0, k, 0, n, false)
		return c
	}
	want, inf := product(0), float32(math.Inf(1))
	for i, v := range product(inf) {
		w := want[i]
		if y := b.Data[5*b.Row+i%n]; i/n == 1 && y != 0 {
			w = inf * y
		}
		if v != w {
			t.Errorf("element %d of row %d is %v, want %v", i%n, i/n, v, w)
		}
	}
}

// Products with stored numbers equal Multiply with their values as floats: with the kernels for few
// rows and without, for any part of the matrix, and with numbers without limbs on either side.
func TestStoredOnTileUnits(t *testing.T) {
	onTileUnits(t)
	r := rand.New(rand.NewPCG(13, 14))
	special := []float32{float32(math.Inf(1)), float32(math.NaN()), math.Float32frombits(0x7fffffff), math.Float32frombits(0xff800001), 3.4e38, 1e-39, -1e-40, 0}
	for trial := range 400 {
		m := []int{1, 2, 4, 15, 16, 17, 33}[r.IntN(7)]
		l := NewPanelLayout([]int{32, 64, 70, 128, 512}[r.IntN(5)], []int{32, 64, 80, 128, 512}[r.IntN(5)])
		k0, j0 := 32*r.IntN(l.K/32), l.Width*r.IntN((l.N+l.Width-1)/l.Width)
		k1, j1 := k0+1+r.IntN(l.K-k0), j0+1+r.IntN(l.N-j0)
		b, floats := storedPanels(r, l, Float32+Format(trial%4))
		b.Tiles, b.Sparse = true, r.IntN(2) == 0
		spoil := trial%5 == 3
		if spoil && trial%2 == 0 && !b.Format.Scaled() {
			for range 3 {
				floats[l.At(r.IntN(l.K), r.IntN(l.N))] = special[r.IntN(len(special))]
			}
			b.Round(0, 1, floats, 1)
			floats = slices.Clone(b.Floats(0, len(floats), floats))
		}
		a, _ := matrix(r, m, k1-k0, 1, r.IntN(4))
		if spoil && trial%2 == 1 {
			a.Data[r.IntN(len(a.Data))] = special[r.IntN(len(special))]
		}
		rest := make([]float32, (k1-k0)*(j1-j0))
		for k := range k1 - k0 {
			for j := range j1 - j0 {
				rest[k*(j1-j0)+j] = floats[l.At(k0+k, j0+j)]
			}
		}
		c, _ := matrix(r, m, j1-j0, 1, r.IntN(2)*2)
		got, accumulate := clone(c.Data), r.IntN(2) == 0
		// Panels sum over all of k, where Multiply starts a new sum from time to time.
		p := Panels{Tiles: true, Sparse: b.Sparse}
		p.Copy(RowMajor(rest, j1-j0), k1-k0, j1-j0)
		MultiplyPanels(c, a, m, &p, 0, k1-k0, 0, j1-j0, accumulate)
		MultiplyStored(Mat{got, c.Row, 1}, a, m, &b, k0, k1, j0, j1, accumulate)
		if !same(got, c.Data) {
			t.Fatalf("trial %d: %d rows of %dx%d, %d to %d by %d to %d, format %d: differs from Panels", trial, m, l.K, l.N, k0, k1, j0, j1, b.Format)
		}
	}
}

// The kernel for few rows and contiguous columns of B computes the same bits.
func TestFewRowsOnTileUnits(t *testing.T) {
	onTileUnits(t)
	r := rand.New(rand.NewPCG(15, 16))
	for trial := range 120 {
		p := &Product{M: 1 + r.IntN(70), N: 64 + r.IntN(150), K: 32*(1+r.IntN(12)) + r.IntN(2)*r.IntN(32), Tiles: true}
		if trial%2 == 0 {
			p.M = 1 + r.IntN(4)
		}
		p.A, _ = matrix(r, p.M, p.K, 1, r.IntN(4))
		p.B, _ = matrix(r, p.N, p.K, 1, r.IntN(2)*2)
		p.B = p.B.T()
		p.C, _ = matrix(r, p.M, p.N, 1, r.IntN(2)*2)
		drawOptions(r, p)
		if trial%3 == 2 {
			m := []*Mat{&p.A, &p.B, &p.C}[r.IntN(3)]
			m.Data[r.IntN(len(m.Data))] = limbless[r.IntN(len(limbless))]
		}
		checkProduct(t, p)
	}
}
