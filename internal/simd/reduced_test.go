package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// sizesOfRounded are the depths and columns of the products in these tests.
var sizesOfRounded = [][2]int{{1, 1}, {2, 3}, {3, 16}, {5, 17}, {31, 64}, {67, 83}, {128, 48}, {129, 131}, {384, 64}, {521, 193}, {777, 70}, {1537, 64}}

// newRounded returns a matrix for products in reduced precision, and random columns for it.
func newRounded(f Format, k, n int, r *rand.Rand) (w *Panels, columns [][]float32) {
	w = NewPanels(k, n, f, true, newBytes)
	for range n {
		columns = append(columns, gaussians(r, k))
	}
	return w, columns
}

func newBytes(n int) []byte { return make([]byte, n) }

func gaussians(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// group128 returns the group of 128 elements that contains element i.
func group128(x []float32, i int) []float32 { return x[i/128*128 : min(i/128*128+128, len(x))] }

// roundedInputs is rounded for a row of A.
func roundedInputs(f Format, x []float32) []float64 {
	if f == BFloat16 {
		return rounded(f, x)
	}
	y := make([]float64, len(x))
	for i, v := range x {
		g := group128(x, i)
		low, high := min(slices.Min(g), 0), max(slices.Max(g), 0)
		inverse := 255 / (high - low)
		zero := math.RoundToEven(float64(low * inverse))
		y[i] = (min(math.RoundToEven(float64(v*inverse))-zero, 255) + zero) * float64((high-low)*(1./255))
	}
	return y
}

// rounded returns the values of a vector of weights as rounded: the formula of each format.
func rounded(f Format, x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		if f == BFloat16 {
			y[i] = float64(math.Float32frombits(uint32(NearestBFloat16(v)) << 16))
			continue
		}
		most := Magnitude(group128(x, i))
		y[i] = float64(float32(math.RoundToEven(float64(v)*(127/float64(most)))) * (most / 127))
	}
	return y
}

// Products of rounded inputs are near the formula in float64; an element has the same bits in any company.
func TestRounded(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 8))
		for _, size := range sizesOfRounded {
			testRounded(t, BFloat16, size[0], size[1], r)
			eachQuads(func(string) { testRounded(t, Int8, size[0], size[1], r) })
		}
	})
}

func testRounded(t *testing.T, f Format, k, n int, r *rand.Rand) {
	t.Helper()
	w, columns := newRounded(f, k, n, r)
	var want [][]float64             // columns
	for j, at := 0, 0; j < n; at++ { // parts of panels, then whole panels
		cols := min(n-j, []int{1, 2, w.Width}[min(at, 2)], w.Width-j%w.Width)
		x := slices.Concat(columns[j : j+cols]...)
		half := make([]uint16, len(x))
		ToBFloat16(half, x)
		if at%2 == 0 {
			w.SetBFloat16(j, cols, half)
			FromBFloat16(x, half)
		} else {
			w.Set(j, cols, RowMajor(x, k).T())
		}
		for c := range cols {
			want = append(want, rounded(f, x[c*k:][:k]))
		}
		j += cols
	}
	column := make([]float32, k)
	for j := range n {
		w.Column(column, j)
		for i, v := range column {
			if v != float32(want[j][i]) {
				t.Fatalf("%d×%d: element %d of column %d is %v, want %v", k, n, i, j, v, want[j][i])
			}
		}
	}
	const rows = 37
	a, bias := gaussians(r, rows*(k+3)), gaussians(r, n)
	sums, sizes := make([]float64, rows*n), make([]float64, rows*n) // of the formula, and of its absolute terms
	for i := range rows {
		x := a[i*(k+3):][:k]
		inputs, span := roundedInputs(f, x), 0.
		if f == Int8 {
			span = float64(slices.Max(x) - slices.Min(x))
		}
		for j, column := range want {
			sum, size := 0., 1.
			for i, v := range inputs { // zero points add terms that cancel
				sum, size = sum+v*column[i], size+math.Abs(column[i])*(math.Abs(v)+span)
			}
			sums[i*n+j], sizes[i*n+j] = sum, size
		}
	}
	for _, b := range [][]float32{nil, bias} {
		c, one := make([]float32, rows*n), make([]float32, n)
		w.Multiply(RowMajor(c, n), RowMajor(a, k+3), rows, 0, n, b, 0)
		for i := range rows {
			x := a[i*(k+3):][:k]
			w.Multiply(RowMajor(one, n), RowMajor(x, k), 1, 0, n, b, n)
			if !slices.Equal(one, c[i*n:][:n]) {
				t.Fatalf("%v %d×%d, row %d: other bits than alone", f, k, n, i)
			}
			for j := range n {
				sum, size := sums[i*n+j], sizes[i*n+j]
				if b != nil {
					sum, size = sum+float64(b[j]), size+math.Abs(float64(b[j]))
				}
				if got := float64(c[i*n+j]); !(math.Abs(got-sum) <= 0x1p-22*size) {
					t.Fatalf("%v %d×%d: element %d %d is %v, want %v", f, k, n, i, j, got, sum)
				}
			}
		}
	}
}

// Groups of zeros, of tiny and of large numbers, and of numbers that are not finite.
func TestQuadsOfExtremes(t *testing.T) {
	onEach(t, func(t *testing.T) {
		const k = 200
		nan, inf := float32(math.NaN()), float32(math.Inf(1))
		for name, c := range map[string]struct {
			x    [2]float32 // element 3 of each group, the others are 0
			want float32    // of the product with ones
		}{
			"zeros": {want: 0}, "tiny": {[2]float32{0x1p-140, 1}, 1}, "least": {[2]float32{0x1p-118}, 0x1p-118},
			"large": {[2]float32{0x1p112, 0x1p112}, 0x1p113}, "nan": {[2]float32{1, nan}, nan}, "inf": {[2]float32{1, inf}, nan},
		} {
			w := NewPanels(k, 1, Int8, true, newBytes)
			x, ones, got := make([]float32, k), make([]float32, k), make([]float32, 2)
			for i, v := range c.x {
				x[128*i+3] = v
			}
			for i := range ones {
				ones[i] = 1
			}
			w.Set(0, 1, RowMajor(ones, k).T())
			w.Multiply(RowMajor(got[:1], 1), RowMajor(x, k), 1, 0, 1, nil, 0)
			w.Set(0, 1, RowMajor(x, k).T())
			w.Multiply(RowMajor(got[1:], 1), RowMajor(ones, k), 1, 0, 1, nil, 0)
			for i, y := range got {
				if !(math.Abs(float64(y-c.want)) <= 0x1p-22*float64(c.want)) && (y == y || c.want == c.want) {
					t.Errorf("%s: product %d is %v, want %v", name, i, y, c.want)
				}
			}
		}
	})
}

func BenchmarkPackedMultiply(b *testing.B) {
	benchEach(b, func(b *testing.B) {
		const k, n = 768, 768
		for _, rows := range []int{1, 14, 128} {
			for _, f := range []Format{Float32, BFloat16, Int8} {
				w := NewPanels(k, n, f, f != Float32, newBytes)
				a, c := make([]float32, rows*k), make([]float32, rows*n)
				b.Run(fmt.Sprintf("rows=%d/format=%d", rows, f), func(b *testing.B) {
					for b.Loop() {
						w.Multiply(RowMajor(c, n), RowMajor(a, k), rows, 0, n, nil, n)
					}
					b.ReportMetric(2*float64(rows*k*n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
				})
			}
		}
	})
}

// A rounded product is the product of rounded numbers, for every layout, also where zeros need care.
func TestRoundedProducts(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(15, 16))
		for n, size := range sizesOfRounded {
			k, cols := size[0], size[1]
			rows := []int{1, 13, 130}[n%3]
			a, b, c := gaussians(r, rows*k), gaussians(r, k*cols), gaussians(r, rows*cols)
			for layout := range 16 {
				if n > 4 && (layout+n)%3 > 0 {
					continue
				}
				p := Product{M: rows, N: cols, K: k, A: RowMajor(a, k), B: RowMajor(b, cols), Accumulate: layout&4 > 0}
				if layout&1 > 0 {
					p.A = RowMajor(a, rows).T()
				}
				if layout&2 > 0 {
					p.B = RowMajor(b, k).T()
				}
				if p.Sparse = layout&8 > 0; p.Sparse {
					p.B.Data = slices.Clone(b)
					for j := range cols {
						p.B.Data[(k/2)*p.B.Row+j*p.B.Col] = float32(math.Inf(1))
					}
					p.A.Data = slices.Clone(a)
					for i := range rows {
						p.A.Data[i*p.A.Row+(k/2)*p.A.Col] = 0
					}
				}
				want, got := p, p
				want.C, got.C, got.Rounded = RowMajor(slices.Clone(c), cols), RowMajor(slices.Clone(c), cols), true
				want.A.Data, want.B.Data = roundedFloats(p.A.Data), roundedFloats(p.B.Data)
				Multiply(&want)
				if Multiply(&got); !slices.Equal(got.C.Data, want.C.Data) {
					t.Fatalf("%d×%d×%d, layout %d: other bits than the product of rounded floats", rows, k, cols, layout)
				}
			}
		}
	})
}

func roundedFloats(x []float32) []float32 {
	y := make([]float32, len(x))
	for i, v := range rounded(BFloat16, x) {
		y[i] = float32(v)
	}
	return y
}

// Products with rounded panels have the bits of float32 products of rounded numbers, for every layout of the matrix.
func TestRoundedPanels(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(13, 14))
		for _, size := range sizesOfRounded {
			k, n := size[0], size[1]
			const rows = 13
			a, b := gaussians(r, rows*k), gaussians(r, k*n)
			columns := make([]float32, n*k)
			for i, v := range b {
				columns[i%n*k+i/n] = v
			}
			layout := NewPanelLayout(k, n)
			stored := make([]float32, layout.Len())
			for i, v := range b {
				stored[layout.At(i/n, i%n)] = v
			}
			for k0 := 0; k0 < min(k, 35); k0 += 34 {
				var plain, p Panels
				plain.Copy(RowMajor(roundedFloats(b), n), k, n)
				want, got := make([]float32, rows*n), make([]float32, rows*n)
				MultiplyPanels(RowMajor(want, n), RowMajor(roundedFloats(a), k), rows, &plain, k0, k, 0, n, false)
				p.Rounded = true
				for form, set := range []func(){
					func() { p.Copy(RowMajor(b, n), k, n) },
					func() { p.Copy(RowMajor(columns, k).T(), k, n) },
					func() { p.View(layout, stored) },
				} {
					set()
					if MultiplyPanels(RowMajor(got, n), RowMajor(a, k), rows, &p, k0, k, 0, n, false); !slices.Equal(got, want) {
						t.Fatalf("%d×%d from row %d, layout %d: other bits than products of rounded floats", k, n, k0, form)
					}
				}
			}
		}
	})
}
