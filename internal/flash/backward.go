package flash

import (
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
)

// chunkKeys is how many keys a task of the backward pass owns.
const chunkKeys = 256

// chunkRows is how many queries meet them at a time.
const chunkRows = 60

// Grads is where the backward pass adds to gradients. One without data is not
// asked for.
type Grads struct {
	Q, K, V  Heads     // as those of the Attention
	Bias     []float32 // as Attention.Bias.Data; nil if not asked for
	Additive []float32 // as Attention.Additive; nil if not asked for
}

// Upstream is what the backward pass starts from.
type Upstream struct {
	Out, DOut Heads // the result, and its gradient [B H Lq EV]

	// Weights and their gradient DWeights, [B H Lq Lk], if the weights went
	// somewhere as well; else nil.
	Weights, DWeights []float32
}

// Backward adds to the gradients what follows from up. The statistics are those
// that Forward left.
func Backward(a *Attention, st Stats, up Upstream, to Grads) {
	if a.B == 0 || a.H == 0 || a.Lq == 0 || a.Lk == 0 {
		return
	}
	b := &backward{a: a, st: st, up: up, to: to}
	b.count = a.talls(a.Q, up.Out, up.DOut)
	b.mean = borrowFloats(a.B * a.H * a.Lq)
	par.For(a.B*a.H*a.Lq, max(1, 1<<12/(a.EV+1)), b.means)
	b.nChunks = (a.Lk + chunkKeys - 1) / chunkKeys
	if to.Additive != nil {
		b.additive = borrowFloats(a.B * a.G * b.nChunks * a.E)
		clear(*b.additive)
	}
	b.chunks()
	if to.Additive != nil {
		for i := range a.B * a.G * b.nChunks {
			simd.Add(to.Additive, to.Additive, (*b.additive)[i*a.E:][:a.E])
		}
		returnFloats(b.additive)
	}
	returnFloats(b.mean)
}

// backward is a call of Backward.
type backward struct {
	a        *Attention
	st       Stats
	up       Upstream
	to       Grads
	count    int        // of tall matrices of a head of keys
	nChunks  int        // of keys
	mean     *[]float32 // D of each row
	additive *[]float32 // the gradient of Attention.Additive that each chunk gives
}

// additivePart returns the gradient of Attention.Additive for a chunk to add to.
func (b *backward) additivePart(s, g, c int) []float32 {
	if b.additive == nil {
		return nil
	}
	return (*b.additive)[((s*b.a.G+g)*b.nChunks+c)*b.a.E:][:b.a.E]
}

// means computes D_i = Σ_j w_ij·dw_ij, which is Σ_v do_iv·o_iv.
func (b *backward) means(lo, hi int) {
	a := b.a
	for row := lo; row < hi; row++ {
		s, h, i := a.split(row)
		do := b.up.DOut.at(s, h, i)[:a.EV]
		d := simd.Dot(do, b.up.Out.at(s, h, i)[:a.EV])
		if d != d && zero(do) { // and out is not finite
			d = 0
		}
		if b.up.DWeights != nil {
			w, dw := b.up.Weights[row*a.Lk:][:a.Lk], b.up.DWeights[row*a.Lk:][:a.Lk]
			for j, x := range w {
				if x != 0 && dw[j] != 0 {
					d += x * dw[j]
				}
			}
		}
		(*b.mean)[row] = d
	}
}

// zero reports whether x is zero throughout.
func zero(x []float32) bool {
	for _, v := range x {
		if v != 0 {
			return false
		}
	}
	return true
}

// chunks runs all tasks. Where there are few heads, several chunks of keys of a
// head are worked on at a time; each then has its own sums for the queries, and
// these are added up in the order of the keys, as is done otherwise.
func (b *backward) chunks() {
	a := b.a
	heads, chunks := a.B*a.G, b.nChunks
	if b.to.Bias != nil {
		b.sharedBias()
		return
	}
	const enough = 16
	wave := min(chunks, max(1, enough/heads))
	if wave == 1 {
		par.For(heads, 1, func(lo, hi int) {
			w := b.worker()
			for z := lo; z < hi; z++ {
				for c := range chunks {
					w.chunk(b, z/a.G, z%a.G, c, b.to.Q, a.scale())
				}
			}
			w.release()
		})
		return
	}
	rows := a.B * a.H * a.Lq
	parts := borrowFloats(wave * rows * a.E)
	for first := 0; first < chunks; first += wave {
		n := min(wave, chunks-first)
		clear((*parts)[:n*rows*a.E])
		par.For(heads*n, 1, func(lo, hi int) {
			w := b.worker()
			for u := lo; u < hi; u++ {
				z, c := u/n, u%n
				dq := HeadFirst((*parts)[c*rows*a.E:], a.H, a.Lq, a.E)
				w.chunk(b, z/a.G, z%a.G, first+c, dq, 1)
			}
			w.release()
		})
		if b.to.Q.Data == nil {
			continue
		}
		par.For(rows, max(1, 1<<12/a.E), func(lo, hi int) {
			for row := lo; row < hi; row++ {
				s, h, i := a.split(row)
				dq := b.to.Q.at(s, h, i)[:a.E]
				for c := range n {
					simd.Axpy(a.scale(), (*parts)[(c*rows+row)*a.E:][:a.E], dq)
				}
			}
		})
	}
	returnFloats(parts)
}

// sharedBias runs all tasks so that those that add to the same elements of the
// bias run one after the other.
func (b *backward) sharedBias() {
	a, x := b.a, b.a.Bias
	nb, innerB := a.B, 1
	if x.Batch == 0 {
		nb, innerB = 1, a.B
	}
	ng, innerG := a.G, 1
	if x.Head == 0 {
		ng, innerG = 1, a.G
	}
	par.For(nb*ng, 1, func(lo, hi int) {
		w := b.worker()
		for u := lo; u < hi; u++ {
			for inner := range innerB * innerG {
				s, g := u/ng*innerB+inner/innerG, u%ng*innerG+inner%innerG
				for c := range b.nChunks {
					w.chunk(b, s, g, c, b.to.Q, a.scale())
				}
			}
		}
		w.release()
	})
}

// block is queries r to r+n of a tall matrix and keys j0 to j1.
type block struct {
	t         tall
	r, n      int
	j0, width int
	do        simd.Mat // of these queries
}

// chunk adds to the gradients of chunk c of the keys of a head, and to those of
// its queries, scaled, at dq.
func (w *backWorker) chunk(b *backward, s, g, c int, dq Heads, scale float32) {
	a := b.a
	k0 := c * chunkKeys
	k1 := min(k0+chunkKeys, a.Lk)
	nk := k1 - k0
	loaded := false
	for i := range b.count {
		t := a.tall(s, g, i, b.count)
		do := a.rows(b.up.DOut, s, t.h)
		for r := 0; r < t.n; r += chunkRows {
			n := min(chunkRows, t.n-r)
			lo, hi := w.look(a, t.first+r, n, k0, k1)
			if lo >= hi {
				continue
			}
			if !loaded {
				w.loadChunk(a, s, g, k0, k1)
				loaded = true
			}
			lo &^= 63
			w.block(b, block{t: t, r: r, n: n, j0: lo, width: hi - lo, do: from(do, r)}, dq, scale)
		}
	}
	if !loaded {
		return
	}
	switch {
	case a.Additive != nil:
		var dk simd.Mat
		if b.to.K.Data != nil {
			dk = from(keys(b.to.K, s, g), k0)
		}
		w.additiveGrad.Flush(dk.Data, dk.Row, b.additivePart(s, g, c))
	case b.to.K.Data != nil:
		dk := from(keys(b.to.K, s, g), k0)
		for j := range nk {
			simd.Axpy(a.scale(), w.dk[j*a.E:][:a.E], dk.Data[j*dk.Row:][:a.E])
		}
	}
	if b.to.V.Data != nil {
		dv := from(keys(b.to.V, s, g), k0)
		for j := range nk {
			d := dv.Data[j*dv.Row:][:a.EV]
			simd.Add(d, d, w.dv[j*a.EV:][:a.EV])
		}
	}
}

// block adds what a block gives to the gradients of its keys, and to those of its
// queries, scaled, at to.
func (w *backWorker) block(b *backward, x block, to Heads, scale float32) {
	a, t, n := b.a, x.t, x.n
	row := t.first + x.r
	at, width := x.j0-w.from, x.width
	w.ask(a, t, x.r, n)
	c := w.score(a, t, x.r, n, x.j0, x.j0+width)
	shift, inverse := b.st.Shift[row:][:n], b.st.Inverse[row:][:n]
	simd.WeightRows(w.scores, w.stride, width, c, shift, inverse)
	w.mend(b, x)

	dw := simd.Mat{Data: w.dscores, Row: w.stride, Col: 1}
	multiply(dw, x.do, n, &w.valuesT, w.valuesAt.T(), 0, a.EV, at, at+width, w.valuesFinite, false)
	if a.Dropout > 0 {
		for i := range n {
			d := w.dscores[i*w.stride:][:width]
			a.drop(d, d, row+i, x.j0)
			a.drop(w.kept[i*w.stride:][:width], w.scores[i*w.stride:][:width], row+i, x.j0)
		}
	}
	if b.up.DWeights != nil {
		for i := range n {
			d := w.dscores[i*w.stride:][:width]
			simd.Add(d, d, b.up.DWeights[(row+i)*a.Lk+x.j0:][:width])
		}
	}
	simd.GradRows(w.dscores, w.scores, w.stride, width, (*b.mean)[row:][:n])

	if b.to.V.Data != nil {
		useOrCopy(&w.upstream, x.do, n, a.EV)
		kept := simd.Mat{Data: w.kept, Row: 1, Col: w.stride}
		multiply(simd.RowMajor(w.dv[at*a.EV:], a.EV), kept, width, &w.upstream, x.do, 0, n, 0, a.EV, finite(x.do, n, a.EV), true)
	}
	if b.to.Bias != nil {
		w.biasGrad(b, x)
	}
	if a.SoftCap != 0 {
		for i := range n {
			d, t := w.dscores[i*w.stride:][:width], w.capped[i*w.stride:][:width]
			for j, v := range t {
				if d[j] != 0 { // where it is, v may be NaN
					d[j] *= 1 - v*v
				}
			}
		}
	}
	dq := w.dq[:n*a.E]
	if a.Additive != nil {
		clear(dq)
		simd.AdditiveTileGrad(dq, a.E, w.dscores, w.stride, &w.queries, 0, n, &w.additiveGrad, at, at+width)
	} else {
		w.dotGrad(b, x, at)
	}
	if to.Data != nil {
		to := from(a.rows(to, t.b, t.h), x.r)
		for i := range n {
			simd.Axpy(scale, dq[i*a.E:][:a.E], to.Data[i*to.Row:][:a.E])
		}
	}
}

// dotGrad sets w.dq and adds to w.dk what the gradients of dot products give, but
// for their scale. The block starts with key number at of the chunk.
func (w *backWorker) dotGrad(b *backward, x block, at int) {
	a := b.a
	ds := simd.Mat{Data: w.dscores, Row: w.stride, Col: 1}
	if b.to.K.Data != nil {
		q := from(x.t.q, x.r)
		useOrCopy(&w.queryRows, q, x.n, a.E)
		multiply(simd.RowMajor(w.dk[at*a.E:], a.E), ds.T(), x.width, &w.queryRows, q, 0, x.n, 0, a.E, finite(q, x.n, a.E), true)
	}
	if b.to.Q.Data != nil {
		multiply(simd.RowMajor(w.dq, a.E), ds, x.n, &w.keyRows, w.keysAt, at, at+x.width, 0, a.E, w.keysFinite, false)
	}
}

// biasGrad adds the gradients of the scores to that of the bias.
func (w *backWorker) biasGrad(b *backward, x block) {
	for i := range x.n {
		ds := w.dscores[i*w.stride:][:x.width]
		to := b.to.Bias[b.a.Bias.at(b.a, x.t.first+x.r+i, x.j0):]
		switch b.a.Bias.Col {
		case 1:
			simd.Add(to[:len(ds)], to[:len(ds)], ds)
		case 0:
			to[0] += simd.Sum(ds)
		default:
			for j, d := range ds {
				to[j*b.a.Bias.Col] += d
			}
		}
	}
}

// mend sets right the weights of rows that are not finite, as those of a query
// with a NaN: NaN where a key is seen, 0 elsewhere. And whatever comes from a
// query without an upstream gradient is 0.
func (w *backWorker) mend(b *backward, x block) {
	a := b.a
	for i := range x.n {
		row := x.t.first + x.r + i
		bad := b.st.bad(row)
		if !bad && w.valuesFinite {
			continue
		}
		p := w.scores[i*w.stride:][:x.width]
		silent := zero(x.do.Data[i*x.do.Row:][:a.EV])
		if b.up.DWeights != nil {
			silent = silent && zero(b.up.DWeights[row*a.Lk:][:a.Lk])
		}
		switch {
		case silent:
			clear(p)
		case bad:
			w.spoil(a, p, i, x.j0)
		}
	}
}
