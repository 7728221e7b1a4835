package flash

import (
	"sync"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
)

// backWorker is the memory of a task of the backward pass.
type backWorker struct {
	worker
	valuesT, keyRows    simd.Panels // Vᵀ and K of the chunk
	queryRows, upstream simd.Panels // Q and dOut of the block
	keysAt              simd.Mat
	additiveGrad        simd.AdditiveKeysGrad // of the chunk, in the additive form
	distanceGrad        simd.DistanceGrad     // the same in the Gaussian form
	keysFinite          bool
	valuesFinite        bool
	scans               [4]scan // of sequences of Q, K, V and dOut

	dscores          []float32 // the gradient of the weights, later of the scores
	kept, keptMemory []float32 // the weights after dropout
	stageMemory      []float32
	dq, dk, dv       []float32
}

var backWorkers = sync.Pool{New: func() any { return new(backWorker) }}

// worker returns memory for a task.
func (b *backward) worker() *backWorker {
	w := backWorkers.Get().(*backWorker)
	a := b.a
	w.prepare(a, chunkRows, chunkRows, chunkKeys)
	w.dscores = grow(w.dscores, chunkRows*w.stride)
	w.stages = w.stages[:0]
	if b.keep {
		n := chunkRows * w.stride
		w.stageMemory = grow(w.stageMemory, (len(a.Changes)+1)*n)
		for m := range len(a.Changes) + 1 {
			w.stages = append(w.stages, w.stageMemory[m*n:][:n])
		}
	}
	w.kept = w.scores
	if a.Dropout > 0 {
		w.keptMemory = grow(w.keptMemory, chunkRows*w.stride)
		w.kept = w.keptMemory
	}
	w.dq = grow(w.dq, chunkRows*a.E)
	w.dk, w.dv = grow(w.dk, chunkKeys*a.E), grow(w.dv, chunkKeys*a.EV)
	return w
}

// loadChunk loads keys k0 to k1 of a head and clears their sums.
func (w *backWorker) loadChunk(back *backward, b, g, k0, k1 int) {
	a := back.a
	k, v, n := from(keys(a.K, b, g), k0), from(keys(a.V, b, g), k0), k1-k0
	w.loadKeys(a, b, g, k0, k1)
	switch {
	case a.Given != nil:
	case a.Additive != nil:
		w.additiveGrad.Set(k.Data, k.Row, n, a.E, a.Additive)
	case a.Gaussian != nil:
		w.distanceGrad.Set(k.Data, k.Row, n, a.E, a.Gaussian.factors, back.features != nil)
	default:
		w.keyRows.Rounded = a.Rounded
		useOrCopy(&w.keyRows, k, n, a.E)
		w.keysAt, w.keysFinite = k, w.scans[1].finite(a.K, b, a.G, a.keys(), a.E) || k.Finite(n, a.E)
		clear(w.dk[:n*a.E])
	}
	w.valuesT.Rounded = a.Rounded
	w.valuesT.Copy(v.T(), a.EV, n)
	w.valuesAt, w.valuesFinite = v, w.scans[2].finite(a.V, b, a.G, a.keys(), a.EV) || v.Finite(n, a.EV)
	clear(w.dv[:n*a.EV])
}

// release returns w to the pool without references to the caller's slices.
func (w *backWorker) release() {
	w.forget()
	w.keysAt = simd.Mat{}
	w.additiveGrad.Set(nil, 0, 0, 0, nil)
	w.distanceGrad.Set(nil, 0, 0, 0, nil, false)
	for _, p := range []*simd.Panels{&w.keyRows, &w.valuesT, &w.queryRows, &w.upstream} {
		p.Release()
	}
	w.scans = [4]scan{}
	backWorkers.Put(w)
}

// scan is the last sequence that was searched for numbers that are not finite.
type scan struct {
	first *float32
	none  bool
}

// finite reports whether all heads of a sequence are known to be finite. It searches short sequences
// whose heads are side by side, with everything between their rows: one call for a sequence instead
// of one for each row of a head.
func (s *scan) finite(x Heads, b, heads, length, size int) bool {
	if heads == 1 || size == 0 || x.Head != size || length*x.Row > scanned {
		return false
	}
	all := x.at(b, 0, 0)[:(length-1)*x.Row+heads*size]
	if s.first != &all[0] {
		s.first, s.none = &all[0], simd.Finite(all)
	}
	return s.none
}

// scanned is the largest number of elements of a sequence for which one search of all heads is
// faster than a search of each head.
const scanned = 1 << 14

// block is queries r to r+n of a query block and keys j0 to j1.
type block struct {
	t         queryBlock
	r, n      int
	j0, width int
	do        simd.Mat // of these queries
}

// chunk adds to the gradients of chunk c of the keys of a head, and to the gradients of the head's queries, or stores
// the latter in d.
func (w *backWorker) chunk(b *backward, s, g, c int, d *delay) {
	a := b.a
	k0 := c * chunkKeys
	k1 := min(k0+chunkKeys, a.keys())
	nk, grain := k1-k0, w.grain(a)
	loaded := false
	for i := range b.count {
		t := a.queryBlock(s, g, i, b.count)
		do := a.rows(b.g.DOut, s, t.h)
		for r := 0; r < t.n; r += chunkRows {
			par.Check(a.Context)
			n := min(chunkRows, t.n-r)
			lo, hi := w.look(a, t.first+r, n, k0, k1)
			if lo >= hi {
				continue
			}
			if !loaded {
				w.loadChunk(b, s, g, k0, k1)
				loaded = true
			}
			lo = lo / grain * grain
			w.block(b, block{t: t, r: r, n: n, j0: lo, width: hi - lo, do: from(do, r)}, d)
		}
	}
	if !loaded {
		return
	}
	var dk simd.Mat
	if b.g.K.Data != nil {
		dk = from(keys(b.g.K, s, g), k0)
	}
	switch {
	case a.Given != nil:
	case a.Additive != nil:
		w.additiveGrad.Flush(dk.Data, dk.Row, b.featuresPart(s, g, c))
	case a.Gaussian != nil:
		w.flushDistances(b, dk, b.featuresPart(s, g, c))
	case dk.Data != nil:
		simd.AddRows(dk.Data, dk.Row, w.dk, a.E, nk, a.E)
	}
	if b.g.V.Data != nil {
		dv := from(keys(b.g.V, s, g), k0)
		simd.AddRows(dv.Data, dv.Row, w.dv, a.EV, nk, a.EV)
	}
}

// block adds to the gradients of the block's keys, and to the gradients of its queries, or stores the latter in d.
func (w *backWorker) block(b *backward, x block, d *delay) {
	a, t, n := b.a, x.t, x.n
	row := t.first + x.r
	at, width := x.j0-w.from, x.width
	part := t.part(x.r, n)
	w.setQueries(a, &part)
	c := w.score(a, &part, w.spans[:n], x.j0, x.j0+width, 0)
	// GradRows multiplies by factor. Without changes, factor is the scale, so the result is the
	// gradient of q·k. Changes need the gradient of the scaled score, so factor is then 1, and
	// changeGrads applies the scale after them.
	factor := a.gradScale()
	if !b.plain {
		factor = 1
	}
	if b.g.DScores != nil {
		w.scoreGrads(b, x, row, factor)
	} else {
		w.weightGrads(b, x, row, c, factor)
	}
	if !b.plain {
		for i := range n {
			w.changeGrads(b, row+i, i, x.j0, width)
		}
	}
	dq := w.dq[:n*a.E]
	switch {
	case a.Given != nil:
		for i := 0; i < n && b.g.Given != nil; i++ {
			d := b.g.Given[(row+i)*a.keys()+x.j0:][:width]
			simd.Add(d, d, w.dscores[i*w.stride:][:width])
		}
		return
	case a.Additive != nil:
		clear(dq)
		simd.AdditiveTileGrad(dq, a.E, w.dscores, w.stride, &w.queries, 0, n, &w.additiveGrad, at, at+width)
	case a.Gaussian != nil:
		q := from(t.q, x.r)
		w.distanceGrad.Queries(q.Data, q.Row, n)
		w.distanceGrad.Add(dq, a.E, w.dscores, w.stride, at, at+width)
	default:
		w.dotGrad(b, x, at)
	}
	switch {
	case b.g.Q.Data == nil:
	case d != nil && d.waits:
		d.store(a, row%(a.H/a.G*a.Lq), n, dq)
	default:
		to := from(a.rows(b.g.Q, t.b, t.h), x.r)
		simd.AddRows(to.Data, to.Row, dq, a.E, n, a.E)
	}
}

// weightGrads turns the scores of a block into weights, sets dscores to the gradient of the
// scores times factor, and adds to the gradients of the values.
func (w *backWorker) weightGrads(b *backward, x block, row int, c, factor float32) {
	a, n, at, width := b.a, x.n, x.j0-w.from, x.width
	shift, inverse := b.a.Shift[row:][:n], b.a.Inverse[row:][:n]
	simd.WeightRows(w.scores, w.stride, width, c, shift, inverse)
	w.repairNonFinite(b, x)
	dw := simd.RowMajor(w.dscores, w.stride)
	multiply(dw, x.do, n, &w.valuesT, w.valuesAt.T(), 0, a.EV, at, at+width, w.valuesFinite, false)
	if a.Dropout > 0 {
		d := a.drops(row, x.j0)
		simd.DropoutRows(w.dscores, w.dscores, w.stride, n, width, d)
		simd.DropoutRows(w.kept, w.scores, w.stride, n, width, d)
	}
	if b.g.DWeights != nil {
		for i := range n {
			d := w.dscores[i*w.stride:][:width]
			simd.Add(d, d, b.g.DWeights[(row+i)*a.keys()+x.j0:][:width])
		}
	}
	simd.GradRows(w.dscores, w.scores, w.stride, width, (*b.mean)[row:][:n], factor)

	if b.g.V.Data != nil {
		known := w.scans[3].finite(b.g.DOut, x.t.b, a.H, a.Lq, a.EV)
		w.sum(a, w.dv, a.EV, at, simd.RowMajor(w.kept, w.stride), x, x.do, &w.upstream, known)
	}
}

// sum adds Σ_i of_ij·rows_i to the sums of the keys of a block, which start at key number at of
// the chunk. The row of a query has size elements. known means that the rows are known to be finite.
func (w *backWorker) sum(a *Attention, sums []float32, size, at int, of simd.Mat, x block, rows simd.Mat, panels *simd.Panels,
	known bool) {
	panels.Rounded = a.Rounded
	useOrCopy(panels, rows, x.n, size)
	known = known || rows.Finite(x.n, size)
	multiply(simd.RowMajor(sums[at*size:], size), of.T(), x.width, panels, rows, 0, x.n, 0, size, known, true)
}

// dotGrad sets w.dq and adds to w.dk for dot products. The block starts at key number at of the
// chunk.
func (w *backWorker) dotGrad(b *backward, x block, at int) {
	a := b.a
	ds := simd.RowMajor(w.dscores, w.stride) // gradient of q·k, [queries keys]
	if b.g.K.Data != nil {
		known := w.scans[0].finite(a.Q, x.t.b, a.H, a.Lq, a.E)
		w.sum(a, w.dk, a.E, at, ds, x, from(x.t.q, x.r), &w.queryRows, known)
	}
	if b.g.Q.Data != nil {
		multiply(simd.RowMajor(w.dq, a.E), ds, x.n, &w.keyRows, w.keysAt, at, at+x.width, 0, a.E, w.keysFinite, false)
	}
}

// changeGrads turns a row of gradients of the scores into gradients of the scores before the
// changes and before their scale. i is the row's number in the block, row its number in the whole
// call.
func (w *backWorker) changeGrads(b *backward, row, i, j0, width int) {
	a, at := b.a, b.a.rowAt(row, j0)
	d, p := w.dscores[i*w.stride:][:width], w.scores[i*w.stride:][:width]
	for m := len(a.Changes) - 1; m >= 0; m-- {
		c := &a.Changes[m]
		skip := a.skips(c, j0, width)
		if !b.changes(m) || skip == width {
			continue
		}
		var before, after []float32
		if !c.Rule.Adds() {
			before, after = w.stages[m][i*w.stride+skip:][:width-skip], w.stages[m+1][i*w.stride+skip:][:width-skip]
		}
		c.Rule.Back(at, c.part(at, c.Param), c.part(at, b.g.Changes[m]), before, after, d[skip:])
		if !c.Rule.Adds() { // the gradient of a hidden key's score may be arbitrary
			for j, v := range p {
				if v == 0 {
					d[j] = 0
				}
			}
		}
	}
	if s := a.gradScale(); s != 1 {
		simd.Scale(d, s, d)
	}
}

// repairNonFinite corrects the weights of rows that are not finite, for example if the query
// contains NaN: they become NaN for keys that the query attends to, and 0 for others. A query
// without an upstream gradient contributes 0.
func (w *backWorker) repairNonFinite(b *backward, x block) {
	a := b.a
	for i := range x.n {
		row, p := x.t.first+x.r+i, w.scores[i*w.stride:][:x.width]
		if a.underflowed(row) {
			exact, _, _, _ := a.exactWeights(row)
			simd.Scale(p, a.Inverse[row], exact[x.j0:][:x.width])
		}
		bad := a.nonFinite(row)
		if !bad && w.valuesFinite {
			continue
		}
		silent := zero(x.do.Data[i*x.do.Row:][:a.EV])
		if b.g.DWeights != nil {
			silent = silent && zero(b.g.DWeights[row*a.keys():][:a.keys()])
		}
		if b.g.DLogSumExp != nil {
			silent = silent && b.g.DLogSumExp[row] == 0
		}
		switch {
		case silent:
			clear(p)
		case bad:
			a.span(w.spans, i).setNonFinite(p, x.j0)
		}
	}
}
