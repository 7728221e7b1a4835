package flash

import (
	"math"

	"github.com/attn-go/attn/internal/simd"
)

// Span is the keys that a query may see: those of [Lo, Hi), all of them or, if
// there is a Seen, those for which it is true.
type Span struct {
	Lo, Hi int
	Seen   []bool // by the number of the key
}

// Mask says which keys the queries see.
type Mask interface {
	// Rows sets spans[i] to what row first+i sees of the keys k0 to k1, where
	// row (b·H + h)·Lq + l is query l of head h of sequence b; the rows of a
	// call are of one sequence. What it sees may lie in scratch, which has
	// a.Lk elements for each row. Rows are asked for concurrently.
	Rows(first, k0, k1 int, spans []Span, scratch []bool)
}

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
	a.Mask.Rows(first, k0, k1, spans, w.seen)
	lo, hi = k1, k0
	for i := range spans {
		s := &spans[i]
		s.trim()
		if s.Lo < s.Hi {
			lo, hi = min(lo, s.Lo), max(hi, s.Hi)
		}
	}
	return lo, hi
}

// trim takes hidden keys from both ends of a span.
func (s *Span) trim() {
	if s.Seen == nil {
		return
	}
	for s.Lo < s.Hi && !s.Seen[s.Lo] {
		s.Lo++
	}
	for s.Lo < s.Hi && !s.Seen[s.Hi-1] {
		s.Hi--
	}
}

// reach returns the part of the keys lo to hi, lo a multiple of 64, outside of
// which no query attends to any: from the beginning of a panel of 64 on.
func reach(spans []Span, lo, hi int) (int, int) {
	for lo < hi && !live(spans, lo, min(lo+64, hi)) {
		lo += 64
	}
	last := 0
	for _, s := range spans {
		if s.Lo < s.Hi {
			last = max(last, s.Hi)
		}
	}
	hi = min(hi, last)
	for lo < hi && !live(spans, (hi-1)&^63, hi) {
		hi = (hi - 1) &^ 63
	}
	return lo, hi
}

// next returns the first keys from j0 on that some query sees: panels of 64, as many as lie
// together, up to hi. Of the first panel there may be but a part.
func next(spans []Span, j0, hi int) (from, to int) {
	end := func(j int) int { return min(j&^63+64, hi) }
	for j0 < hi && !live(spans, j0, end(j0)) {
		j0 = end(j0)
	}
	for to = j0; to < hi && live(spans, to, end(to)); {
		to = end(to)
	}
	return j0, to
}

// live reports whether some query sees some of the keys j0 to j1.
func live(spans []Span, j0, j1 int) bool {
	for _, s := range spans {
		lo, hi := max(s.Lo, j0), min(s.Hi, j1)
		if lo < hi && (s.Seen == nil || simd.AnySeen(s.Seen[lo:hi])) {
			return true
		}
	}
	return false
}

// hide sets to −Inf the scores of keys j0, j0+1, … that are not seen.
func (x Span) hide(s []float32, j0 int) {
	lo, hi := min(max(x.Lo-j0, 0), len(s)), min(max(x.Hi-j0, 0), len(s))
	if lo >= hi {
		lo, hi = len(s), len(s)
	}
	hide(s[:lo])
	hide(s[hi:])
	if x.Seen != nil && lo < hi {
		simd.Hide(s[lo:hi], x.Seen[j0+lo:j0+hi])
	}
}

// hidden is a block of scores of keys that are not seen.
var hidden = func() (x [blockKeys]float32) {
	for j := range x {
		x[j] = negInf
	}
	return x
}()

// hide sets scores, of a block at most, to −Inf.
func hide(s []float32) { copy(s, hidden[:len(s)]) }

// grain is what the first of the keys that a strip meets is a multiple of: whole vectors,
// or a panel where the kernels want that.
func (w *worker) grain(a *Attention) int {
	if a.Additive != nil || a.tiles() || a.Pages != nil && w.keys == nil {
		return 64
	}
	return 16
}

// cut returns lo, or a later key, a multiple of grain, in front of which no query attends
// to any.
func cut(spans []Span, lo, hi, grain int) int {
	first := hi
	for _, s := range spans {
		if s.Lo < s.Hi && s.Hi > lo {
			first = min(first, max(s.Lo, lo))
		}
	}
	return max(lo, first/grain*grain)
}

// spoil makes the weights of keys j0, j0+1, … those of a row that is not finite:
// NaN where a key is seen, 0 elsewhere.
func (x Span) spoil(weights []float32, j0 int) {
	for i := range weights {
		weights[i] = 0
		if j := j0 + i; j >= x.Lo && j < x.Hi && (x.Seen == nil || x.Seen[j]) {
			weights[i] = float32(math.NaN())
		}
	}
}
