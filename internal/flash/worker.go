package flash

import (
	"math"
	"sync"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
)

// worker is the memory of a task.
type worker struct {
	keys, values *simd.Panels // of a head: Kᵀ, and V
	own          [2]simd.Panels
	queries      simd.AdditiveQueries
	additive     *simd.AdditiveKeys // in place of keys, in the additive form
	ownAdditive  simd.AdditiveKeys
	from         int      // the key that the panels start with
	valuesAt     simd.Mat // V from that key on
	valuesFinite bool
	scores       []float32 // rows of a block, stride apart
	stride       int
	capped       []float32 // tanh(score/cap), for the backward pass
	acc          []float32 // Σ p·v of the strip
	top          []float32 // for each row: the largest score of a block, …
	shift, sum   []float32
	part         []float32
	spans        []Span
	seen         []bool
}

var workers = sync.Pool{New: func() any { return new(worker) }}

// grow returns a slice of n elements, s if it is long enough.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/4)
	}
	return s[:n]
}

// prepare makes room for the scores of a number of queries with as many keys.
func (w *worker) prepare(a *Attention, rows, keys int) {
	// A little more than their length keeps the rows from falling into the
	// same sets of a cache.
	w.stride = keys + 16
	w.scores = grow(w.scores, rows*w.stride)
	w.acc = grow(w.acc, rows*a.EV)
	w.top, w.shift = grow(w.top, rows), grow(w.shift, rows)
	w.sum, w.part = grow(w.sum, rows), grow(w.part, rows)
	w.spans = grow(w.spans, rows)
	if a.Mask != nil {
		w.seen = grow(w.seen, rows*a.Lk)
	}
}

// load makes keys k0 to k1 of a head ready, k0 a multiple of 64.
func (w *worker) load(a *Attention, b, g, k0, k1 int) {
	w.loadKeys(a, b, g, k0, k1)
	v := from(keys(a.V, b, g), k0)
	w.values, w.valuesAt = &w.own[1], v
	useOrCopy(w.values, v, k1-k0, a.EV)
	w.valuesFinite = finite(v, k1-k0, a.EV)
}

// loadKeys is load of what scores need.
func (w *worker) loadKeys(a *Attention, b, g, k0, k1 int) {
	w.from = k0
	k := from(keys(a.K, b, g), k0)
	if a.Additive != nil {
		w.additive = &w.ownAdditive
		w.additive.Set(k.Data, k.Row, k1-k0, a.E, a.Additive)
		return
	}
	w.keys = &w.own[0]
	w.keys.Copy(k.T(), a.E, k1-k0)
}

// loadAll is load of all keys of a head, on all processors.
func (w *worker) loadAll(a *Attention, b, g int) {
	if a.Additive != nil {
		w.load(a, b, g, 0, a.Lk)
		return
	}
	k, v := keys(a.K, b, g).T(), keys(a.V, b, g)
	w.keys, w.values = &w.own[0], &w.own[1]
	w.from, w.valuesAt = 0, v
	w.keys.Reserve(a.E, a.Lk)
	step := roundUp(64, w.keys.Width())
	par.For((a.Lk+step-1)/step, 2, func(lo, hi int) { w.keys.Fill(k, lo*step, min(hi*step, a.Lk)) })
	useOrCopy(w.values, v, a.Lk, a.EV)
	w.valuesFinite = finite(v, a.Lk, a.EV)
}

// borrow makes w use what another worker has loaded.
func (w *worker) borrow(from *worker) {
	w.keys, w.values, w.from = from.keys, from.values, from.from
	w.additive = from.additive
	w.valuesAt, w.valuesFinite = from.valuesAt, from.valuesFinite
}

// release hands w back without the caller's slices.
func (w *worker) release() {
	w.forget()
	workers.Put(w)
}

// forget lets go of the caller's slices.
func (w *worker) forget() {
	w.keys, w.values, w.additive, w.valuesAt = nil, nil, nil, simd.Mat{}
	w.own[0].Release()
	w.own[1].Release()
	w.ownAdditive.Set(nil, 0, 0, 0, nil)
}

// useOrCopy makes panels of k rows that are contiguous.
func useOrCopy(p *simd.Panels, m simd.Mat, k, n int) {
	// Rows far apart are scattered over many pages, and over few sets of the
	// caches.
	if m.Row > 256 || !p.Use(m, k, n) {
		p.Copy(m, k, n)
	}
}

func roundUp(n, m int) int { return (n + m - 1) / m * m }

// look sets the spans of rows first to first+n, cut to the keys k0 to k1, and
// returns the interval outside of which none of them sees anything.
func (w *worker) look(a *Attention, first, n, k0, k1 int) (lo, hi int) {
	spans := w.spans[:n]
	if a.Mask == nil {
		for i := range spans {
			spans[i] = Span{Lo: k0, Hi: k1}
		}
		return k0, k1
	}
	a.Mask.Rows(first, k0, k1, spans, w.seen, a.Lk)
	lo, hi = k1, k0
	for i := range spans {
		s := &spans[i]
		if s.Holes {
			s.trim(w.seen[i*a.Lk:])
		}
		if s.Lo < s.Hi {
			lo, hi = min(lo, s.Lo), max(hi, s.Hi)
		}
	}
	return lo, hi
}

// trim takes hidden keys from both ends of a span.
func (s *Span) trim(seen []bool) {
	for s.Lo < s.Hi && !seen[s.Lo] {
		s.Lo++
	}
	for s.Lo < s.Hi && !seen[s.Hi-1] {
		s.Hi--
	}
}

// next returns the first keys from j0 on that some of n queries sees: whole
// panels of 64, as many as lie together, up to the end of the block.
func (w *worker) next(a *Attention, n, j0, hi int) (from, to int) {
	for j0 < hi && !w.live(a, n, j0, min(j0+64, hi)) {
		j0 += 64
	}
	end := min(hi, (j0/blockKeys+1)*blockKeys)
	to = min(j0+64, end)
	for to < end && w.live(a, n, to, min(to+64, end)) {
		to = min(to+64, end)
	}
	return j0, to
}

// live reports whether some of n queries sees some of the keys j0 to j1.
func (w *worker) live(a *Attention, n, j0, j1 int) bool {
	for i, s := range w.spans[:n] {
		lo, hi := max(s.Lo, j0), min(s.Hi, j1)
		if lo < hi && (!s.Holes || simd.AnySeen(w.seen[i*a.Lk+lo:][:hi-lo])) {
			return true
		}
	}
	return false
}

// ask makes queries r to r+n ready for score, where that needs it.
func (w *worker) ask(a *Attention, t tall, r, n int) {
	if a.Additive != nil {
		q := from(t.q, r)
		w.queries.Set(q.Data, q.Row, n, a.E)
	}
}

// score computes the scores of the n queries asked with keys j0 to j1, hides what is
// hidden, and returns the factor that they still lack: scores·c are powers of
// two.
func (w *worker) score(a *Attention, t tall, r, n, j0, j1 int) (c float32) {
	s, width := w.scores, j1-j0
	if a.Additive != nil {
		simd.AdditiveTile(s, w.stride, &w.queries, 0, n, w.additive, j0-w.from, j1-w.from)
	} else {
		simd.MultiplyPanels(simd.Mat{Data: s, Row: w.stride, Col: 1}, from(t.q, r), n, w.keys, 0, a.E, j0-w.from, j1-w.from, false)
	}
	c = a.scale() * log2e
	if a.SoftCap != 0 || a.Bias != nil || !(c > 0) {
		// Nothing but a positive factor may wait until after the maximum.
		c = log2e
		for i := range n {
			w.adjust(a, t.first+r+i, s[i*w.stride:][:width], i, j0)
		}
	}
	if a.Mask != nil {
		for i := range n {
			w.hide(a, i, s[i*w.stride:][:width], j0)
		}
	}
	return c
}

// adjust scales a row of scores, caps it and adds the bias. The row is number i
// of the strip and number row of all.
func (w *worker) adjust(a *Attention, row int, s []float32, i, j0 int) {
	simd.Scale(s, a.scale(), s)
	if a.SoftCap != 0 {
		simd.Scale(s, 1/a.SoftCap, s)
		simd.Tanh(s, s)
		if w.capped != nil {
			copy(w.capped[i*w.stride:], s)
		}
		simd.Scale(s, a.SoftCap, s)
	}
	if a.Bias != nil {
		a.Bias.add(s, a, row, j0)
	}
}

// split returns sequence, head and query of a row.
func (a *Attention) split(row int) (b, h, i int) {
	return row / a.Lq / a.H, row / a.Lq % a.H, row % a.Lq
}

// at returns the place of the element for a row and key j.
func (x *Bias) at(a *Attention, row, j int) int {
	b, h, i := a.split(row)
	return b*x.Batch + h*x.Head + i*x.Row + j*x.Col
}

// add adds the bias of keys j0, j0+1, … to a row of scores.
func (x *Bias) add(s []float32, a *Attention, row, j0 int) {
	at := x.at(a, row, j0)
	switch x.Col {
	case 1:
		simd.Add(s, s, x.Data[at:][:len(s)])
	case 0:
		v := x.Data[at]
		for j := range s {
			s[j] += v
		}
	default:
		for j := range s {
			s[j] += x.Data[at+j*x.Col]
		}
	}
}

// hide sets to −Inf what row i of the strip does not see of keys j0, j0+1, ….
func (w *worker) hide(a *Attention, i int, s []float32, j0 int) {
	span := w.spans[i]
	lo, hi := min(max(span.Lo-j0, 0), len(s)), min(max(span.Hi-j0, 0), len(s))
	if lo >= hi {
		lo, hi = len(s), len(s)
	}
	for j := range s[:lo] {
		s[j] = negInf
	}
	tail := s[hi:]
	for j := range tail {
		tail[j] = negInf
	}
	if span.Holes && lo < hi {
		simd.Hide(s[lo:hi], w.seen[i*a.Lk+j0+lo:][:hi-lo])
	}
}

// drop applies dropout to a row of weights of keys j0, j0+1, ….
func (a *Attention) drop(dst, x []float32, row, j0 int) {
	simd.Dropout(dst, x, a.Key, row*a.Lk+j0, uint32(math.Round(float64(a.Dropout)*(1<<32))), 1/(1-a.Dropout))
}

// exp2 returns 2^x.
func exp2(x float32) float32 { return float32(math.Exp2(float64(x))) }
