package flash

import "github.com/attn-go/attn/internal/simd"

// Span is the keys that a query may see: those of [Lo, Hi), all of them unless
// there are holes.
type Span struct {
	Lo, Hi int
	Holes  bool
}

// Mask says which keys the queries see.
type Mask interface {
	// Rows sets spans[i] to what row first+i sees of the keys k0 to k1, where
	// row (b·H + h)·Lq + l is query l of head h of sequence b; the rows of a
	// call are of one sequence. For a row with holes it sets seen[i·stride+j]
	// for all j of the span. Rows are asked for concurrently.
	Rows(first, k0, k1 int, spans []Span, seen []bool, stride int)
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
