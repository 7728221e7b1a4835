//go:build amd64 && !purego

package simd

// tileArgs is what the gemm kernels take: a column of tiles, each rows high and
// as wide as a panel of B, one below the other. Strides are in bytes. The
// generator knows the order of the fields.
type tileArgs struct {
	a          *float32
	aRow, aCol int
	b          *float32
	bRow       int
	c          *float32
	cRow       int
	depth      int // steps of k
	rows       int // of a tile, 1 to tileRows
	tiles      int // at least 1
	last       int // columns in the last vector, 1 to its length
	start      int
	bias       *float32
}

// Values of tileArgs.start: what the sums begin with.
const (
	startZero = iota
	startBias
	startC
)

const tileRows = 6

// vectorLanes returns how many floats a vector has.
func vectorLanes() int {
	if active == avx512 {
		return 16
	}
	return 8
}

func panelWidth() int {
	switch active {
	case avx512:
		return 4 * 16
	case avx2:
		return 2 * 8
	}
	return genericWidth
}

// readsDirectly reports whether the kernels read B where it is. They can where
// its rows are contiguous. Copying it first pays over many rows of A, if the
// rows of B are so far apart that a panel is scattered over many pages.
func readsDirectly(p *Product) bool {
	if active == generic {
		return readsDirectlyGeneric(p)
	}
	return p.B.Col == 1 && (p.M <= 4*tileRows || p.B.Row <= 128)
}

func packPanel(dst []float32, m Mat, rows, cols, width int) {
	if active == generic || m.Row != 1 {
		packPanelGeneric(dst, m, rows, cols, width)
		return
	}
	lanes := vectorLanes()
	for j := 0; j < cols; j += lanes {
		src, n := &m.Data[j*m.Col], min(lanes, cols-j)
		if active == avx512 {
			transposeAVX512(&dst[j], 4*width, src, 4*m.Col, n, rows)
		} else {
			transposeAVX2(&dst[j], 4*width, src, 4*m.Col, n, rows)
		}
	}
}

// block computes rows i0 to i1 and columns j0 to j1 of C for the steps k0 to
// k1, of which b holds the rows of B.
func block(p *Product, i0, i1, j0, j1, k0, k1 int, b *panels, s *scratch) {
	if active == generic {
		blockGeneric(p, i0, i1, j0, j1, k0, k1, b, s)
		return
	}
	t := tileArgs{cRow: 4 * p.C.Row, bRow: 4 * b.row, depth: k1 - k0, start: startC}
	if k0 == 0 {
		switch {
		case p.Bias != nil:
			t.start = startBias
		case !p.Accumulate:
			t.start = startZero
		}
	}
	var a Mat
	if t.depth > 0 {
		a = blockOfA(p, i0, i1, j1-j0, k0, k1, s)
		t.aRow, t.aCol = 4*a.Row, 4*a.Col
	}

	// As many tiles as needed, and as equal as possible: a tile of a row or two
	// would leave most of the multipliers idle.
	tiles := (i1 - i0 + tileRows - 1) / tileRows
	rows, taller := (i1-i0)/tiles, (i1-i0)%tiles
	lanes := vectorLanes()
	for j := j0; j < j1; j += b.width {
		width := min(b.width, j1-j)
		vectors := (width + lanes - 1) / lanes
		t.last = width - (vectors-1)*lanes
		if t.start == startBias {
			t.bias = &p.Bias[j]
		}
		if t.depth > 0 {
			t.b = &b.data[(j-b.col)/b.width*b.step]
		}
		if taller > 0 {
			t.rows, t.tiles = rows+1, taller
			t.c = &p.C.Data[i0*p.C.Row+j]
			if t.depth > 0 {
				t.a = &a.Data[0]
			}
			gemm(&t, vectors)
		}
		if taller < tiles {
			below := taller * (rows + 1)
			t.rows, t.tiles = rows, tiles-taller
			t.c = &p.C.Data[(i0+below)*p.C.Row+j]
			if t.depth > 0 {
				t.a = &a.Data[below*a.Row]
			}
			gemm(&t, vectors)
		}
	}
}

// blockOfA returns a block of A for a kernel to read, which takes any strides.
// If it will be read for many columns, and its columns are what is contiguous
// and they are far apart, a copy brings them together: else every step would
// go to another page.
func blockOfA(p *Product, i0, i1, cols, k0, k1 int, s *scratch) Mat {
	a := p.A.from(i0, k0)
	rows, depth := i1-i0, k1-k0
	if a.Col == 1 || a.Col < 128 || cols < 128 || depth < 16 {
		return a
	}
	// The odd multiple of half a cache line keeps the rows of the copy from
	// falling into the same few sets of the cache.
	stride := (rows+15)/16*16 + 8
	s.a = grow(s.a, stride*depth)
	for k := range depth {
		dst, src := s.a[k*stride:][:rows], a.Data[k*a.Col:]
		if a.Row == 1 {
			copy(dst, src)
			continue
		}
		for i := range dst {
			dst[i] = src[i*a.Row]
		}
	}
	return Mat{s.a, 1, stride}
}

func gemm(t *tileArgs, vectors int) {
	if active == avx512 {
		switch vectors {
		case 1:
			gemm1AVX512(t)
		case 2:
			gemm2AVX512(t)
		case 3:
			gemm3AVX512(t)
		default:
			gemm4AVX512(t)
		}
		return
	}
	switch full := t.last == 8; {
	case vectors == 1 && full:
		gemm1AVX2(t)
	case vectors == 1:
		gemm1maskedAVX2(t)
	case full:
		gemm2AVX2(t)
	default:
		gemm2maskedAVX2(t)
	}
}
