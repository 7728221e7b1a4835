package flash

import (
	"math"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
)

// Forward computes the results of all rows, in one loop over tasks.
func Forward(a *Attention) {
	if a.B == 0 || a.H == 0 || a.Lq == 0 {
		return
	}
	f := forward{Attention: a, count: a.queryBlocks(a.Q, a.Out), units: a.B * a.G}
	f.units *= f.count
	if a.Only != nil {
		f.count, f.first, f.units = a.H/a.G, *a.Only, 1
	}
	f.height = a.H / a.G / f.count * a.Lq
	switch part := f.part(); {
	case a.keys() == 0:
		f.noKeys()
	case a.H/a.G*a.Lq <= fewRows && a.keys() > blockKeys: // in any layout
		f.splitKeys()
	case part > 0:
		f.splitRows(part)
	default:
		f.wholeHeads()
	}
}

// forward is the state of a call of Forward.
type forward struct {
	*Attention
	count        int  // query blocks per head of keys
	height       int  // rows of a query block
	first, units int  // the query blocks to compute; block i of head z of keys has number z·count + i
	apart        bool // tasks compute different blocks of keys of the same rows, see splitKeys
}

// heads returns the heads of keys whose results are requested: all, or that of Only.
func (f *forward) heads() (from, to int) {
	return f.first / f.count, (f.first + f.units + f.count - 1) / f.count
}

// blocksOf returns the numbers of the query blocks of head z.
func (f *forward) blocksOf(z int) (from, to int) {
	return max(f.first, z*f.count), min(f.first+f.units, (z+1)*f.count)
}

// block returns the query block with the given number.
func (f *forward) block(number int) queryBlock {
	z := number / f.count
	return f.queryBlock(z/f.G, z%f.G, number%f.count, f.count)
}

// wholeHeads gives each task all rows of some heads. It loads the keys of its heads only once.
func (f *forward) wholeHeads() {
	a, procs := f.Attention, par.Threads()
	from, to := f.heads()
	each := f.height*f.count*a.keys()*(a.E+a.EV) + 1<<12 // work per head
	chunk := max(1, min(1<<20/each, max(1<<14/each, (to-from)/(4*procs))))
	together, prefetches := f.together(), f.prefetches()
	par.For(to-from, chunk, func(lo, hi int) {
		w := f.worker()
		for z, end := from+lo, from+hi; z < end; z += together {
			together := min(together, end-z)
			if together == 1 {
				w.load(a, z/a.G, z%a.G, 0, a.keys())
			}
			for n, last := f.blocksOf(z); n < last; n++ {
				t := f.block(n)
				t.heads, t.n = together, together*t.n
				if prefetches {
					f.prefetch(w, t, z+together, to)
				}
				f.attend(w, t, 0, t.n, 0, a.keys())
			}
		}
		w.release()
	})
}

// together returns the number of heads of keys that form one query block. Short heads, such as those of sentences, take
// less time than the calls for their strips, so the rows of several are one strip: each head has its own products, and
// the rest has fewer calls. A row has the same bits as alone, because nothing in a strip depends on other rows. The gain
// is in the row "sdpa B64 H6 Lq12 Lk10 E50" of bench/RESULTS.md.
func (f *forward) together() int {
	a := f.Attention
	if a.Pages != nil || a.Only != nil || f.count > 1 || a.masked() && a.keys() > TileKeys { // or keys that no query attends to are skipped
		return 1
	}
	return max(1, min(a.highStrip(), f.band())/f.height)
}

// prefetches reports whether the memory of the next head is prefetched: only if a head takes long
// enough for prefetching to finish, and not so long that it would not matter.
func (f *forward) prefetches() bool {
	work, memory := f.keys()*f.Lq*(f.E+f.EV), (f.keys()+f.H/f.G*f.Lq)*(f.E+f.EV)
	return f.Pages == nil && f.Additive == nil && work >= 1<<17 && memory <= 1<<17
}

// prefetch makes w prefetch the memory for the results of t, and the queries, keys and values of
// the next head of keys, if it is before end.
func (f *forward) prefetch(w *worker, t queryBlock, next, end int) {
	work := t.n * f.keys() * (f.E + f.EV)
	group := f.H / f.G
	out := f.Out.contiguous(t.b, t.h, t.n/f.Lq, f.Lq, f.EV, f.H)
	if next >= end {
		w.ahead.Set(work, out)
		return
	}
	b, g, n := next/f.G, next%f.G, min(t.heads, end-next)
	k, v := f.K.contiguous(f.source(b), g, n, f.keys(), f.E, f.G), f.V.contiguous(f.source(b), g, n, f.keys(), f.EV, f.G)
	w.ahead.Set(work, out, k, f.Q.contiguous(b, g*group, n*group/f.count, f.Lq, f.E, f.H), v)
}

// contiguous returns the vectors of n of all heads of a sequence, from head first of sequence b on, or nil if they are
// apart. Only of the same sequence, since others may be anywhere.
func (h Heads) contiguous(b, first, n, length, size, all int) []float32 {
	if h.Row != size || first+n > all || n > 1 && h.Head != length*size {
		return nil
	}
	return h.at(b, first, 0)[:n*length*size]
}

// noKeys is Forward without keys.
func (f *forward) noKeys() {
	for row := range f.B * f.H * f.Lq {
		b, h, i := f.split(row)
		clear(f.Out.at(b, h, i)[:f.EV])
		f.statistics(row, []float32{negInf}, []float32{0})
		if f.Row != nil {
			f.Row(f.rowAt(row, 0), nil)
		}
	}
}

// worker returns memory for a task.
func (f *forward) worker() *worker {
	w := workers.Get().(*worker)
	w.prepare(f.Attention, bandRows, f.highStrip(), min(blockKeys, (f.keys()+63)&^63))
	w.weights = f.returned()
	if (f.Row != nil || f.Weights != nil) && !f.apart {
		// Weights are computed in memory that stays in a cache. The caller's memory receives only
		// final results. Without dropout and pages, scores become weights where they are (direct): the row
		// "sdpa B1 H12 L512 E64 weights" of bench/RESULTS.md.
		w.weights.stride = f.keys() + 16 // like that of scores
		w.bandWeights = grow(w.bandWeights, f.band()*w.weights.stride)
		w.weights.data = w.bandWeights
		w.direct = f.Dropout == 0 && f.Pages == nil
	}
	if w.weights.data != nil {
		w.shifts = grow(w.shifts, (f.keys()+blockKeys-1)/blockKeys*bandRows)
	}
	return w
}

// returned is the caller's memory for the weights of all rows, if it requested them.
func (f *forward) returned() weights {
	return weights{data: f.Weights, keys: f.keys(), stride: f.keys()}
}

// band returns the number of rows that are combined with a block of keys before the next block.
// If weights are requested, it is smaller, so that they are still in a cache when they are
// divided by their sums.
func (f *forward) band() int {
	switch {
	case f.Row == nil && f.Weights == nil || f.apart:
		return bandRows
	case f.keys() <= blockKeys:
		return TileRows
	}
	const floats = 1 << 15 // of weights, which use a part of the L2 cache
	return min(max(floats/f.keys()/TileRows, 2)*TileRows, bandRows)
}

// attend combines rows r0 to r1 of a query block with keys k0 to k1, where k0 is a multiple of
// blockKeys. If this task has all keys, attend finishes the rows. If other tasks compute other keys
// (f.apart), it leaves its sums in w.all, and its weights relative to the shifts of their blocks,
// which are in w.shifts.
//
// All rows of a band are combined with a block of keys before the next block, so the block is
// loaded only once for the band. The band is processed strip by strip, so that the scores stay
// in the L1 cache. Each block is computed independently and then merged, in the order of the
// keys. The result of a query therefore does not depend on the keys that other queries attend to,
// or on the task that computes a block.
func (f *forward) attend(w *worker, t queryBlock, r0, r1, k0, k1 int) {
	a := f.Attention
	band := f.band()
	for r := r0; r < r1; r += band {
		par.Check(a.Context)
		n := min(band, r1-r)
		if !f.apart {
			w.weights.first = t.first + r
		}
		lo, hi := w.look(a, t.first+r, n, k0, k1)
		if w.weights.data != nil && a.masked() {
			w.clearWeights(t.first+r, n, k0, k1)
		}
		w.stripRows = TileRows
		if !a.masked() || t.heads > 1 || sameInterval(w.spans[:n]) {
			w.stripRows = a.highStrip()
		}
		clear(w.started[:])
		w.setSegments(a, t, r, n)
		for b := lo / blockKeys * blockKeys; b < hi; b += blockKeys {
			if !w.loadPage(a, t, n, b) {
				continue
			}
			for i := 0; i < n; i += w.stripRows {
				w.strip(a, t, r, i, min(w.stripRows, n-i), max(b, lo&^63), min(b+blockKeys, hi), false)
			}
		}
		for i := 0; i < n; i += w.stripRows {
			w.complete(a, t, r, i, min(w.stripRows, n-i), lo, hi)
		}
		if !f.apart {
			f.finish(w, t, r, n)
		}
	}
}

// finish divides n rows of w, from r on, by their sums.
func (f *forward) finish(w *worker, t queryBlock, r, n int) {
	a, first, all := f.Attention, t.first+r, w.all.rows(0, n, f.EV)
	f.statistics(first, all.shift, all.sum)
	underflowed := f.underflowedRows(first, n)
	if t.heads == 1 {
		w.setSegments(a, t, r, n)
	}
	for i, x := 0, 0; x < len(w.segments); x++ {
		s := &w.segments[x]
		dst := a.rows(f.Out, s.b, s.h)
		if t.heads == 1 {
			dst = from(dst, r)
		}
		simd.ScaleRows(dst.Data, dst.Row, all.acc[i*a.EV:], a.EV, a.EV, all.sum[i:][:s.n])
		i += s.n
	}
	if w.weights.data != nil {
		f.normalise(w, first, n)
	}
	for _, row := range underflowed {
		f.attendUnderflowed(w, row)
	}
	if w.weights.data == nil {
		return
	}
	at, to := a.rowAt(first, 0), f.final(w)
	for i := range n {
		row := first + i
		if f.nonFinite(row) {
			w.look(a, row, 1, 0, a.keys())
			a.span(w.spans, 0).setNonFinite(to.row(row), 0)
		}
		if f.Row != nil {
			f.Row(at, to.row(row)[a.Extra:])
		}
		a.next(&at)
	}
}

// final is the destination of the weights of w: the caller's memory, if it requested all weights.
func (f *forward) final(w *worker) weights {
	if f.Weights == nil {
		return w.weights
	}
	return f.returned()
}

// streamed is the number of weights from which on they are written past the caches (streaming
// stores), because they do not fit in the L2 cache: up to half of the time of the row
// "sdpa B1 H12 L512 E64 weights" of bench/RESULTS.md.
const streamed = 1 << 20

// normalise divides the weights of n rows, which are relative to the shifts of their blocks, by
// their sums.
func (f *forward) normalise(w *worker, first, n int) {
	a := f.Attention
	c, _ := a.exponent()
	factors, to, scale := w.top[:0], f.final(w), simd.ScaleRows
	if len(f.Weights) >= streamed && !f.apart {
		scale = simd.StreamRows
	}
	for b := 0; b < a.keys(); b += blockKeys {
		factors = factors[:0]
		for i, shift := range w.shifts[b/blockKeys*bandRows:][:n] {
			row := first + i
			factor := f.Inverse[row]
			if shift != f.Shift[row] {
				factor *= exp2((shift - f.Shift[row]) * c)
			}
			factors = append(factors, factor)
		}
		width := min(blockKeys, a.keys()-b)
		scale(to.from(first, b), to.stride, w.weights.from(first, b), w.weights.stride, width, factors)
	}
	w.top = factors[:cap(factors)]
}

// sinkLead is the largest exponent of 2 of the sink relative to the shift, the largest score, at
// which the statistics stay relative to the shift. Above it they are relative to the sink, because
// the inverse could be subnormal.
const sinkLead = 60

// statistics sets Shift, Inverse and LogSumExp of the rows from row number first on, given their
// shifts m and sums Σ p. It replaces each sum by the factor that turns Σ p·v into the result.
func (f *forward) statistics(first int, shifts, sums []float32) {
	if f.Sinks != nil || f.LogSumExp != nil {
		for i, sum := range sums {
			sums[i] = f.rowStatistics(first+i, shifts[i], sum)
		}
		return
	}
	shift, inverse := f.Shift[first:][:len(sums)], f.Inverse[first:][:len(sums)]
	for i, sum := range sums {
		if sum == 0 { // the row attends to no key
			shift[i], inverse[i] = 0, 0
		} else {
			shift[i], inverse[i] = shifts[i], 1/sum
		}
	}
	copy(sums, inverse)
}

// rowStatistics is statistics for a single row, with its sink and log-sum-exp.
func (f *forward) rowStatistics(row int, shift, sum float32) (factor float32) {
	a := f.Attention
	c, _ := a.exponent()
	var sink float64 // exponent of the sink, relative to the shift
	total := float64(sum)
	if a.Sinks != nil {
		sink = a.sink(row, shift)
		if total += math.Exp2(sink); math.IsInf(sink, 1) {
			total = math.NaN() // as every weight
		}
	}
	switch {
	case sum == 0: // the row attends to no key
		f.Shift[row], f.Inverse[row] = 0, 0
	case sink > sinkLead:
		f.Shift[row] = float32(float64(shift) + sink/float64(c))
		f.Inverse[row] = float32(1 / (float64(float64(sum)*math.Exp2(-sink)) + 1))
		factor = float32(1 / total)
	default:
		f.Shift[row], f.Inverse[row] = shift, float32(1/total)
		factor = f.Inverse[row]
	}
	if f.LogSumExp != nil { // a logarithm per row takes a tenth of the time of short rows
		f.LogSumExp[row] = a.logSumExp(row, shift, sum, sink, total)
	}
	return factor
}

// logSumExp returns the log-sum-exp of a row from values computed by rowStatistics.
func (a *Attention) logSumExp(row int, shift, sum float32, sink, total float64) float32 {
	largest := negInf
	if a.Sinks != nil {
		largest = a.sinkOf(row)
	}
	switch c, _ := a.exponent(); {
	case math.IsInf(float64(shift), 1): // sum is NaN, but every other term is 0
		return max(shift, largest)
	case sum == 0, sink > sinkLead && sum == sum:
		return largest
	default:
		return float32(float64(float64(c)*float64(shift)*math.Ln2) + math.Log(total))
	}
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
