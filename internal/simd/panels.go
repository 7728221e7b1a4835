package simd

import "fmt"

// Panels is a matrix B, of K rows and N columns, prepared for products with a few rows of A at a
// time. It is for callers that keep both in the caches and do other work between two products, as
// attention does. Other callers should use Multiply.
//
// The zero value has no rows. Panels reuse their memory for the next matrix.
type Panels struct {
	K, N   int
	b      blockOfB
	mem    []float32 // of copies
	stored Stored    // the numbers, if their format is not Float32; b then has only their layout

	// Rounded rounds the matrix and the other factors of its products to bfloat16, see reduced.go. It must be set before
	// the matrix. A product then starts at an even row. Distances are not for rounded panels.
	Rounded bool

	// Ahead, if not nil, is memory that products prefetch while they compute.
	Ahead *Ahead
}

// Copy sets p to a copy of b, which has k rows and n columns.
func (p *Panels) Copy(b Mat, k, n int) {
	p.Reserve(k, n)
	p.Fill(b, 0, n)
}

// Reserve allocates memory for k rows and n columns, which the caller must then fill with Fill.
func (p *Panels) Reserve(k, n int) {
	p.K, p.N, p.stored = k, n, Stored{}
	width := p.Width()
	if n < width {
		width = roundUp(n, vectorLanes())
	}
	words := k
	if p.Rounded {
		words = bfloat16Words(k)
	}
	p.b = blockOfB{width: width, row: width, step: words * width, copied: true, rows: words, cols: n, pairs: p.Rounded && usesPairs()}
	if n == 0 {
		return
	}
	p.mem = grow(p.mem, p.b.count()*p.b.step)
	p.b.data = p.mem
}

// Width returns the number of columns in a panel. Fill works on multiples of it.
func (p *Panels) Width() int { return panelWidth() }

// Fill copies columns j0 to j1 from b, where j0 is a multiple of Width and j1 is a multiple of it
// or N. Different columns may be filled concurrently.
func (p *Panels) Fill(b Mat, j0, j1 int) {
	if p.K == 0 {
		return
	}
	for j := j0; j < j1; j += p.b.width {
		cols, panel := min(p.b.width, j1-j), p.b.data[j/p.b.width*p.b.step:][:p.b.step]
		if p.Rounded {
			packRounded(panel, b.from(0, j), p.K, cols, p.b.width)
		} else {
			packPanel(panel, b.from(0, j), p.K, cols, p.b.width)
		}
	}
}

// Use sets p to b without a copy, if the rows of b are contiguous, and reports whether it could.
// For rows that are far apart, a copy is faster if it is used more than a few times.
func (p *Panels) Use(b Mat, k, n int) bool {
	if p.Rounded || b.Col != 1 || panelWidth() == genericWidth {
		return false
	}
	p.K, p.N, p.stored = k, n, Stored{}
	p.b = blockOfB{data: b.Data, width: panelWidth(), step: panelWidth(), row: b.Row, rows: k, cols: n, from: b}
	return true
}

// Release drops the references to the caller's matrix.
func (p *Panels) Release() { p.K, p.N, p.b, p.stored = 0, 0, blockOfB{}, Stored{} }

// panelAlign returns the alignment of the first column of a product with Panels: whole vectors, and
// the same number for all kernels.
func panelAlign() int { return min(16, panelWidth()) }

// roundUp returns n rounded up to a multiple of m.
func roundUp(n, m int) int { return (n + m - 1) / m * m }

// MultiplyPanels computes on the calling goroutine
//
//	C = A·B[k0:k1, j0:j1], or C += … if accumulate
//
// as Multiply does, for m rows of C with C.Col == 1. A has k1-k0 columns. j0 is a multiple of 16 or
// of b.Width(), of the latter if b is stored in another format than Float32. The result is then the same
// as for its values as floats; it reads the numbers once for every six rows, so it is for few rows.
func MultiplyPanels(c, a Mat, m int, b *Panels, k0, k1, j0, j1 int, accumulate bool) {
	if m < 0 || k0 < 0 || k0 > k1 || k1 > b.K || j0 < 0 || j0 > j1 || j1 > b.N ||
		uint(j0)%uint(panelAlign()) != 0 {
		panic(fmt.Sprintf("simd: MultiplyPanels: m=%d, k0=%d, k1=%d of %d, j0=%d, j1=%d of %d", m, k0, k1, b.K, j0, j1, b.N))
	}
	if m == 0 || j0 == j1 {
		return
	}
	c.check("C", m, j1-j0, 1, 0)
	a.check("A", m, k1-k0, 1, 0)
	if b.Whole() {
		b.multiplyStored(c, a, m, k0, k1, j0, j1, accumulate)
		return
	}
	if b.Rounded && k0 < k1 {
		s := scratches.Get().(*scratch)
		defer s.free()
		a, k0, k1 = b.rounded(a, m, k0, k1, s)
	}
	multiplyPanels(c, a, m, b, k0, k1, j0, j1, accumulate, k1-k0)
}

// RowDots sets dst[i] to the product of row i of x and row i of y, of n elements each. The result
// equals an element of Multiply, bit for bit.
func RowDots(dst []float32, x, y Mat, n int) {
	x.check("x", len(dst), n, 1, 0)
	y.check("y", len(dst), n, 1, 0)
	s := scratches.Get().(*scratch)
	defer s.free()
	// Rows side by side, because each sum is a chain whose additions must wait for one another. More
	// short rows need fewer calls.
	width := 16
	if n <= 64 {
		width = 64
	}
	s.a, s.b = grow(s.a, n*width), grow(s.b, n*width)
	for i := 0; i < len(dst) && n > 0; i += width {
		rows := min(width, len(dst)-i)
		packRows(s.a, x.from(i, 0), rows, n, width)
		packRows(s.b, y.from(i, 0), rows, n, width)
		sums := dst[i : i+rows]
		clear(sums)
		for k := range n {
			mulAdd(sums, s.a[k*width:][:rows], s.b[k*width:][:rows])
		}
		for k := range sums {
			sums[k] += 0 // like Multiply
		}
	}
	if n == 0 {
		clear(dst)
	}
}

// packRows copies rows of n elements to columns; rows of dst are width apart.
func packRows(dst []float32, m Mat, rows, n, width int) { packPanel(dst, m.T(), n, rows, width) }

func multiplyPanelsGeneric(c, a Mat, m int, b *Panels, k0, k1, j0, j1 int, accumulate bool, chain int) {
	panelsInChains(c, a, m, b, k0, k1, j0, j1, accumulate, chain, false)
}

// panelsInChains is multiplyPanelsGeneric with chains like blockInChains.
func panelsInChains(c, a Mat, m int, b *Panels, k0, k1, j0, j1 int, accumulate bool, chain int, apart bool) {
	depth := k1 - k0
	part := b.b
	part.col, part.cols, part.rows = 0, j1-j0, depth
	if depth > 0 {
		part.data = part.data[j0/part.width*part.step+k0*part.row:]
	}
	p := Product{M: m, N: j1 - j0, K: depth, A: a, C: c, Accumulate: accumulate}
	if a.Col != 1 {
		s := scratches.Get().(*scratch)
		a = blockOfAGeneric(&p, 0, m, p.N, 0, depth, s)
		defer s.free()
	}
	blockInChains(&p, a, 0, m, 0, j1-j0, 0, depth, &part, chain, apart)
}
