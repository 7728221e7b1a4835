//go:build amd64 && !purego

package simd

import (
	"sync"
	"unsafe"

	"github.com/attn-go/attn/internal/par"
)

// Products of a few rows on tile units: with stored numbers, as in a KV cache, and with a B whose
// columns are contiguous, as the weights of a layer.

// amxFewArgs is the argument of the kernels: a strip of A as limbs, and panels of B as numbers.
// Strides are in bytes. The generator reads the offsets of the fields.
type amxFewArgs struct {
	a          *float32
	b          unsafe.Pointer
	bRow       int // from column to column, if columns are contiguous
	bPanel     int // from panel to panel
	bAhead     int // at the end of columns, from the prefetched address to the next columns
	c          *float32
	cRow       int
	steps      int        // of k, at least 1
	panels     int        // at least 1, counted down by the kernel
	last       int        // rows of the last step, 1 to limbStep
	accumulate int        // 0 or 1
	scratch    uintptr    // for two steps as limbs
	_          [4]uintptr // used by the kernel
	config     tileConfig
}

// tileConfig describes the sizes of the tiles.
type tileConfig struct {
	palette uint8
	_       [15]byte
	bytes   [16]uint16 // of a row
	rows    [16]uint8
}

const (
	tileHeight = 16
	tileFloats = 16 * tileHeight
	fewColumns = 64   // columns of B that a kernel processes together
	fewAhead   = 1024 // bytes of a column that are prefetched; the generator uses the same number
	// fewScratch is the size in floats of two steps of fewColumns as limbs, plus the padding to
	// align them to a cache line.
	fewScratch = 2*3*limbStep*fewColumns/2 + 16
)

// multiplyStoredOnTiles is MultiplyStored on tile units.
func multiplyStoredOnTiles(c, a Mat, m int, b *StoredPanels, k0, k1, j0, j1 int, accumulate bool) {
	x := storedProduct{b, k0, k1, accumulate}
	x.compute(c, a, m, j0, j1)
}

// storedProduct is a product with elements k0 to k1 of stored numbers.
type storedProduct struct {
	b          *StoredPanels
	k0, k1     int
	accumulate bool
}

// compute computes m rows of columns j0 to j1.
func (x *storedProduct) compute(c, a Mat, m, j0, j1 int) {
	depth, width := x.k1-x.k0, x.b.Width
	if m > FewRows || width != panelWidth() || depth == 0 || x.b.Format == Float16 { // which has no kernel
		x.byPanels(c, a, m, j0, j1)
		return
	}
	s := scratches.Get().(*scratch)
	size := stripFloats(depth)
	s.strips = grow(s.strips, (m+tileHeight-1)/tileHeight)
	s.a = grow(s.a, len(s.strips)*size)
	for i := range s.strips {
		at := i * tileHeight
		s.strips[i] = packStrip(s.a[i*size:][:size], a.from(at, 0), min(tileHeight, m-at), depth, s)
	}
	for j := j0; j < j1; {
		// All whole panels together. If several strips use the panels, one panel at a time, while
		// it is in a cache.
		n := (j1 - j) / width * width
		if n == 0 || len(s.strips) > 1 || x.accumulate {
			n = min(width, j1-j)
		}
		for i, strip := range s.strips {
			at := i * tileHeight
			x.few(c.from(at, j-j0), a.from(at, 0), strip, min(tileHeight, m-at), j, j+n, s)
		}
		j += n
	}
	clear(s.strips)
	s.free()
}

// few computes up to tileHeight rows of whole panels, or of a part of one panel.
func (x *storedProduct) few(c, a Mat, strip limbs, m, j0, j1 int, s *scratch) {
	n, width, to := j1-j0, x.b.Width, c
	apart := n < width || x.accumulate // C lacks room for a whole panel, or the result may have to be recomputed
	if apart {
		s.tile = grow(s.tile, tileHeight*width)
		to = RowMajor(s.tile, width)
		if x.accumulate {
			CopyRows(to.Data, to.Row, c.Data, c.Row, m, n)
		}
	}
	if strip.whole == nil {
		x.strip(to, strip, m, j0, j1, s)
	}
	switch {
	case strip.whole != nil || !to.Finite(m, n):
		x.byPanels(c, a, m, j0, j1)
	case apart:
		CopyRows(c.Data, c.Row, to.Data, to.Row, m, n)
	}
}

// byPanels computes any number of rows, of any numbers.
func (x *storedProduct) byPanels(c, a Mat, m, j0, j1 int) {
	p, s := tilePanels.Get().(*Panels), scratches.Get().(*scratch)
	p.Sparse = x.b.Sparse
	for j := j0; j < j1; j += x.b.Width {
		l := PanelLayout{K: x.k1 - x.k0, N: min(x.b.Width, j1-j), Width: x.b.Width}
		s.b = grow(s.b, l.Panel())
		at := x.b.At(x.k0, j)
		p.View(l, x.b.Floats(at, at+l.Panel(), s.b))
		MultiplyPanels(c.from(0, j-j0), a, m, p, 0, l.K, 0, l.N, x.accumulate)
	}
	tilePanels.Put(p)
	s.free()
}

var tilePanels = sync.Pool{New: func() any { return &Panels{Tiles: true} }}

// strip computes m rows of c, which has room for whole panels.
func (x *storedProduct) strip(c Mat, strip limbs, m, j0, j1 int, s *scratch) {
	b, depth := x.b, x.k1-x.k0
	from := b.address(b.At(x.k0, j0))
	t := amxFewArgs{
		a: &strip.data[0],
		b: from.at, bPanel: from.size * b.Panel(),
		c: &c.Data[0], cRow: 4 * c.Row,
		steps: steps(depth), panels: (j1 - j0 + b.Width - 1) / b.Width, last: (depth-1)%limbStep + 1,
	}
	if x.accumulate {
		t.accumulate = 1
	}
	for i := range 7 {
		t.config.bytes[i], t.config.rows[i] = 64, uint8(m)
	}
	t.config.bytes[7], t.config.rows[7] = 64, limbStep/2
	t.prepare(s)
	switch b.Format {
	case Float32:
		amxFewFloat32AMX(&t)
	case BFloat16:
		amxFewBFloat16AMX(&t)
	case Int8:
		amxFewInt8AMX(&t)
	}
}

// prepare sets the fields that are the same for all kernels.
func (t *amxFewArgs) prepare(s *scratch) {
	s.fewLimbs = grow(s.fewLimbs, fewScratch)
	t.scratch = (uintptr(unsafe.Pointer(&s.fewLimbs[0])) + 63) &^ 63
	t.config.palette = 1
}

// isFew reports whether p has few rows, and a B with contiguous columns.
func (p *Product) isFew() bool {
	return p.M <= FewRows && p.N >= fewColumns && p.B.Row == 1 && p.B.Col != 1
}

// runFew computes a product with few rows.
func (m *multiplication) runFew() {
	p, t := &m.one, &m.tiling
	if t.few == nil {
		t.few = m.doFew
	}
	t.reserve(p.K, p.M)
	t.fill(p.A.T(), p.K, 0, 0, p.M)
	columns := (p.N + fewColumns - 1) / fewColumns
	par.For(columns, max(1, tileWork/(fewColumns*p.K*tileHeight)), t.few)
}

// doFew computes groups lo to hi of 64 columns of C.
func (m *multiplication) doFew(lo, hi int) {
	par.Check(m.all.Context)
	p, s := &m.one, scratches.Get().(*scratch)
	for g := lo; g < hi; g++ {
		j := g * fewColumns
		n := min(fewColumns, p.N-j)
		for i := 0; i < p.M; i += tileHeight {
			rows := min(tileHeight, p.M-i)
			if n == fewColumns && m.few(i, rows, j, s) {
				continue
			}
			part := p.part(i, rows, j, n)
			part.onTiles(s)
		}
	}
	s.free()
}

// few computes 64 columns of some rows, and reports whether it could.
func (m *multiplication) few(i, rows, j int, s *scratch) bool {
	p, x := &m.one, &m.tiling.panels[i/limbWidth]
	if x.whole != nil {
		return false
	}
	s.tile = grow(s.tile, fewColumns*tileHeight)
	c := p.C.from(i, j)
	t := amxFewArgs{
		a: &x.data[i%limbWidth/tileHeight*tileFloats],
		b: unsafe.Pointer(&p.B.Data[j*p.B.Col]), bRow: 4 * p.B.Col,
		c: &s.tile[0], cRow: 4 * tileHeight,
		steps: steps(p.K), panels: 1, last: (p.K-1)%limbStep + 1,
	}
	t.bAhead = fewAhead + fewColumns*t.bRow - 4*limbStep*t.steps
	switch {
	case p.Bias != nil:
		for k, v := range p.Bias[j:][:fewColumns] {
			fill(s.tile[k*tileHeight:][:tileHeight], v)
		}
		t.accumulate = 1
	case p.Accumulate:
		clear(s.tile)
		CopyTransposed(s.tile, tileHeight, c.Data, c.Row, fewColumns, rows)
		t.accumulate = 1
	}
	for i := range 8 {
		t.config.bytes[i], t.config.rows[i] = 64, 16
	}
	t.prepare(s)
	amxFewColumnsAMX(&t)
	if !Finite(s.tile) {
		return false
	}
	packTransposed(c.Data, Mat{Data: s.tile, Row: 1, Col: tileHeight}, rows, fewColumns, c.Row)
	p.recomputeTiny(i, rows, j, fewColumns)
	return true
}
