package flash

import (
	"math"

	"github.com/attn-go/attn/internal/simd"
)

// band sets, for n rows from r on and the keys k0 to k1, w.shift to the shifts,
// w.sum to Σ p and w.acc to Σ p·v, and the weights to p.
//
// The rows of a band meet a block of keys before the next comes, so that a block
// is fetched once for all of them; and they do so strip by strip, so that the
// scores stay in the first-level cache.
func (w *worker) band(a *Attention, t tall, r, n, k0, k1 int) {
	lo, hi := w.look(a, t.first+r, n, k0, k1)
	if w.weights != nil && a.Mask != nil { // of what is hidden
		for i := range n {
			clear(w.weights[(t.first+r+i)*a.Lk+k0:][:k1-k0])
		}
	}
	for i := range n {
		w.shift[i], w.sum[i] = negInf, 0
	}
	w.careful = false
	clear(w.started[:])
	for b := lo / blockKeys * blockKeys; b < hi; b += blockKeys {
		for i := 0; i < n; i += stripRows {
			w.strip(a, t, r, i, min(stripRows, n-i), max(b, lo&^63), min(b+blockKeys, hi))
		}
	}
	for i := 0; i < n; i += stripRows {
		w.complete(a, t, r, i, min(stripRows, n-i), lo, hi)
	}
}

// complete ends the strip of n rows from row i of a band on. It clears what has not
// been summed up, and does the whole strip again if a value that is not
// finite has met a weight: of 0 perhaps, where it must not be felt.
func (w *worker) complete(a *Attention, t tall, r, i, n, lo, hi int) {
	acc := w.acc[i*a.EV:][:n*a.EV]
	switch {
	case !w.started[i/stripRows]:
		clear(acc)
	case !simd.Finite(acc):
		for k := i; k < i+n; k++ {
			w.shift[k], w.sum[k] = negInf, 0
		}
		w.careful, w.started[i/stripRows] = true, false
		for b := lo / blockKeys * blockKeys; b < hi; b += blockKeys {
			w.strip(a, t, r, i, n, max(b, lo&^63), min(b+blockKeys, hi))
		}
		w.careful = false
	}
	for k, m := range w.shift[i : i+n] {
		w.shift[i+k] = orZero(m)
	}
}

// strip lets n rows of a band, from row i on, meet the keys of a block from lo, a
// multiple of 64, to hi.
func (w *worker) strip(a *Attention, t tall, r, i, n, lo, hi int) {
	w.ask(a, t, r+i, n)
	started := &w.started[i/stripRows]
	shift, sum, top, part := w.shift[i:i+n], w.sum[i:i+n], w.top[:n], w.part[:n]
	acc := w.acc[i*a.EV:][:n*a.EV]
	spans := w.spans[i : i+n]
	if a.Mask != nil {
		hi = min(hi, end(spans))
	}
	for j1 := lo; j1 < hi; {
		j0 := j1
		if j1 = hi; a.Mask != nil {
			if j0, j1 = next(spans, j0, hi); j0 >= hi {
				break
			}
		}
		width := j1 - j0
		c := w.score(a, t, r+i, spans, j0, j1)
		simd.RowMax(top, w.scores, w.stride, width)
		for k, m := range top {
			factor := raise(&shift[k], m, c, w.scores[k*w.stride:][:width])
			if factor != 1 && *started {
				sum[k] *= factor
				simd.Scale(acc[k*a.EV:][:a.EV], factor, acc[k*a.EV:][:a.EV])
				if w.weights != nil {
					row := (t.first + r + i + k) * a.Lk
					p := w.weights[row+w.from : row+j0]
					simd.Scale(p, factor, p)
				}
			}
			top[k] = orZero(shift[k])
		}
		simd.PowerRows(w.scores, w.stride, width, c, top, part)
		for k, p := range part {
			sum[k] += p
			s := w.scores[k*w.stride:][:width]
			if w.weights != nil {
				copy(w.weights[(t.first+r+i+k)*a.Lk+j0:], s)
			}
			if a.Dropout > 0 {
				a.drop(s, s, t.first+r+i+k, j0)
			}
		}
		p := simd.Mat{Data: w.scores, Row: w.stride, Col: 1}
		multiply(simd.RowMajor(acc, a.EV), p, n, w.values, w.valuesAt, j0-w.from, j1-w.from, 0, a.EV, !w.careful, *started)
		*started = true
	}
}

// orZero returns the shift that is used for a row: 0 as long as the row has seen
// nothing.
func orZero(m float32) float32 {
	if m == negInf {
		return 0
	}
	return m
}

// raise raises the shift of a row for scores of which the largest is m, if that
// is larger by much, and returns the factor by which what has been summed up
// shrinks.
func raise(shift *float32, m, c float32, scores []float32) (factor float32) {
	old := *shift
	if m == negInf {
		// Nothing to see, or nothing but NaN, which a maximum may have passed
		// over.
		if m = simd.Max(scores); m == m {
			return 1
		}
	}
	switch {
	case old == negInf || m != m:
		*shift = m
	case (m-old)*c > lag:
		*shift = m
		return exp2((old - m) * c)
	}
	return 1
}

// multiply is simd.MultiplyPanels for a matrix that lies at b as well. If that
// is not finite, zeros carry nothing.
func multiply(c, p simd.Mat, m int, panels *simd.Panels, b simd.Mat, k0, k1, j0, j1 int, finite, accumulate bool) {
	if finite {
		simd.MultiplyPanels(c, p, m, panels, k0, k1, j0, j1, accumulate)
		return
	}
	b.Data = b.Data[k0*b.Row+j0*b.Col:]
	simd.Multiply(&simd.Product{M: m, N: j1 - j0, K: k1 - k0, A: p, B: b, C: c, Accumulate: accumulate, Sparse: true})
}

// exp2 returns 2^x.
func exp2(x float32) float32 { return float32(math.Exp2(float64(x))) }
