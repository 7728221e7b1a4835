//go:build amd64 && !purego

package simd

import (
	"runtime"
	"sync"
	"unsafe"

	"github.com/attn-go/attn/internal/par"
)

// Products on tile units of a few rows with stored numbers.

// amxFewArgs is what the kernels take: a strip of A as limbs, and panels of numbers.
// Strides are in bytes. The generator knows the order of the fields.
type amxFewArgs struct {
	a          *float32
	b          uintptr // moved on by the kernel, as c and panels are
	bRow       int     // from column to column, if they are contiguous
	bPanel     int     // from panel to panel
	bAhead     int     // from what is asked for ahead, at the end of columns, to the next ones
	c          uintptr
	cRow       int
	steps      int // of k, at least 1
	panels     int // at least 1
	last       int // rows of the last step, 1 to limbStep
	accumulate int // 0 or 1
	room       uintptr
	left       int
	strip      uintptr
	config     tileConfig
}

// tileConfig says how large tiles are.
type tileConfig struct {
	palette uint8
	_       [15]byte
	bytes   [16]uint16 // of a row
	rows    [16]uint8
}

const (
	// fewRoom is how many floats have the room of two steps of a panel, and of what is
	// missing to a cache line.
	fewRoom = 2*3*limbStep*64/2 + 16
)

// multiplyStoredOnTiles is MultiplyStored on tile units.
func multiplyStoredOnTiles(c, a Mat, m int, b *StoredPanels, k0, k1, j0, j1 int, accumulate bool) {
	if m > TileRows || b.Width != panelWidth() || k0 == k1 {
		b.multiplyFloats(c, a, m, k0, k1, j0, j1, accumulate)
		return
	}
	s := scratches.Get().(*scratch)
	s.a = grow(s.a, stripFloats(k1-k0))
	strip := packStrip(s.a, a, m, k1-k0, s)
	for j := j0; j < j1; {
		// Whole panels as many as there are, or what C has of the last one.
		n, to := (j1-j)/b.Width*b.Width, c.from(0, j-j0)
		if n == 0 || accumulate {
			n = min(b.Width, j1-j)
			s.tile = grow(s.tile, TileRows*b.Width)
			to = RowMajor(s.tile, b.Width)
			if accumulate {
				CopyRows(to.Data, to.Row, c.Data[j-j0:], c.Row, m, n)
			}
		}
		if strip.whole == nil {
			b.multiplyStrip(to, strip, m, k0, k1, j, j+n, accumulate, s)
		}
		switch {
		case strip.whole != nil || !to.finite(m, n):
			b.multiplyFloats(c.from(0, j-j0), a, m, k0, k1, j, j+n, accumulate)
		case n < b.Width || accumulate:
			CopyRows(c.Data[j-j0:], c.Row, to.Data, to.Row, m, n)
		}
		j += n
	}
	s.free()
}

// multiplyFloats is MultiplyStored on tile units by way of Panels.
func (b *StoredPanels) multiplyFloats(c, a Mat, m, k0, k1, j0, j1 int, accumulate bool) {
	p, s := tilePanels.Get().(*Panels), scratches.Get().(*scratch)
	p.Sparse = b.Sparse
	for j := j0; j < j1; j += b.Width {
		l := PanelLayout{K: k1 - k0, N: min(b.Width, j1-j), Width: b.Width}
		s.b = grow(s.b, l.Panel())
		b.floats(s.b, b.At(k0, j))
		p.Lay(l, s.b)
		MultiplyPanels(c.from(0, j-j0), a, m, p, 0, l.K, 0, l.N, accumulate)
	}
	tilePanels.Put(p)
	s.free()
}

var tilePanels = sync.Pool{New: func() any { return &Panels{Tiles: true} }}

// multiplyStrip computes m rows of c, which has room for whole panels.
func (b *StoredPanels) multiplyStrip(c Mat, strip limbs, m, k0, k1, j0, j1 int, accumulate bool, s *scratch) {
	from := b.address(b.At(k0, j0))
	t := amxFewArgs{
		a: &strip.data[0],
		b: uintptr(from.at), bPanel: from.size * b.Panel(),
		c: uintptr(unsafe.Pointer(&c.Data[0])), cRow: 4 * c.Row,
		steps: steps(k1 - k0), panels: (j1 - j0 + b.Width - 1) / b.Width, last: (k1-k0-1)%limbStep + 1,
	}
	if accumulate {
		t.accumulate = 1
	}
	for i := range 7 {
		t.config.bytes[i], t.config.rows[i] = 64, uint8(m)
	}
	t.config.bytes[7], t.config.rows[7] = 64, limbStep/2
	t.prepare(s)
	switch {
	case b.Float32 != nil:
		amxFewFloat32AMX(&t)
	case b.BFloat16 != nil:
		amxFewBFloat16AMX(&t)
	default:
		amxFewInt8AMX(&t)
	}
	runtime.KeepAlive(b)
	runtime.KeepAlive(c.Data)
	runtime.KeepAlive(s)
}

// prepare sets what is the same for all kernels.
func (t *amxFewArgs) prepare(s *scratch) {
	s.room = grow(s.room, fewRoom)
	t.room = (uintptr(unsafe.Pointer(&s.room[0])) + 63) &^ 63
	t.config.palette = 1
}

const (
	fewAhead   = 1024    // bytes of a column that are asked for ahead, as the generator knows
	tileFloats = 16 * 16 // of a tile
	fewColumns = 64      // of B that a kernel takes side by side
	// fewRowsOnTiles is up to how many rows a product cuts the columns of B for each sixteen, instead
	// of once for all.
	fewRowsOnTiles = 48
)

// isFew reports whether p has few rows, and a B with contiguous columns.
func (p *Product) isFew() bool {
	return p.M <= fewRowsOnTiles && p.N >= fewColumns && p.B.Row == 1 && p.B.Col != 1
}

// runFew computes a product with few rows.
func (m *multiplication) runFew() {
	p, t := &m.one, &m.tiling
	count, size := (p.M+limbWidth-1)/limbWidth, stripFloats(p.K)
	t.mem, t.panels = grow(t.mem, count*size), grow(t.panels, count)
	s := scratches.Get().(*scratch)
	for i := range t.panels {
		at := i * limbWidth
		t.panels[i] = packLimbs(t.mem[i*size:][:size], p.A.from(at, 0).T(), p.K, min(limbWidth, p.M-at), s)
	}
	s.free()
	columns := (p.N + fewColumns - 1) / fewColumns
	par.For(columns, max(1, tileTask/(fewColumns*p.K*TileRows)), t.few)
}

// doFew computes columns of C, 64 at a time: numbers lo to hi of these.
func (m *multiplication) doFew(lo, hi int) {
	p, s := &m.one, scratches.Get().(*scratch)
	for g := lo; g < hi; g++ {
		j := g * fewColumns
		n := min(fewColumns, p.N-j)
		for i := 0; i < p.M; i += TileRows {
			rows := min(TileRows, p.M-i)
			if n == fewColumns && m.few(i, rows, j, s) {
				continue
			}
			part := *p
			part.M, part.N, part.A, part.B, part.C = rows, n, p.A.from(i, 0), p.B.from(0, j), p.C.from(i, j)
			if p.Bias != nil {
				part.Bias = p.Bias[j : j+n]
			}
			part.onTiles(s)
		}
	}
	s.free()
}

// few computes 64 columns of some rows, and says whether it could.
func (m *multiplication) few(i, rows, j int, s *scratch) bool {
	p, x := &m.one, &m.tiling.panels[i/limbWidth]
	if x.whole != nil {
		return false
	}
	s.tile = grow(s.tile, fewColumns*TileRows)
	c := p.C.from(i, j)
	t := amxFewArgs{
		a: &x.data[i%limbWidth/TileRows*tileFloats],
		b: uintptr(unsafe.Pointer(&p.B.Data[j*p.B.Col])), bRow: 4 * p.B.Col,
		c: uintptr(unsafe.Pointer(&s.tile[0])), cRow: 4 * TileRows,
		steps: steps(p.K), panels: 1, last: (p.K-1)%limbStep + 1,
	}
	t.bAhead = fewAhead + fewColumns*t.bRow - 4*limbStep*t.steps
	switch {
	case p.Bias != nil:
		for k, v := range p.Bias[j:][:fewColumns] {
			fill(s.tile[k*TileRows:][:TileRows], v)
		}
		t.accumulate = 1
	case p.Accumulate:
		clear(s.tile)
		CopyTransposed(s.tile, TileRows, c.Data, c.Row, fewColumns, rows)
		t.accumulate = 1
	}
	for i := range 8 {
		t.config.bytes[i], t.config.rows[i] = 64, 16
	}
	t.prepare(s)
	amxFewColumnsAMX(&t)
	runtime.KeepAlive(p)
	if !Finite(s.tile) {
		return false
	}
	packTransposed(c.Data, Mat{Data: s.tile, Row: 1, Col: TileRows}, rows, fewColumns, c.Row)
	return true
}

func fill(x []float32, v float32) {
	for i := range x {
		x[i] = v
	}
}
