package flash

import (
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
)

// Scores computes the scores that Forward passes to the softmax, and stores them in to [B H Lq Lk]:
// they are scaled, score changes are applied, and masked keys have −Inf. It does not read the values.
func Scores(a *Attention, to []float32) {
	if a.keys() == 0 {
		return
	}
	count := a.queryBlocks(a.Q)
	par.For(a.B*a.G, 1, func(lo, hi int) {
		w := workers.Get().(*worker)
		const rows = TileRows
		w.prepare(a, rows, rows, min(blockKeys, (a.keys()+63)&^63))
		for z := lo; z < hi; z++ {
			b, g := z/a.G, z%a.G
			w.loadKeys(a, b, g, 0, a.keys())
			for i := range count {
				t := a.queryBlock(b, g, i, count)
				for r := 0; r < t.n; r += rows {
					n := min(rows, t.n-r)
					w.look(a, t.first+r, n, 0, a.keys())
					part := t.part(r, n)
					w.setQueries(a, &part)
					for j := 0; j < a.keys(); j += blockKeys {
						w.copyScores(a, &part, j, min(j+blockKeys, a.keys()), to)
					}
				}
			}
		}
		w.release()
	})
}

// copyScores computes the scores of x with keys j0 to j1.
func (w *worker) copyScores(a *Attention, x *segment, j0, j1 int, to []float32) {
	w.score(a, x, w.spans[:x.n], j0, j1, 0)
	factor := float32(1)
	if _, plain := a.exponent(); plain {
		factor = a.scale()
	}
	for i := range x.n {
		simd.Scale(to[(x.first+i)*a.keys()+j0:][:j1-j0], factor, w.scores[i*w.stride:][:j1-j0])
	}
}

// scoreGrads sets dscores, the gradient of the scores of a block, to factor times the gradient of the
// result of Scores. It sets scores to 0 for masked keys, and to 1 for others.
func (w *backWorker) scoreGrads(b *backward, x block, row int, factor float32) {
	for i := range x.n {
		s, d := w.scores[i*w.stride:][:x.width], w.dscores[i*w.stride:][:x.width]
		for j, up := range b.g.DScores[(row+i)*b.a.keys()+x.j0:][:x.width] {
			if d[j] = 0; !b.a.span(w.spans, i).attends(x.j0 + j) {
				s[j] = 0
				continue
			}
			if s[j] = 1; up != 0 {
				d[j] = up * factor
			}
		}
	}
}
