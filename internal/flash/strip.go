package flash

import (
	"math"
	"slices"

	"github.com/attn-go/attn/internal/simd"
)

// partial is the unnormalised result of some queries over some keys. For each query it has the
// shift m, its largest score; the sum Σ p; and acc, Σ p·v, where p = exp(score − m). If a query
// attends to none of the keys, its sum is 0. Otherwise the sum is at least 1, because the largest
// score contributes exp(0).
type partial struct {
	shift, sum []float32
	acc        []float32 // EV elements per query
}

// rows returns the part of x for n queries from number i on.
func (x partial) rows(i, n, ev int) partial {
	return partial{x.shift[i:][:n], x.sum[i:][:n], x.acc[i*ev:][:n*ev]}
}

// none sets x to the result of no keys.
func (x partial) none() {
	for i := range x.shift {
		x.shift[i] = negInf
	}
	clear(x.sum)
	clear(x.acc)
}

// merge adds the result y of other keys to x: one step of online softmax. The result has the larger
// of the two shifts; the sums with the smaller shift are multiplied by 2^(c·(smaller − larger)).
func (x partial) merge(y partial, c float32, ev int) {
	for i, m := range y.shift {
		acc, other := x.acc[i*ev:][:ev], y.acc[i*ev:][:ev]
		old := x.shift[i]
		switch {
		case y.sum[i] == 0:
			continue
		case x.sum[i] == 0:
			x.shift[i], x.sum[i] = m, y.sum[i]
			copy(acc, other)
			continue
		case m > old || m != m:
			x.shift[i] = m
			if shrink := exp2((old - m) * c); shrink != 0 {
				x.sum[i] *= shrink
				simd.Scale(acc, shrink, acc)
				x.sum[i] += y.sum[i]
				simd.Add(acc, acc, other)
			} else {
				x.sum[i] = y.sum[i]
				copy(acc, other)
			}
		default:
			if shrink := exp2((m - old) * c); shrink != 0 {
				x.sum[i] += float32(shrink * y.sum[i])
				simd.Axpy(shrink, other, acc)
			}
		}
	}
}

// clearWeights sets the weights of n rows with keys k0 to k1 to zero, before the weights of
// attended keys are computed.
func (w *worker) clearWeights(first, n, k0, k1 int) {
	for i := range n {
		clear(w.weights.row(first + i)[k0:k1])
	}
	fill(w.shifts[k0/blockKeys*bandRows:(k1+blockKeys-1)/blockKeys*bandRows], negInf)
}

// complete finishes the strip of n rows from row i on. If a result is not finite, it recomputes the
// whole strip carefully: a value that is infinite or NaN may have been multiplied by a weight of 0,
// and must then have no effect.
func (w *worker) complete(a *Attention, t queryBlock, r, i, n, lo, hi int) {
	all := w.all.rows(i, n, a.EV)
	started := &w.started[i/w.stripRows]
	if *started && !simd.Finite(all.acc) {
		// Other rows keep their results: in bfloat16, careful products do not flush subnormal numbers as others may.
		before := partial{slices.Clone(all.shift), slices.Clone(all.sum), slices.Clone(all.acc)}
		defer func() {
			for k := range n {
				if acc := before.acc[k*a.EV:][:a.EV]; simd.Finite(acc) {
					all.shift[k], all.sum[k] = before.shift[k], before.sum[k]
					copy(all.acc[k*a.EV:], acc)
				}
			}
		}()
		*started = false
		for b := lo / blockKeys * blockKeys; b < hi; b += blockKeys {
			if w.loadPage(a, t, n, b) {
				w.strip(a, t, r, i, n, max(b, lo&^63), min(b+blockKeys, hi), true)
			}
		}
	}
	if !*started {
		all.none()
	}
}

// strip combines n rows, from row i of the band on, with keys lo to hi of a block: it computes the
// scores, turns them into weights, multiplies these by the values, and merges the result into
// w.all. The band starts at row r of t, whose keys and values are loaded unless it has several heads. lo is the first
// key of a panel. careful means that values may be infinite or NaN.
func (w *worker) strip(a *Attention, t queryBlock, r, i, n, lo, hi int, careful bool) {
	spans, first := w.spans[i:i+n], t.first+r+i
	if t.heads == 1 {
		w.setSegments(a, t, r+i, n)
	}
	var live panelSet
	if a.masked() {
		live = livePanels(spans, lo, hi)
		lo, hi = live.reach(spans, lo, hi)
		lo = cut(spans, lo, hi, w.grain(a))
	}
	if lo >= hi {
		return
	}
	if w.direct {
		defer func(scores []float32, stride int) { w.scores, w.stride = scores, stride }(w.scores, w.stride)
		w.scores, w.stride = w.bandWeights[(first-w.weights.first)*w.weights.stride+lo:], w.weights.stride
	}
	x := w.all.rows(i, n, a.EV)
	started := &w.started[i/w.stripRows]
	if *started {
		x = w.block.rows(0, n, a.EV)
	}
	w.pieces = w.pieces[:0]
	for j := lo; j < hi; {
		j0, j1 := j, hi
		if a.masked() {
			j0, j1 = live.next(j, hi)
			for k := range n { // no query attends to the keys between
				hide(w.scores[k*w.stride:][j-lo : j0-lo])
			}
		}
		w.pieces = append(w.pieces, piece{j0, j1})
		j = j1
	}
	for x, row := 0, 0; x < len(w.segments); x++ {
		s := &w.segments[x]
		if t.heads > 1 {
			w.loadKeys(a, s.b, s.g, 0, a.keys())
		}
		w.setQueries(a, s)
		for _, part := range w.pieces {
			w.score(a, s, spans[row:row+s.n], part.j0, part.j1, row*w.stride+part.j0-lo)
		}
		row += s.n
	}
	width := hi - lo
	early := a.Dropout > 0 && w.weights.data == nil // the weights before dropout are not needed
	c := w.powers(a, x, first, lo, width, early)
	if !simd.Finite(x.sum) {
		for k, sum := range x.sum {
			if sum != sum && !(x.shift[k] > math.MaxFloat32) { // merge must not drop NaN as a sum far below another
				x.shift[k] = sum
			}
		}
	}
	if w.weights.data != nil {
		copy(w.shifts[lo/blockKeys*bandRows+i:], x.shift[:n])
		if !w.direct {
			for k := range n {
				copy(w.weights.row(first + k)[lo:], w.scores[k*w.stride:][:width])
			}
		}
	}
	if a.Dropout > 0 && !early {
		simd.DropoutRows(w.scores, w.scores, w.stride, n, width, a.drops(first, lo))
	}
	row := 0
	for k := range w.segments {
		s := &w.segments[k]
		if t.heads > 1 {
			w.loadValues(a, s.b, s.g, 0, a.keys())
		}
		acc := simd.RowMajor(x.acc[row*a.EV:], a.EV)
		for k, part := range w.pieces {
			p := simd.RowMajor(w.scores[row*w.stride+part.j0-lo:], w.stride)
			w.mix(a, acc, p, s.n, part.j0, part.j1, careful, k > 0)
		}
		row += s.n
	}
	if *started {
		w.all.rows(i, n, a.EV).merge(x, c, a.EV)
	}
	*started = true
}

// powers sets the shifts of rows to their largest scores with width keys from key lo on, replaces the scores by
// 2^(c·(score − shift)), and sets the sums of the rows, whose first has number row. With drop, dropout follows.
func (w *worker) powers(a *Attention, x partial, row, lo, width int, drop bool) (c float32) {
	top := w.top[:len(x.shift)]
	simd.RowMax(x.shift, w.scores, w.stride, width)
	for k, m := range x.shift {
		if m-m != 0 { // infinite, or NaN, which RowMax may have ignored
			m = simd.Max(w.scores[k*w.stride:][:width])
		}
		top[k], x.shift[k] = orZero(m), m
	}
	c, _ = a.exponent()
	if drop {
		simd.PowerDropRows(w.scores, w.stride, width, c, top, x.sum, a.drops(row, lo))
	} else {
		simd.PowerRows(w.scores, w.stride, width, c, top, x.sum)
	}
	return c
}

// piece is keys j0 to j1.
type piece struct{ j0, j1 int }

// orZero returns the shift to use for a row: 0 until the row has attended to a key.
func orZero(m float32) float32 {
	if m == negInf {
		return 0
	}
	return m
}

// multiply is simd.MultiplyPanels for a matrix that is stored in panels and, unpacked, at b. If the
// matrix is not finite, multiply uses b and skips products with zeros of p, so that 0·NaN adds
// nothing.
func multiply(c, p simd.Mat, m int, panels *simd.Panels, b simd.Mat, k0, k1, j0, j1 int, finite, accumulate bool) {
	if finite {
		simd.MultiplyPanels(c, p, m, panels, k0, k1, j0, j1, accumulate)
		return
	}
	b.Data = b.Data[k0*b.Row+j0*b.Col:]
	if panels != nil && panels.Rounded {
		p, b = rounded(p, m, k1-k0), rounded(b, k1-k0, j1-j0)
	}
	simd.Multiply(&simd.Product{M: m, N: j1 - j0, K: k1 - k0, A: p, B: b, C: c, Accumulate: accumulate, Sparse: true})
}

// rounded returns a copy of m rounded to bfloat16.
func rounded(m simd.Mat, rows, cols int) simd.Mat {
	if m.Col != 1 {
		return rounded(m.T(), cols, rows).T()
	}
	return simd.RoundBFloat16(make([]float32, rows*cols), m, rows, cols)
}

// exp2 returns 2^x.
func exp2(x float32) float32 { return float32(math.Exp2(float64(x))) }
