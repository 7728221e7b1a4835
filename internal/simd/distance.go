package simd

import "fmt"

// Distances sets, for m queries of k.K features against keys j0 to j1, the columns of k,
//
//	c[i][j-j0] = -Σ_f (w[f]·(q[i][f]-k[f][j]))²
//
// where j0 is a multiple of 16 or of k.Width() and columns of c and q are contiguous. If w is nil,
// all factors are 1. Differences are computed first, so that a query close to a key is as exact far
// from the origin as near it. A sum that overflows float32 is -Inf. If a difference overflows and
// its factor is 0, the result is NaN. The bits of an element depend on its query, its key and w
// only.
//
// Shapes:
//
//	c  [m j1-j0]
//	q  [m k.K]
//	w  [k.K], or nil
func Distances(c, q Mat, m int, k *Panels, j0, j1 int, w []float32) {
	if m < 0 || j0 < 0 || j0 > j1 || j1 > k.N || j0%panelAlign() != 0 ||
		c.Col != 1 || q.Col != 1 || w != nil && len(w) != k.K {
		panic(fmt.Sprintf("simd: Distances: m=%d, j0=%d, j1=%d of %d, len(w)=%d of %d", m, j0, j1, k.N, len(w), k.K))
	}
	if m == 0 || j0 == j1 {
		return
	}
	c.check("C", m, j1-j0, 1, 0)
	q.check("q", m, k.K, 1, 0)
	if k.K == 0 {
		for i := range m {
			clear(c.Data[i*c.Row:][:j1-j0])
		}
		return
	}
	distances(c, q, m, k, j0, j1, w)
}

func distancesGeneric(c, q Mat, m int, k *Panels, j0, j1 int, w []float32) {
	b := &k.b
	for j := j0; j < j1; j++ {
		at := b.data[j/b.width*b.step+j%b.width:]
		for i := range m {
			var sum float32
			for f, x := range q.Data[i*q.Row:][:k.K] {
				d := at[f*b.row] - x
				if w != nil {
					d *= w[f]
				}
				sum -= float32(d * d)
			}
			c.Data[i*c.Row+j-j0] = sum
		}
	}
}
