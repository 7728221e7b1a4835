package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
)

// reference computes one product as the comment of Multiply describes.
func reference(p *Product, i int) []float32 {
	a, b, c := p.A, p.B, p.C
	if p.M*p.K > 0 {
		a.Data = a.Data[i*p.StepA:]
	}
	if p.N*p.K > 0 {
		b.Data = b.Data[i*p.StepB:]
	}
	c.Data = c.Data[i*p.StepC:]
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
			sum := &acc
			var later float32 // the sum of a block after the first
			for k := range p.K {
				if p.Blocks && k > 0 && k%sumBlock(p.K) == 0 {
					if sum == &later {
						acc += later
					}
					sum, later = &later, 0
				}
				x, y := a.Data[i*a.Row+k*a.Col], b.Data[k*b.Row+j*b.Col]
				if p.Sparse && (x == 0 || y == 0) {
					continue
				}
				*sum = fma32(x, y, *sum)
			}
			out[i*p.N+j] = acc + later + 0
		}
	}
	return out
}

// matrix returns a matrix with random elements and the distance to the next of count such matrices,
// in one of four layouts: by rows or by columns, dense or with gaps.
func matrix(r *rand.Rand, rows, cols, count, layout int) (m Mat, step int) {
	if layout&1 == 0 {
		m.Row, m.Col = cols, 1
	} else {
		m.Row, m.Col = 1, rows
	}
	if layout&2 != 0 {
		if layout&1 == 0 {
			m.Row += 3
		} else {
			m.Row, m.Col = 2, 2*rows+5
		}
	}
	step = max(rows-1, 0)*m.Row + max(cols-1, 0)*m.Col + 1 + layout
	m.Data = make([]float32, step*count)
	for i := range m.Data {
		m.Data[i] = float32(r.NormFloat64())
		if r.IntN(10) == 0 {
			m.Data[i] = 0
		}
	}
	return m, step
}

// productCase is a product and its results.
type productCase struct {
	*Product
	c    []float32      // the initial contents of C
	want [2][][]float32 // first index: 1 if the implementation does not fuse
}

func newProductCase(p *Product) *productCase {
	return &productCase{Product: p, c: slices.Clone(p.C.Data)}
}

// wanted computes the products with reference, which takes longer than the kernels.
func (p *productCase) wanted() [][]float32 {
	want := &p.want[0]
	if !fuses() {
		want = &p.want[1]
	}
	if *want == nil {
		copy(p.C.Data, p.c)
		for i := range max(p.Count, 1) {
			*want = append(*want, reference(p.Product, i))
		}
	}
	return *want
}

func checkProduct(t *testing.T, p *Product) {
	t.Helper()
	newProductCase(p).check(t)
}

// check computes the product, with the initial contents of C.
func (p *productCase) check(t *testing.T) {
	t.Helper()
	wanted := p.wanted()
	copy(p.C.Data, p.c)
	Multiply(p.Product)
	before := slices.Clone(p.c)
	for n, want := range wanted {
		for i := range p.M {
			for j := range p.N {
				at := n*p.StepC + i*p.C.Row + j
				got, w := p.C.Data[at], want[i*p.N+j]
				if math.Float32bits(got) != math.Float32bits(w) && !(got != got && w != w) {
					t.Fatalf("M=%d N=%d K=%d Count=%d product %d: C[%d][%d] = %v (%#x), want %v (%#x)",
						p.M, p.N, p.K, p.Count, n, i, j, got, math.Float32bits(got), w, math.Float32bits(w))
				}
				before[at] = got
			}
		}
	}
	for i, v := range before {
		if v != p.C.Data[i] && v == v {
			t.Fatalf("M=%d N=%d K=%d: wrote outside of C, at %d", p.M, p.N, p.K, i)
		}
	}
}

func TestMultiplyIsTheReferenceBitForBit(t *testing.T) {
	products := randomProducts()
	onEach(t, func(t *testing.T) {
		for _, p := range products {
			p.check(t)
		}
	})
}

func randomProducts() (list []*productCase) {
	r := rand.New(rand.NewPCG(1, 2))
	sizes := []int{0, 1, 2, 3, 4, 5, 7, 11, 13, 17, 31, 61, 67, 127}
	deep := []int{0, 1, 2, 3, 16, 31, 64, 67, 255, 256, 257, 521}
	trials := 200
	if testing.Short() {
		trials = 80
	}
	for trial := range trials {
		p := &Product{
			M: sizes[r.IntN(len(sizes))], N: sizes[r.IntN(len(sizes))], K: deep[r.IntN(len(deep))],
			Count: r.IntN(4),
		}
		if trial%10 == 0 {
			p.N = []int{257, 1031, 2053, 4099}[r.IntN(4)]
			p.M = 1 + r.IntN(3)
		}
		if trial%10 == 1 {
			p.Count = 50 + r.IntN(50)
			p.M, p.N, p.K = 1+r.IntN(12), 1+r.IntN(20), r.IntN(65)
		}
		if trial%5 == 2 {
			p.Blocks = true
			p.K = []int{0, 1, 255, 256, 257, 300, 521, 769, 1025}[r.IntN(9)]
		}
		count := max(p.Count, 1)
		p.A, p.StepA = matrix(r, p.M, p.K, count, r.IntN(4))
		p.B, p.StepB = matrix(r, p.K, p.N, count, r.IntN(4))
		p.C, p.StepC = matrix(r, p.M, p.N, count, r.IntN(2)*2)
		switch r.IntN(4) {
		case 0:
			p.StepB = 0
		case 1:
			p.StepA = 0
		case 2:
			if p.A.Col == 1 && p.A.Row >= p.K && p.C.Row == p.N { // continues from product to product
				p.StepA, p.StepB, p.StepC = p.M*p.A.Row, 0, p.M*p.C.Row
				p.A.Data = make([]float32, max(count*p.StepA, 1))
				for i := range p.A.Data {
					p.A.Data[i] = r.Float32()
				}
			}
		}
		switch r.IntN(3) {
		case 0:
			p.Accumulate = true
		case 1:
			bias, _ := matrix(r, 1, p.N, 1, 0)
			p.Bias = bias.Data[:p.N]
		}
		if r.IntN(3) == 0 {
			p.Sparse = true
			if len(p.B.Data) > 0 && r.IntN(2) == 0 {
				p.B.Data[r.IntN(len(p.B.Data))] = float32(math.NaN())
				p.B.Data[r.IntN(len(p.B.Data))] = float32(math.Inf(1))
			}
			if len(p.A.Data) > 0 && len(p.B.Data) > 0 && r.IntN(2) == 0 {
				p.A.Data[r.IntN(len(p.A.Data))] = float32(math.NaN())
				p.A.Data[r.IntN(len(p.A.Data))] = float32(math.Inf(-1))
				for range len(p.B.Data) / 2 {
					p.B.Data[r.IntN(len(p.B.Data))] = 0
				}
			}
		}
		list = append(list, newProductCase(p))
	}
	return list
}

func TestMultiplyOnAnyNumberOfThreads(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: repeats every product")
	}
	r := rand.New(rand.NewPCG(3, 4))
	var products []*productCase
	for _, size := range [][4]int{{67, 131, 263, 1}, {1, 3001, 61, 1}, {251, 7, 300, 2}, {127, 1, 67, 3}, {71, 127, 131, 2}} {
		for layout := range 8 {
			p := &Product{M: size[0], N: size[1], K: size[2], Count: size[3]}
			p.A, p.StepA = matrix(r, p.M, p.K, p.Count, layout&1)
			p.B, p.StepB = matrix(r, p.K, p.N, p.Count, layout>>1&1)
			p.C, p.StepC = matrix(r, p.M, p.N, p.Count, 0)
			if layout >= 4 {
				p.Sparse = true
				p.B.Data[len(p.B.Data)/2] = float32(math.NaN())
			}
			products = append(products, newProductCase(p))
		}
	}
	for _, procs := range []int{1, 2, 4} {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		onEach(t, func(t *testing.T) {
			for _, p := range products {
				p.check(t)
			}
		})
	}
}

func TestMultiplyIgnoresAppendedZeros(t *testing.T) {
	onEach(t, testAppendedZeros)
}

func testAppendedZeros(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 50 {
		m, n, k, extra := 1+r.IntN(20), 1+r.IntN(80), r.IntN(100), 1+r.IntN(300)
		a, _ := matrix(r, m, k+extra, 1, 0)
		b, _ := matrix(r, k+extra, n, 1, 0)
		for i := range m {
			clear(a.Data[i*a.Row+k : (i+1)*a.Row])
			if k > 0 {
				a.Data[i*a.Row] = -1e-30 // a product that underflows to -0
			}
		}
		if k > 0 {
			for j := range n {
				b.Data[j] = 1e-30
			}
		}
		short, long := make([]float32, m*n), make([]float32, m*n)
		Multiply(&Product{M: m, N: n, K: k, A: a, B: b, C: RowMajor(short, n)})
		Multiply(&Product{M: m, N: n, K: k + extra, A: a, B: b, C: RowMajor(long, n)})
		for i := range short {
			if math.Float32bits(short[i]) != math.Float32bits(long[i]) {
				t.Fatalf("element %d: %v with K=%d, %v with %d more zeros", i, short[i], k, long[i], extra)
			}
		}
	}
}

func TestMultiplyDoesNotAllocate(t *testing.T) {
	probe := sync.Pool{New: func() any { return new(scratch) }}
	often := func() {
		for range 50 {
			probe.Put(probe.Get())
		}
	}
	if testing.AllocsPerRun(100, often) > 0 {
		t.Skip("the race detector empties pools at random")
	}
	r := rand.New(rand.NewPCG(7, 8))
	for _, count := range []int{1, 40} {
		p := &Product{M: 70, N: 130, K: 90, Count: count}
		p.A, p.StepA = matrix(r, p.M, p.K, count, 1)
		p.B, p.StepB = matrix(r, p.K, p.N, count, 1)
		p.C, p.StepC = matrix(r, p.M, p.N, count, 0)
		for range 10 {
			Multiply(p)
		}
		if n := testing.AllocsPerRun(100, func() { Multiply(p) }); n > 0 {
			t.Errorf("Count=%d: %v allocations per call", count, n)
		}
	}
}

func TestMultiplyRejectsBadSizes(t *testing.T) {
	f := func(n int) []float32 { return make([]float32, n) }
	for _, c := range []struct {
		p    Product
		want string
	}{
		{Product{M: 2, N: 3, K: 5, A: RowMajor(f(9), 5), B: RowMajor(f(15), 3), C: RowMajor(f(6), 3)},
			"simd: Multiply: A is 2x5 with Row=5, Col=1, 1 of them 0 apart: needs 10 floats, has 9"},
		{Product{M: 2, N: 3, K: 5, A: RowMajor(f(10), 5), B: RowMajor(f(15), 3), C: RowMajor(f(6), 3), Count: 2, StepC: 6},
			"simd: Multiply: C is 2x3 with Row=3, Col=1, 2 of them 6 apart: needs 12 floats, has 6"},
		{Product{M: 2, N: 3, K: 5, A: RowMajor(f(10), 5), B: RowMajor(f(15), 3), C: RowMajor(f(6), 3).T()},
			"simd: Multiply: C.Col=3, want 1"},
		{Product{M: 2, N: 3, K: 5, A: RowMajor(f(10), 5), B: RowMajor(f(15), 3), C: RowMajor(f(6), 3), Bias: f(2)},
			"simd: Multiply: len(Bias)=2, len(row of C)=3"},
		{Product{M: -1}, "simd: Multiply: M=-1, N=0, K=0, Count=0"},
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); got != c.want {
					t.Errorf("panicked with %q, want %q", got, c.want)
				}
			}()
			Multiply(&c.p)
		}()
	}
}
