package flash

import (
	"math"
	"runtime"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
)

// Forward computes out [B H Lq EV], at the places that it says, the statistics of
// all rows and, unless that is nil, the weights [B H Lq Lk] before dropout.
func Forward(a *Attention, out Heads, st Stats, weights []float32) {
	if a.B == 0 || a.H == 0 || a.Lq == 0 {
		return
	}
	count := a.talls(a.Q, out)
	f := forward{a: a, out: out, st: st, weights: weights, count: count}
	rows := a.H / a.G / count * a.Lq
	heads := a.B * a.G
	procs := runtime.GOMAXPROCS(0)
	switch units := heads * count; {
	case rows <= splitRows && a.Lk > blockKeys:
		f.splitKeys(rows)
	case heads%procs == 0 || heads >= 8*procs || units*rows*a.Lk*(a.E+a.EV) < 1<<16:
		// Whole heads: a task loads its keys once, for itself.
		each := units / heads * rows * a.Lk * (a.E + a.EV)
		par.For(heads, max(1, min(1<<20/(each+1), heads/(4*procs))), func(lo, hi int) {
			w := f.worker()
			for z := lo; z < hi; z++ {
				w.load(a, z/a.G, z%a.G, 0, a.Lk)
				for i := range count {
					t := a.tall(z/a.G, z%a.G, i, count)
					f.strips(w, t, 0, t.n)
				}
			}
			w.release()
		})
	default:
		f.sharedKeys(rows)
	}
}

// forward is a call of Forward.
type forward struct {
	a       *Attention
	out     Heads
	st      Stats
	weights []float32
	count   int // of tall matrices of a head of keys
}

// worker returns memory for a task.
func (f *forward) worker() *worker {
	w := workers.Get().(*worker)
	w.prepare(f.a, stripRows, blockKeys)
	w.weights = f.weights
	return w
}

// sharedKeys computes heads one after the other, each on all processors.
func (f *forward) sharedKeys(rows int) {
	a := f.a
	// Each part is several strips long, so that fetching the keys from another
	// processor's cache does not count.
	const part = 4 * stripRows
	parts := (rows + part - 1) / part
	load := workers.Get().(*worker)
	for z := range a.B * a.G {
		b, g := z/a.G, z%a.G
		load.loadAll(a, b, g)
		par.For(f.count*parts, 1, func(lo, hi int) {
			w := f.worker()
			w.borrow(load)
			for u := lo; u < hi; u++ {
				t := a.tall(b, g, u/parts, f.count)
				r := u % parts * part
				f.strips(w, t, r, min(r+part, t.n))
			}
			w.release()
		})
	}
	load.release()
}

// strips computes rows r0 to r1, r0 a multiple of stripRows.
func (f *forward) strips(w *worker, t tall, r0, r1 int) {
	a := f.a
	for r := r0; r < r1; r += stripRows {
		n := min(stripRows, r1-r)
		w.strip(a, t, r, n, 0, a.Lk)
		row := t.first + r
		inverse := f.st.Inverse[row:][:n]
		for i, sum := range w.sum[:n] {
			inverse[i] = 0
			if sum != 0 {
				inverse[i] = 1 / sum
			}
		}
		copy(f.st.Shift[row:], w.shift[:n])
		dst := from(a.rows(f.out, t.b, t.h), r)
		simd.ScaleRows(dst.Data, dst.Row, w.acc, a.EV, a.EV, inverse)
		if w.weights == nil {
			continue
		}
		for i := range n {
			weights := w.weights[(row+i)*a.Lk:][:a.Lk]
			if f.st.bad(row + i) {
				w.spans[i].spoil(weights, 0)
			} else {
				simd.Scale(weights, inverse[i], weights)
			}
		}
	}
}

// strip sets, for n rows from r on and the keys k0 to k1, w.shift to the shifts,
// w.sum to Σ p and w.acc to Σ p·v, and the weights to p.
func (w *worker) strip(a *Attention, t tall, r, n, k0, k1 int) {
	lo, hi := w.look(a, t.first+r, n, k0, k1)
	w.ask(a, t, r, n)
	if w.weights != nil && a.Mask != nil { // of what is hidden
		for i := range n {
			clear(w.weights[(t.first+r+i)*a.Lk+k0:][:k1-k0])
		}
	}
	w.careful = false
	w.blocks(a, t, r, n, lo, hi)
	if !simd.Finite(w.acc[:n*a.EV]) {
		// A value that is not finite has met a weight, of 0 perhaps, and it
		// must not be felt there.
		w.careful = true
		w.blocks(a, t, r, n, lo, hi)
	}
}

// blocks is strip for queries that have been asked what they see, of keys lo to
// hi.
func (w *worker) blocks(a *Attention, t tall, r, n, lo, hi int) {
	shift, sum, top, part := w.shift[:n], w.sum[:n], w.top[:n], w.part[:n]
	for i := range shift {
		shift[i], sum[i] = negInf, 0
	}
	started := false
	for j1 := lo &^ 63; j1 < hi; {
		j0 := j1
		if a.Mask == nil {
			j1 = min(hi, (j0/blockKeys+1)*blockKeys)
		} else if j0, j1 = w.next(n, j0, hi); j0 >= hi {
			break
		}
		width := j1 - j0
		c := w.score(a, t, r, n, j0, j1)
		simd.RowMax(top, w.scores, w.stride, width)
		for i, m := range top {
			if shrink := w.raise(i, m*c, width); shrink != 1 && started {
				w.shrink(a, i, shrink, t.first+r+i, lo, j0)
			}
		}
		w.shiftsOr0(n)
		simd.PowerRows(w.scores, w.stride, width, c, top, part)
		for i, p := range part {
			sum[i] += p
			s := w.scores[i*w.stride:][:width]
			if w.weights != nil {
				copy(w.weights[(t.first+r+i)*a.Lk+j0:], s)
			}
			if a.Dropout > 0 {
				a.drop(s, s, t.first+r+i, j0)
			}
		}
		w.mix(a, n, j0, j1, started)
		started = true
	}
	if !started {
		clear(w.acc[:n*a.EV])
	}
	w.shiftsOr0(n)
	copy(shift, top)
}

// shiftsOr0 sets top to the shifts, with 0 for rows that have seen nothing yet.
func (w *worker) shiftsOr0(n int) {
	for i, m := range w.shift[:n] {
		if m == negInf {
			m = 0
		}
		w.top[i] = m
	}
}

// raise raises the shift of row i for a block whose largest exponent is m, if
// that is larger by much, and returns the factor by which what has been summed up
// shrinks.
func (w *worker) raise(i int, m float32, width int) (shrink float32) {
	old := w.shift[i]
	if m == negInf {
		// Nothing to see, or nothing but NaN, which a maximum may have passed
		// over.
		if m = simd.Max(w.scores[i*w.stride:][:width]); m == m {
			return 1
		}
	}
	switch {
	case m <= old+lag && old != negInf:
		return 1
	case m > old && old != negInf:
		w.shift[i] = m
		return exp2(old - m)
	case old == negInf || m != m:
		w.shift[i] = m
	}
	return 1
}

// shrink multiplies by a factor what row i of the strip has summed up, and its
// weights of keys lo to hi.
func (w *worker) shrink(a *Attention, i int, factor float32, row, lo, hi int) {
	w.sum[i] *= factor
	acc := w.acc[i*a.EV:][:a.EV]
	simd.Scale(acc, factor, acc)
	if w.weights != nil {
		p := w.weights[row*a.Lk+lo : row*a.Lk+hi]
		simd.Scale(p, factor, p)
	}
}

// mix adds to the rows of acc the values of keys j0 to j1, weighted.
func (w *worker) mix(a *Attention, n, j0, j1 int, accumulate bool) {
	c := simd.RowMajor(w.acc, a.EV)
	p := simd.Mat{Data: w.scores, Row: w.stride, Col: 1}
	multiply(c, p, n, w.values, w.valuesAt, j0-w.from, j1-w.from, 0, a.EV, !w.careful, accumulate)
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
