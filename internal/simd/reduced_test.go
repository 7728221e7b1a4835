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

// newRounded returns a matrix of random bfloat16 whose inputs are rounded. The memory around it is guarded.
func newRounded(k, n int, r *rand.Rand) (w *Packed, columns [][]float32) {
	w = &Packed{StoredPanels: StoredPanels{PanelLayout: NewPanelLayout(k, n), Stored: Stored{Format: BFloat16}}, Rounded: true}
	w.Memory = make([]byte, w.Size())
	for range n {
		columns = append(columns, gaussians(r, k))
	}
	return w, columns
}

func gaussians(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

func rounded(x float32) float64 {
	return float64(math.Float32frombits(uint32(NearestBFloat16(x)) << 16))
}

// Products of rounded inputs are near the formula in float64; an element has the same bits in any company.
func TestRounded(t *testing.T) {
	onEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 8))
		for _, size := range sizesOfRounded {
			k, n := size[0], size[1]
			w, columns := newRounded(k, n, r)
			for j, at := 0, 0; j < n; at++ { // parts of panels, then whole panels
				cols := min(n-j, []int{1, 2, w.Width}[min(at, 2)], w.Width-j%w.Width)
				x := slices.Concat(columns[j : j+cols]...)
				if at%2 == 0 {
					half := make([]uint16, len(x))
					ToBFloat16(half, x)
					w.SetBFloat16(j, cols, half)
				} else {
					w.Set(j, cols, RowMajor(x, k).T())
				}
				j += cols
			}
			column := make([]float32, k)
			for j := range n {
				w.Column(column, j)
				for i, v := range column {
					if float64(v) != rounded(columns[j][i]) {
						t.Fatalf("%d×%d: element %d of column %d is %v, want %v", k, n, i, j, v, rounded(columns[j][i]))
					}
				}
			}
			const rows = 14
			a, bias := gaussians(r, rows*(k+3)), gaussians(r, n)
			for _, b := range [][]float32{nil, bias} {
				c := make([]float32, rows*n)
				w.Multiply(RowMajor(c, n), RowMajor(a, k+3), rows, 0, n, b, 0)
				one := make([]float32, n)
				for i := range rows {
					w.Multiply(RowMajor(one, n), RowMajor(a[i*(k+3):], k+3), 1, 0, n, b, n)
					if !slices.Equal(one, c[i*n:][:n]) {
						t.Fatalf("%d×%d, row %d: other bits than alone", k, n, i)
					}
					for j := range n {
						want, size := 0., 0.
						if b != nil {
							want = float64(b[j])
						}
						for f := range k {
							term := rounded(a[i*(k+3)+f]) * rounded(columns[j][f])
							want, size = want+term, size+math.Abs(term)
						}
						if got := float64(c[i*n+j]); !(math.Abs(got-want) <= 0x1p-22*(size+math.Abs(want)+1)) {
							t.Fatalf("%d×%d: element %d %d is %v, want %v", k, n, i, j, got, want)
						}
					}
				}
			}
		}
	})
}

func BenchmarkPackedMultiply(b *testing.B) {
	benchEach(b, func(b *testing.B) {
		const k, n = 768, 768
		for _, rows := range []int{1, 14, 128} {
			for _, rounded := range []bool{false, true} {
				w := &Packed{StoredPanels: StoredPanels{PanelLayout: NewPanelLayout(k, n), Stored: Stored{Format: Float32}}}
				if rounded {
					w.Format, w.Rounded = BFloat16, true
				}
				w.Memory = make([]byte, w.Size())
				a, c := make([]float32, rows*k), make([]float32, rows*n)
				b.Run(fmt.Sprintf("rows=%d/rounded=%t", rows, rounded), func(b *testing.B) {
					for b.Loop() {
						w.Multiply(RowMajor(c, n), RowMajor(a, k), rows, 0, n, nil, n)
					}
					b.ReportMetric(2*float64(rows*k*n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
				})
			}
		}
	})
}
