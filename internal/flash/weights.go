package flash

import (
	"math"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
)

// Weights writes the weights [B H Lq Lk], before dropout, that belong to the
// statistics.
func Weights(a *Attention, st Stats, weights []float32) {
	if a.Lk == 0 {
		return
	}
	count := a.talls(a.Q)
	rows := a.H / a.G / count * a.Lq
	parts := (rows + chunkRows - 1) / chunkRows
	par.For(a.B*a.G*count*parts, 1, func(lo, hi int) {
		w := workers.Get().(*worker)
		w.prepare(a, chunkRows, blockKeys)
		loaded := -1
		for u := lo; u < hi; u++ {
			z, i, r := u/parts/count, u/parts%count, u%parts*chunkRows
			t := a.tall(z/a.G, z%a.G, i, count)
			if z != loaded {
				w.loadKeys(a, t.b, t.g, 0, a.Lk)
				loaded = z
			}
			w.weights(a, st, t, r, min(chunkRows, t.n-r), weights)
		}
		w.release()
	})
}

// weights writes the weights of queries r to r+n.
func (w *worker) weights(a *Attention, st Stats, t tall, r, n int, weights []float32) {
	row := t.first + r
	lo, hi := w.look(a, row, n, 0, a.Lk)
	lo &^= 63
	w.ask(a, t, r, n)
	for i := range n {
		x := weights[(row+i)*a.Lk:][:a.Lk]
		clear(x[:min(lo, len(x))])
		clear(x[min(max(lo, hi), len(x)):])
	}
	for j0 := lo; j0 < hi; j0 += blockKeys {
		width := min(hi-j0, blockKeys)
		c := w.score(a, t, r, n, j0, j0+width)
		simd.WeightRows(w.scores, w.stride, width, c, st.Shift[row:][:n], st.Inverse[row:][:n])
		for i := range n {
			p := w.scores[i*w.stride:][:width]
			if st.bad(row + i) {
				w.spoil(a, p, i, j0)
			}
			copy(weights[(row+i)*a.Lk+j0:], p)
		}
	}
}

// bad reports whether the weights of a row are not finite.
func (st Stats) bad(row int) bool {
	x := st.Shift[row] * st.Inverse[row]
	return x-x != 0
}

// spoil makes the weights of keys j0, j0+1, … of a row that is not finite, row i
// of those that were looked at: NaN where a key is seen, 0 elsewhere.
func (w *worker) spoil(a *Attention, p []float32, i, j0 int) {
	span := w.spans[i]
	for j := range p {
		p[j] = 0
		if at := j0 + j; at >= span.Lo && at < span.Hi && (!span.Holes || w.seen[i*a.Lk+at]) {
			p[j] = float32(math.NaN())
		}
	}
}
