package flash

import (
	"sync/atomic"

	"github.com/attn-go/attn/internal/simd"
)

// BlockKeys is the number of positions of a full page: a block of keys.
const BlockKeys = blockKeys

// PageShape is the shape that all pages of a cache share.
type PageShape struct {
	G, E, EV int // heads, and sizes of a key and a value
	Format   simd.Format
	Shared   bool // the values are the first EV elements of the keys, and are not stored
}

// Page stores the keys and values of consecutive positions of a sequence, for all heads. Both are in
// the panels that the kernels read, and keys are transposed.
//
// Several sequences may share a page; each sequence records how many of its positions it uses. A
// position that some sequence uses is never overwritten.
type Page struct {
	shape  *PageShape
	cap    int
	used   atomic.Int64 // the positions used by at least one sequence
	shared atomic.Bool  // whether several sequences may use the page

	keyLayout, valueLayout simd.PanelLayout // of one head
	keys, values           vectorStore
}

// NewPage returns a page for up to n positions, at most BlockKeys.
func NewPage(shape *PageShape, n int) *Page {
	p := &Page{shape: shape, cap: n}
	p.keyLayout, p.valueLayout = simd.NewPanelLayout(shape.E, n), simd.NewPanelLayout(n, shape.EV)
	p.keys = newVectorStore(shape.Format, shape.G*p.keyLayout.Len(), shape.G*n)
	if p.values = p.keys; !shape.Shared {
		p.values = newVectorStore(shape.Format, shape.G*p.valueLayout.Len(), shape.G*n)
	}
	return p
}

// Bytes returns the memory of the page.
func (p *Page) Bytes() int {
	if p.shape.Shared {
		return p.keys.bytes()
	}
	return p.keys.bytes() + p.values.bytes()
}

// Share marks the page as used by more than one sequence.
func (p *Page) Share() { p.shared.Store(true) }

// Claim reserves positions at to at+n for a sequence that uses all positions before at. It returns
// false if they exceed the capacity or another sequence has already claimed them.
func (p *Page) Claim(at, n int) bool {
	if at+n > p.cap {
		return false
	}
	if !p.shared.Load() {
		p.used.Store(int64(at + n))
		return true
	}
	return p.used.CompareAndSwap(int64(at), int64(at+n))
}

// Copy returns a page of capacity n with the first at positions of p, which are claimed in the copy.
func (p *Page) Copy(at, n int) *Page {
	c := NewPage(p.shape, n)
	c.used.Store(int64(at))
	for g := range p.shape.G {
		c.copyKeys(p, g, at)
		from, to := p.valueLayout, c.valueLayout
		for v := 0; v < p.shape.EV && !p.shape.Shared; v += from.Width {
			c.values.Copy(g*to.Len()+to.At(0, v), p.values.Stored, g*from.Len()+from.At(0, v), at*from.Width)
		}
		c.keys.copyScales(g*c.cap, &p.keys, g*p.cap, at)
		c.values.copyScales(g*c.cap, &p.values, g*p.cap, at)
	}
	return c
}

// copyKeys copies the first at keys of head g from another page. Only a page of one panel has narrower panels than
// others, so a panel of the one with fewer keys is a part of a panel of the other.
func (p *Page) copyKeys(src *Page, g, at int) {
	was, is := src.keyLayout, p.keyLayout
	to, from := g*is.Len(), g*was.Len()
	for j := 0; j < at; j += was.Width {
		from, to := from+was.At(0, j), to+is.At(0, j)
		if at-j >= was.Width && was.Width == is.Width { // a whole panel
			p.keys.Copy(to, src.keys.Stored, from, was.Panel())
			continue
		}
		for i := range p.shape.E {
			p.keys.Copy(to+i*is.Width, src.keys.Stored, from+i*was.Width, min(was.Width, at-j))
		}
	}
}

// keyAt and valueAt return the location of position i of a head.
func (p *Page) keyAt(g, i int) vectorLayout {
	l := p.keyLayout
	return vectorLayout{at: g*l.Len() + l.At(0, i), run: l.K, step: l.Width}
}

func (p *Page) valueAt(g, i int) vectorLayout {
	l := p.valueLayout
	if p.shape.Shared {
		return p.keyAt(g, i)
	}
	return vectorLayout{at: g*l.Len() + l.At(i, 0), run: l.Width, step: 1, jump: l.Panel()}
}

// Put writes the keys and values of a claimed position. Those of head g begin at keys[g·keyHead]
// and values[g·valueHead].
func (p *Page) Put(i int, keys []float32, keyHead int, values []float32, valueHead int) {
	s := p.shape
	key, value := p.keyAt(0, i), p.valueAt(0, i) // once, because they need divisions
	keyLength, valueLength := p.keyLayout.Len(), p.valueLayout.Len()
	for g := range s.G {
		p.keys.put(g*p.cap+i, key, keys[g*keyHead:][:s.E])
		if !s.Shared {
			p.values.put(g*p.cap+i, value, values[g*valueHead:][:s.EV])
		}
		key.at, value.at = key.at+keyLength, value.at+valueLength
	}
}

// Get copies the key and the value of a position to key and value. Either may be nil.
func (p *Page) Get(g, i int, key, value []float32) {
	p.keys.get(g*p.cap+i, p.keyAt(g, i), key)
	p.values.get(g*p.cap+i, p.valueAt(g, i), value)
}

// Pages are the keys and values of a batch. Position j of sequence b is in page
// Of[b][j/BlockKeys], which is nil if no query attends to its keys.
type Pages struct {
	*PageShape
	Of [][]*Page
}

// page returns the page of a block of keys, or nil if there is none.
func (x *Pages) page(b, block int) *Page {
	if block >= len(x.Of[b]) {
		return nil
	}
	return x.Of[b][block]
}

// live returns the blocks of keys for which at least one sequence has a page.
func (x *Pages) live(blocks int) []int {
	var list []int
	for n := range blocks {
		for b := range x.Of {
			if x.page(b, n) != nil {
				list = append(list, n)
				break
			}
		}
	}
	return list
}

// paged is the part of a worker's state that belongs to the page it reads.
type paged struct {
	page                   *Page
	head                   int
	scaleKeys, scaleValues []float32 // scales of the block's vectors; nil means 1
	wide                   []float32 // the page's numbers converted to float32
	keyRows, valueRows     []float32 // unpacked vectors, one per row
}

// loadPage prepares the keys and values of a block for n rows. It returns false if the sequence has
// no page for the block. If the call has no pages, it does nothing, because load has already
// prepared the keys.
func (w *worker) loadPage(a *Attention, t queryBlock, n, k0 int) bool {
	if a.Pages == nil {
		return true
	}
	p := a.Pages.page(t.b, k0/blockKeys)
	if p == nil {
		return false
	}
	g := t.g
	if w.page == p && w.head == g && w.from == k0 {
		return true
	}
	w.page, w.head, w.from = p, g, k0
	w.scaleKeys = p.keys.scales(g*p.cap, (g+1)*p.cap)
	w.scaleValues = p.values.scales(g*p.cap, (g+1)*p.cap)
	w.keys, w.values = w.ownKeys(a), w.ownValues(a)
	k, v := p.keyLayout, p.valueLayout
	nk, nv := k.Len(), v.Len()
	used := min(a.keys()-k0, p.cap)
	floats := p.keys.Format == simd.Float32
	// For many rows, numbers are converted to float32 once, and not by every product. Distances are
	// always computed on float32. Only numbers in bfloat16 are already rounded.
	many := n > w.stripRows || a.Gaussian != nil || a.Rounded && p.keys.Format != simd.BFloat16
	panels := many || floats || p.shape.Shared
	scaled := a.Gaussian != nil && w.scaleKeys != nil // keys must be scaled before distances are computed
	if !floats || p.shape.Shared {
		w.wide = grow(w.wide, nk+nv)
	}
	shared := w.wide[min(nk, len(w.wide)):]
	if panels {
		numbers := p.keys.Floats(g*nk, (g+1)*nk, w.wide)
		if p.shape.Shared {
			turn(shared, v, numbers, k)
		}
		if scaled {
			scaleColumns(k, numbers, w.scaleKeys)
		}
		w.keys.View(k, numbers)
	} else {
		w.keys.ViewStored(k, p.keys.Part(g*nk, (g+1)*nk))
	}
	if scaled || a.Additive != nil { // the keys are already scaled
		w.scaleKeys = nil
	}
	switch {
	case p.shape.Shared:
		w.values.View(v, shared)
	case panels:
		w.values.View(v, p.values.Floats(g*nv, (g+1)*nv, shared))
	default:
		w.values.ViewStored(v, p.values.Part(g*nv, (g+1)*nv))
	}
	if a.Additive != nil {
		w.keyRows = w.unpack(w.keyRows, &p.keys, p.keyAt, used, a.E)
		w.additive = &w.ownAdditive
		w.additive.Set(w.keyRows, a.E, used, a.E, a.Additive)
	}
	return true
}

// turn sets values to the first elements of keys, which are transposed.
func turn(values []float32, v simd.PanelLayout, keys []float32, k simd.PanelLayout) {
	for j := 0; j < k.N; j += k.Width {
		for e := 0; e < v.N; e += v.Width {
			simd.CopyTransposed(values[v.At(j, e):], v.Width, keys[k.At(e, j):], k.Width, min(k.Width, k.N-j), min(v.Width, v.N-e))
		}
	}
}

// scaleColumns multiplies the columns of a matrix by scales.
func scaleColumns(l simd.PanelLayout, x, scales []float32) {
	for j := 0; j < l.N; j += l.Width {
		scales := scales[j:min(j+l.Width, l.N)]
		for k := range l.K {
			row := x[l.At(k, j):][:len(scales)]
			simd.Mul(row, row, scales)
		}
	}
}

// unpack returns the first n vectors of the head, multiplied by their scales, one per row. It uses the
// memory of dst if it is large enough.
func (w *worker) unpack(dst []float32, r *vectorStore, layout func(g, i int) vectorLayout, n, size int) []float32 {
	dst = grow(dst, n*size)
	for i := range n {
		r.get(w.head*w.page.cap+i, layout(w.head, i), dst[i*size:][:size])
	}
	return dst
}

// mix computes the sum of values j0 to j1 weighted by p. It stores the sum in c, or adds it to c if
// accumulate is true. It may change p. careful means that values may be infinite or NaN.
func (w *worker) mix(a *Attention, c, p simd.Mat, n, j0, j1 int, careful, accumulate bool) {
	k0, k1 := j0-w.from, j1-w.from
	values := w.valuesAt
	switch {
	case w.scaleValues != nil:
		w.scale(p, n, k0, k1, careful) // afterwards all factors are finite
		careful = false
	case careful && w.page != nil:
		w.valueRows = w.unpack(w.valueRows, &w.page.values, w.page.valueAt, k1, a.EV)
		values = simd.RowMajor(w.valueRows, a.EV)
	}
	multiply(c, p, n, w.values, values, k0, k1, 0, a.EV, !careful, accumulate)
}

// scale multiplies weights by the scales of values k0 to k1 of the block. careful means that scales
// may be NaN: a weight of 0 then stays 0. (The stored numbers of a vector are always finite; a scale
// of NaN marks a vector that was not.)
func (w *worker) scale(p simd.Mat, n, k0, k1 int, careful bool) {
	scales := w.scaleValues[k0:k1]
	for i := range n {
		row := p.Data[i*p.Row:][:len(scales)]
		if !careful {
			simd.Mul(row, row, scales)
			continue
		}
		for k, x := range row {
			if x != 0 {
				row[k] = x * scales[k]
			}
		}
	}
}
