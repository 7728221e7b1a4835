package flash

import (
	"math"
	"runtime"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
)

// Results is where Forward puts what it computes besides the statistics.
type Results struct {
	Out     Heads                     // [B H Lq EV]
	Weights []float32                 // [B H Lq Lk], before dropout; nil if not asked for
	Row     func(at Row, w []float32) // called concurrently with every row of weights [Lk]; may be nil
}

// Forward computes the results and the statistics of all rows.
func Forward(a *Attention, to Results, st Stats) {
	if a.B == 0 || a.H == 0 || a.Lq == 0 {
		return
	}
	out := to.Out
	count := a.talls(a.Q, out)
	f := forward{a: a, Results: to, st: st, count: count}
	if a.keys() == 0 {
		f.noKeys()
		return
	}
	rows := a.H / a.G / count * a.Lq
	heads := a.B * a.G
	procs := runtime.GOMAXPROCS(0)
	switch units := heads * count; {
	case a.H/a.G*a.Lq <= splitRows && a.keys() > blockKeys: // in any layout
		f.splitKeys(rows)
	case heads%procs == 0 || heads >= 8*procs || units*rows*a.keys()*(a.E+a.EV) < 1<<16:
		// Whole heads: a task loads its keys once, for itself.
		each := units / heads * rows * a.keys() * (a.E + a.EV)
		chunk := max(1, min(1<<20/(each+1), heads/(4*procs)))
		par.For(heads, chunk, func(lo, hi int) {
			w := f.worker()
			for z := lo; z < hi; z++ {
				if a.Only != nil && *a.Only/(a.H/a.G) != z {
					continue
				}
				w.load(a, z/a.G, z%a.G, 0, a.keys())
				for i := range count {
					t := a.tall(z/a.G, z%a.G, i, count)
					if f.foresees() {
						next := z + 1
						if next == hi { // if all are equally fast
							next += (procs - 1) * chunk
						}
						f.foresee(w, t, next)
					}
					f.rows(w, t, 0, t.n)
				}
			}
			w.release()
		})
	default:
		f.sharedKeys(rows)
	}
}

// foresees reports whether the memory of the next head is asked for ahead: where a head takes
// long enough for that, but not so long that it would not matter.
func (f *forward) foresees() bool {
	a := f.a
	work, memory := a.keys()*a.Lq*(a.E+a.EV), (a.keys()+a.H/a.G*a.Lq)*(a.E+a.EV)
	return a.Pages == nil && a.Additive == nil && work >= 1<<17 && memory <= 1<<17
}

// foresee lets w ask for where the results of t go, and for the queries, keys and values of
// the head of keys that comes next, if there is one.
func (f *forward) foresee(w *worker, t tall, next int) {
	a := f.a
	work := t.n * a.keys() * (a.E + a.EV)
	out := together(a.rows(f.Out, t.b, t.h), t.n, a.EV)
	if next >= a.B*a.G {
		w.ahead.Set(work, out)
		return
	}
	b, g := next/a.G, next%a.G
	first := a.tall(b, g, 0, f.count)
	k, v := keys(a.K, a.source(b), g), keys(a.V, a.source(b), g)
	w.ahead.Set(work, out, together(k, a.keys(), a.E), together(first.q, first.n, a.E), together(v, a.keys(), a.EV))
}

// together returns the elements of a matrix that lie in one piece, or else nothing.
func together(m simd.Mat, rows, cols int) []float32 {
	if m.Row != cols {
		return nil
	}
	return m.Data[:rows*cols]
}

// noKeys is Forward where there is nothing to attend to.
func (f *forward) noKeys() {
	a := f.a
	for row := range a.B * a.H * a.Lq {
		b, h, i := a.split(row)
		clear(f.Out.at(b, h, i)[:a.EV])
		f.statistics(row, []float32{negInf}, []float32{0})
		if f.Row != nil {
			f.Row(a.row(row, 0), nil)
		}
	}
}

// forward is a call of Forward.
type forward struct {
	a *Attention
	Results
	st    Stats
	count int  // of tall matrices of a head of keys
	apart bool // blocks of keys are computed each by itself, so that no task has whole rows
}

// worker returns memory for a task.
func (f *forward) worker() *worker {
	w := workers.Get().(*worker)
	w.prepare(f.a, bandRows, f.a.highStrip(), min(blockKeys, (f.a.keys()+63)&^63))
	w.weights = f.returned()
	if (f.Row != nil || f.Weights != nil) && !f.apart {
		// Weights are made in a cache. The only thing that is written to the memory of the
		// caller is what he gets.
		w.weights.stride = f.a.keys() + 16 // as that of scores
		w.bandWeights = grow(w.bandWeights, f.band()*w.weights.stride)
		w.weights.data = w.bandWeights
		w.direct = f.a.Dropout == 0 && f.a.Pages == nil
	}
	if w.weights.data != nil {
		w.shifts = grow(w.shifts, (f.a.keys()+blockKeys-1)/blockKeys*bandRows)
	}
	return w
}

// returned is where the caller gets the weights of all rows, if he does.
func (f *forward) returned() weights {
	return weights{data: f.Weights, keys: f.a.keys(), stride: f.a.keys()}
}

// sharedKeys computes heads one after the other, each on all processors. A few rows are
// shared out as well, such as those of a decoder whose heads have one key.
func (f *forward) sharedKeys(rows int) {
	a, procs := f.a, runtime.GOMAXPROCS(0)
	part := min(bandRows, max(a.stripRows(), (f.count*rows+procs-1)/procs))
	parts := (rows + part - 1) / part
	load := workers.Get().(*worker)
	for z := range a.B * a.G {
		if a.Only != nil && *a.Only/(a.H/a.G) != z {
			continue
		}
		b, g := z/a.G, z%a.G
		load.loadAll(a, b, g)
		par.For(f.count*parts, 1, func(lo, hi int) {
			w := f.worker()
			w.borrow(load)
			for u := lo; u < hi; u++ {
				t := a.tall(b, g, u/parts, f.count)
				r := u % parts * part
				f.rows(w, t, r, min(r+part, t.n))
			}
			w.release()
		})
	}
	load.release()
}

// rows computes rows r0 to r1, as far as they are asked for.
func (f *forward) rows(w *worker, t tall, r0, r1 int) {
	if only := f.a.Only; only != nil {
		r0, r1 = max(r0, *only*f.a.Lq-t.first), min(r1, (*only+1)*f.a.Lq-t.first)
	}
	band := f.band()
	for r := r0; r < r1; r += band {
		n := min(band, r1-r)
		w.weights.first = t.first + r
		w.attend(f.a, t, r, n, 0, f.a.keys())
		f.finish(w, t, r, n)
	}
}

// band returns how many rows meet a block of keys before the next comes: fewer, if their
// weights are wanted, which are to be divided by their sums before they leave the caches.
func (f *forward) band() int {
	switch {
	case f.Row == nil && f.Weights == nil:
		return bandRows
	case f.a.keys() <= blockKeys:
		return f.a.stripRows()
	}
	strip := f.a.stripRows()
	const floats = 1 << 15 // of weights, which are a part of a second-level cache
	return min(max(floats/f.a.keys()/strip, 2)*strip, bandRows)
}

// finish divides n rows from r on, which lie in w, by their sums.
func (f *forward) finish(w *worker, t tall, r, n int) {
	a, first, all := f.a, t.first+r, w.all.rows(0, n, f.a.EV)
	f.statistics(first, all.shift, all.sum)
	far := f.farRows(first, n)
	dst := from(a.rows(f.Out, t.b, t.h), r)
	simd.ScaleRows(dst.Data, dst.Row, all.acc, a.EV, a.EV, all.sum)
	if w.weights.data != nil {
		f.normalise(w, first, n)
	}
	for _, row := range far {
		f.attendFar(w, row)
	}
	if w.weights.data == nil {
		return
	}
	at, to := a.row(first, 0), f.final(w)
	for i := range n {
		row := first + i
		if f.st.bad(row) {
			w.look(a, row, 1, 0, a.keys())
			a.span(w.spans, 0).spoil(to.row(row), 0)
		}
		if f.Row != nil {
			f.Row(at, to.row(row)[a.Extra:])
		}
		a.next(&at)
	}
}

// final is where the weights of w go: to the caller, if he wants all.
func (f *forward) final(w *worker) weights {
	if f.Weights == nil {
		return w.weights
	}
	return f.returned()
}

// streamed is from how many weights on they are more than a second-level cache holds, so
// that nobody will find them there.
const streamed = 1 << 20

// normalise divides the weights of n rows, which are relative to the shifts of their
// blocks, by their sums.
func (f *forward) normalise(w *worker, first, n int) {
	a := f.a
	c, _ := a.exponent()
	factors, to, scale := w.top[:0], f.final(w), simd.ScaleRows
	if len(f.Weights) >= streamed && !f.apart {
		scale = simd.StreamRows
	}
	for b := 0; b < a.keys(); b += blockKeys {
		factors = factors[:0]
		for i, shift := range w.shifts[b/blockKeys*bandRows:][:n] {
			row := first + i
			factor := f.st.Inverse[row]
			if shift != f.st.Shift[row] {
				factor *= exp2((shift - f.st.Shift[row]) * c)
			}
			factors = append(factors, factor)
		}
		scale(to.from(first, b), to.stride, w.weights.from(first, b), w.weights.stride, min(blockKeys, a.keys()-b), factors)
	}
	w.top = factors[:cap(factors)]
}

// sinkLead is by how much the sink may exceed the largest score, as a power of two. Beyond
// it the sink is what the statistics are relative to, or their inverse would not be a
// normal number.
const sinkLead = 60

// statistics sets those of rows from row number first on, from what their keys have come to,
// and the sums to the factors by which Σ p·v becomes the result.
func (f *forward) statistics(first int, shifts, sums []float32) {
	if f.a.Sinks != nil || f.st.LogSumExp != nil {
		for i, sum := range sums {
			sums[i] = f.rowStatistics(first+i, shifts[i], sum)
		}
		return
	}
	shift, inverse := f.st.Shift[first:][:len(sums)], f.st.Inverse[first:][:len(sums)]
	for i, sum := range sums {
		if sum == 0 { // attends to no key
			shift[i], inverse[i] = 0, 0
		} else {
			shift[i], inverse[i] = shifts[i], 1/sum
		}
	}
	copy(sums, inverse)
}

// rowStatistics is statistics of a row that may have a sink.
func (f *forward) rowStatistics(row int, shift, sum float32) (factor float32) {
	a := f.a
	c, _ := a.exponent()
	var sink float64 // its exponent, relative to the shift
	total := float64(sum)
	if a.Sinks != nil {
		sink = a.sink(row, shift)
		total += math.Exp2(sink)
	}
	switch {
	case sum == 0: // attends to no key
		f.st.Shift[row], f.st.Inverse[row] = 0, 0
	case sink > sinkLead:
		f.st.Shift[row] = float32(float64(shift) + sink/float64(c))
		f.st.Inverse[row] = float32(1 / (float64(float64(sum)*math.Exp2(-sink)) + 1))
		factor = float32(1 / total)
	default:
		f.st.Shift[row], f.st.Inverse[row] = shift, float32(1/total)
		factor = f.st.Inverse[row]
	}
	if f.st.LogSumExp != nil { // a logarithm a row is a tenth of the time of short rows
		f.st.LogSumExp[row] = a.logSumExp(row, shift, sum, sink, total)
	}
	return factor
}

// logSumExp returns that of a row, from what statistics knows.
func (a *Attention) logSumExp(row int, shift, sum float32, sink, total float64) float32 {
	c, _ := a.exponent()
	switch {
	case sum != 0 && !(sink > sinkLead):
		return float32(float64(float64(c)*float64(shift)*math.Ln2) + math.Log(total))
	case a.Sinks != nil:
		return a.sinkOf(row)
	}
	return negInf
}

// sinkOf returns the score of the sink of a row.
func (a *Attention) sinkOf(row int) float32 {
	_, h, _ := a.split(row)
	return a.Sinks[h]
}

// sink returns the exponent of 2 of the sink of a row, relative to shift.
func (a *Attention) sink(row int, shift float32) float64 {
	c, _ := a.exponent()
	return float64(float64(a.sinkOf(row))*math.Log2E) - float64(float64(c)*float64(shift))
}
