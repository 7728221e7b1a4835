package flash

import (
	"math"

	"github.com/attn-go/attn/internal/simd"
)

// setQueries prepares the queries of x for score, if the form needs it.
func (w *worker) setQueries(a *Attention, x *segment) {
	if a.Additive != nil {
		w.queries.Set(x.q.Data, x.q.Row, x.n, a.E)
	}
}

// score computes the scores of the queries of x, which setQueries has prepared, with keys j0 to j1, and
// sets those of masked keys to −Inf. The queries attend to spans. Scores are stored from element at on. score returns the factor c that turns scores into exponents of 2: the weights
// are proportional to 2^(c·score).
func (w *worker) score(a *Attention, x *segment, spans []Span, j0, j1, at int) float32 {
	s, n, width, k0, k1 := w.scores[at:], len(spans), j1-j0, j0-w.from, j1-w.from
	switch {
	case a.Given != nil:
		for i := range n {
			copy(s[i*w.stride:][:width], a.Given[(x.first+i)*a.keys()+j0:])
		}
	case a.Additive != nil:
		simd.AdditiveTile(s, w.stride, &w.queries, 0, n, w.additive, k0, k1)
	case a.Gaussian != nil:
		w.distances(a, x, spans, s, j0, j1)
	default: // the scores after k1 are not read
		simd.MultiplyPanels(simd.RowMajor(s, w.stride), x.q, n, w.keys, 0, a.E, k0, w.keys.Reach(k1), false)
	}
	if w.scaleKeys != nil {
		for i := range n {
			row := s[i*w.stride:][:width]
			simd.Mul(row, row, w.scaleKeys[k0:k1])
		}
	}
	c, plain := a.exponent()
	if !plain {
		at := a.rowAt(x.first, j0)
		for i := range n {
			w.adjust(a, at, j0, s[i*w.stride:][:width], i)
			a.next(&at)
		}
	}
	if a.masked() {
		for i := range n {
			spans[i].hide(s[i*w.stride:][:width], j0)
		}
	}
	return c
}

// exponent returns the factor c that turns scores into exponents of 2: see score. plain means that c
// includes the scale of the scores. This requires a positive scale, because the maximum of a row is
// computed before c is applied.
func (a *Attention) exponent() (c float32, plain bool) {
	if len(a.Changes) > 0 || !(a.scale() > 0) {
		return log2e, false
	}
	return a.scale() * log2e, true
}

// adjust scales s, the scores of row i of the strip from key j0 on, and applies the score changes. For
// the backward pass it also stores the scores before, between and after the changes.
func (w *worker) adjust(a *Attention, at Row, j0 int, s []float32, i int) {
	if f := a.scale(); f != 1 {
		simd.Scale(s, f, s)
	}
	for m := range a.Changes {
		if len(w.stages) > 0 {
			copy(w.stages[m][i*w.stride:], s)
		}
		a.change(&a.Changes[m], at, j0, s)
	}
	if len(w.stages) > 0 {
		copy(w.stages[len(a.Changes)][i*w.stride:], s)
	}
}

// drop applies dropout to a row of weights of keys j0, j0+1, ….
func (a *Attention) drop(dst, x []float32, row, j0 int) {
	simd.DropoutRows(dst, x, len(x), 1, len(x), a.drops(row, j0))
}

// drops returns the dropout of the weights of row and the following rows, for keys j0, j0+1, ….
func (a *Attention) drops(row, j0 int) simd.Drops {
	return simd.Drops{
		Key: a.Key, First: row*a.keys() + j0, Step: a.keys(),
		Threshold: uint32(math.Round(float64(a.Dropout) * (1 << 32))), Keep: 1 / (1 - a.Dropout),
	}
}
