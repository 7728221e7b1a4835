//go:build (amd64 || arm64 || (wasm && wasmsimd)) && !purego

package simd

import "unsafe"

// The drivers of the kernels for matrix products.

// tileArgs is the argument of the gemm kernels: a column of tiles, one below the other, each
// rows high and as wide as a panel of B. Strides are in bytes. The generator reads the offsets of
// the fields.
type tileArgs struct {
	a          *float32
	aRow, aCol int
	b          *float32
	bRow       int
	c          *float32
	cRow       int
	depth      int // steps of k
	rows       int // of a tile, at least 1, at most tileRows or narrowRows
	tiles      int // at least 1
	last       int // columns in the last vector, 1 to its length
	start      int
	bias       *float32
	next       uintptr // an address to prefetch; each step prefetches further on
	nextStep   int
}

// Values of tileArgs.start: the initial values of the sums.
const (
	startZero = iota
	startBias
	startC
	startAdd // 0, and the sums are then added to C
)

// Kernels for whole panels of stored numbers. Smaller values of kernel are the number of vectors in
// a panel of floats. kernelFloat32 prefetches further ahead than the others.
const (
	kernelBFloat16 = 16 + iota
	kernelInt8
	kernelFloat32

	// kernelPairs and the number of vectors is the kernel for panels of pairs of bfloat16.
	kernelPairs       = 32
	kernelPairsStream = kernelPairs + 5
	kernelQuads       = kernelPairs + 6
	kernelQuadsDot    = kernelPairs + 7
)

// The kernels read B directly where its rows are contiguous. Copying B first is faster over many
// rows of A if the rows of B are so far apart that a panel is scattered over many pages.
func readsDirectlyAsm(p *Product) bool {
	return p.B.Col == 1 && (p.M <= rowBlock || p.B.Row <= 128)
}

func packPanelAsm(dst []float32, m Mat, rows, cols, width int) {
	if m.Col == 1 { // the kernels do not read beyond the last column
		CopyRows(dst, width, m.Data, m.Row, rows, cols)
	} else {
		packTransposed(dst, m, rows, cols, width)
	}
}

// packTransposed copies a matrix of rows×cols, whose columns should be contiguous, to contiguous
// rows, width apart. Width must be at least cols rounded up to whole vectors. The contents of the
// padding are undefined.
func packTransposed(dst []float32, m Mat, rows, cols, width int) {
	if m.Row != 1 {
		packPanelGeneric(dst, m, rows, cols, width)
		return
	}
	lanes := vectorLanes()
	for j := 0; j < cols; j += lanes {
		transposeKernel(&dst[j], 4*width, &m.Data[j*m.Col], 4*m.Col, min(lanes, cols-j), rows)
	}
}

// start returns the initial values of the sums from step k0 on, as a value of tileArgs.start, and
// the biases of the columns from j on.
func (p *Product) start(k0, j int) (start int, bias []float32) {
	switch {
	case k0 > 0:
		return startC, nil
	case p.Bias != nil:
		return startBias, p.Bias[j:]
	case !p.Accumulate:
		return startZero, nil
	}
	return startC, nil
}

func blockAsm(p *Product, a Mat, i0, i1, j0, j1, k0, k1 int, b *blockOfB) {
	start, bias := p.start(k0, j0)
	at := 0
	if k1 > k0 {
		at = (j0 - b.col) / b.width * b.step
	}
	chain := k1 - k0
	if p.Blocks {
		chain = sumBlock(p.K)
		if k0 > 0 {
			start = startAdd
		}
	}
	tiles(p.C.from(i0, j0), a, i1-i0, j1-j0, k1-k0, chain, b, at, start, bias, nil)
}

// tiles computes m rows and n columns of C from depth steps of A and of the panels whose data start
// at index at. It sums in chains of chain steps. It prefetches ahead, or else the panels
// after the first.
func tiles(c, a Mat, m, n, depth, chain int, b *blockOfB, at, start int, bias []float32, ahead *Ahead) {
	t := tileArgs{aRow: 4 * a.Row, aCol: 4 * a.Col, bRow: 4 * b.row, cRow: 4 * c.Row}
	if ahead != nil && ahead.empty() {
		ahead = nil
	}
	lanes := vectorLanes()
	for j := 0; j < n; j += b.width {
		width := min(b.width, n-j)
		vectors := int(uint(width+lanes-1) / uint(lanes))
		t.last = width - (vectors-1)*lanes
		if t.start = start; start == startBias {
			t.bias = &bias[j]
		}
		if depth > 0 {
			t.b = &b.data[at]
			at += b.step
			t.next, t.nextStep = uintptr(unsafe.Pointer(t.b)), 0
			if j+b.width < n && b.step >= depth*b.row { // the next panel, if it is in one piece
				t.next = uintptr(unsafe.Pointer(&b.data[at]))
				t.nextStep = min(64, int(uint(4*b.row*tileRows)/uint(m)))
			}
		}
		kernel := vectors
		if b.pairs {
			kernel += kernelPairs
		}
		t.column(c, a, m, j, depth, chain, kernel, ahead)
	}
}

// column computes m rows of C, of the columns from j on, from depth steps: with as many tiles as
// needed, as equal in height as possible. A tile of one or two rows would leave most of the
// multipliers idle. The sums are chains of chain steps: the first starts as t.start says, and the
// others are added to C. t is passed by value, so that storing its pointers needs no write barriers.
func (t tileArgs) column(c, a Mat, m, j, depth, chain, kernel int, ahead *Ahead) {
	highest := tileRows
	if kernel == 1 {
		highest = narrowRows
	}
	count, rows, taller := 1, m, 0
	if m > highest { // unsigned: a signed division is a call in WebAssembly
		tiles := (uint(m) + uint(highest) - 1) / uint(highest)
		count, rows, taller = int(tiles), int(uint(m)/tiles), int(uint(m)%tiles)
	}
	start, b := t.start, t.b
	for at := 0; count > 0; count, taller = count-t.tiles, taller-t.tiles {
		if t.rows, t.tiles = rows+1, taller; taller <= 0 {
			t.rows, t.tiles = rows, count
		}
		if ahead != nil {
			t.prefetch(ahead, depth)
		}
		t.c, t.start, t.b = &c.Data[at*c.Row+j], start, b
		for k := 0; ; t.start = startAdd {
			if t.depth = min(chain, depth-k); t.depth > 0 {
				t.a = &a.Data[at*a.Row+k*a.Col]
			}
			gemmKernel(&t, kernel)
			t.next += uintptr(t.tiles * t.depth * t.nextStep)
			if k += t.depth; k == depth {
				break
			}
			t.b = (*float32)(unsafe.Add(unsafe.Pointer(t.b), chain*t.bRow))
		}
		at += t.tiles * t.rows
	}
}

// prefetch makes the next tiles prefetch from ahead. It reduces the number of tiles if ahead does
// not last for all of them.
func (t *tileArgs) prefetch(ahead *Ahead, depth int) {
	if ahead.empty() {
		t.next, t.nextStep = uintptr(unsafe.Pointer(t.b)), 0
		return
	}
	var part []float32
	part, t.tiles = ahead.take(t.tiles, depth)
	t.next, t.nextStep = uintptr(unsafe.Pointer(&part[0])), ahead.step
}

// A kernel takes any strides, but if the rows are not contiguous, every step reads from another
// cache line. Where the block will be read for many columns, copying it to contiguous rows is
// faster if each column is in a different page.
func blockOfAAsm(p *Product, i0, i1, cols, k0, k1 int, s *scratch) Mat {
	if k0 == k1 {
		return Mat{}
	}
	a := p.A.from(i0, k0)
	rows, depth := i1-i0, k1-k0
	if a.Col <= 128 || cols < 64 || depth < 8 || rows < 8 {
		return a
	}
	stride := (depth + 15) / 16 * 16
	s.a = grow(s.a, stride*rows)
	packTransposed(s.a, a, rows, depth, stride)
	return RowMajor(s.a, stride)
}

func multiplyPanelsAsm(c, a Mat, m int, b *Panels, k0, k1, j0, j1 int, accumulate bool, chain int) {
	start := startZero
	if accumulate {
		start = startC
	}
	for j := j0; j < j1; { // a part of a panel first, then whole panels
		at, end := 0, j1
		panel, col := uint(j)/uint(b.b.width), uint(j)%uint(b.b.width)
		if col > 0 {
			end = min(j-int(col)+b.b.width, j1)
		}
		if k1 > k0 {
			at = int(panel)*b.b.step + int(col) + k0*b.b.row
		}
		tiles(c.from(0, j-j0), a, m, end-j, k1-k0, chain, &b.b, at, start, nil, b.Ahead)
		j = end
	}
}

// The keys of attention and the weights of PyTorch have contiguous columns. Copying them for a
// single use would take longer than using them.
func singleRowAsm(p *Product, j0, j1 int, s *scratch) bool {
	if p.M != 1 || p.B.Row != 1 || p.B.Col == 1 || p.K == 0 {
		return false
	}
	p.begin(0, j0, j1)
	s.a = grow(s.a, p.K)
	c, a := p.C.Data[:p.N], contiguous(s.a, p.A)
	depth := 4096 // keeps a call below about ten microseconds
	if p.Blocks {
		depth = sumBlock(p.K)
	}
	later := s.row[:0] // the sums of the blocks after the first, block after block
	if p.Blocks {
		s.row = grow(s.row, (p.K-1)/depth*(j1-j0))
		later = s.row
		clear(later)
	}
	width := rowGroups * vectorLanes()
	for j := j0; j < j1; j += width {
		t := tileArgs{c: &c[j], bRow: 4 * p.B.Col, last: min(width, j1-j)}
		at := j - j0
		for k := 0; k < p.K; k += depth {
			t.a, t.b, t.depth = &a[k], &p.B.Data[j*p.B.Col+k], min(depth, p.K-k)
			gemvTransposedKernel(&t)
			if at < len(later) {
				t.c = &later[at]
				at += j1 - j0
			}
		}
	}
	for ; len(later) > 0; later = later[j1-j0:] {
		Add(c[j0:j1], c[j0:j1], later[:j1-j0])
	}
	return true
}
