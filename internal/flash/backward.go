package flash

import (
	"math"
	"slices"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
)

// chunkKeys is how many keys a task of the backward pass owns.
const chunkKeys = 256

// chunkRows returns how many queries a task combines with its keys at a time: whole tiles.
func (a *Attention) chunkRows() int {
	if a.tiles() {
		return 2 * tileRows
	}
	return 5 * vectorRows
}

// Grads are the gradients of the results, from which the backward pass starts, and those to which
// it adds. Of the latter, one without data is not computed.
type Grads struct {
	DOut       Heads     // [B H Lq EV]
	DWeights   []float32 // [B H Lq Lk], if Weights went somewhere as well; else nil
	DLogSumExp []float32 // nil if there is none
	DScores    []float32 // of the result of Scores, in place of all others; else nil

	Q, K, V  Heads       // as those of the Attention
	Given    []float32   // as Attention.Given; nil if not asked for
	Changes  [][]float32 // of the numbers of each of Attention.Changes; nil if not asked for
	Additive []float32   // as Attention.Additive; nil if not asked for
	Gaussian []float32   // of the w of Attention.Gaussian; nil if not asked for
	Sinks    []float32   // as Attention.Sinks; nil if not asked for
}

// Backward adds to gradients what follows from those of the results, which are as Forward or
// Scores left them.
func Backward(a *Attention, g *Grads) {
	if a.B == 0 || a.H == 0 || a.Lq == 0 {
		return
	}
	b := &backward{a: a, g: g, plain: true}
	for i := range a.Changes {
		b.plain = b.plain && !b.changes(i)
		b.keep = b.keep || !a.Changes[i].Rule.Adds()
	}
	b.count = a.queryBlocks(a.Q, a.Out, g.DOut)
	if a.tiles() {
		// Sums over queries are in groups, which must not depend on how many queries the
		// heads before have.
		b.count = a.H / a.G
	}
	b.mean = borrowFloats(a.B * a.H * a.Lq)
	if g.DScores == nil {
		par.For(a.B*a.H*a.Lq, max(1, 1<<12/(a.EV+1)), b.means)
		b.sinks()
	}
	if a.keys() == 0 {
		returnFloats(b.mean)
		return
	}
	b.nChunks = (a.keys() + chunkKeys - 1) / chunkKeys
	w := g.Additive
	if a.Gaussian != nil {
		w = g.Gaussian
	}
	if w != nil {
		b.features = borrowFloats(a.B * a.G * b.nChunks * a.E)
		clear(*b.features)
	}
	b.chunks()
	if w != nil {
		for i := range a.B * a.G * b.nChunks {
			simd.Add(w, w, (*b.features)[i*a.E:][:a.E])
		}
		returnFloats(b.features)
	}
	returnFloats(b.mean)
}

// backward is a call of Backward.
type backward struct {
	a        *Attention
	g        *Grads
	plain    bool       // whether no change has a backward step
	keep     bool       // whether one needs the scores
	count    int        // of query blocks of a head of keys
	nChunks  int        // of keys
	mean     *[]float32 // D of each row
	features *[]float32 // the gradient of the w of the form that each chunk gives; nil if not asked for
}

// changes reports whether change number i has a backward step.
func (b *backward) changes(i int) bool { return b.g.Changes[i] != nil || !b.a.Changes[i].Rule.Adds() }

// featuresPart returns the gradient of the w of the form for a chunk to add to.
func (b *backward) featuresPart(s, g, c int) []float32 {
	if b.features == nil {
		return nil
	}
	return (*b.features)[((s*b.a.G+g)*b.nChunks+c)*b.a.E:][:b.a.E]
}

// means computes D_i = Σ_j w_ij·dw_ij, which is Σ_v do_iv·o_iv. Where a query attends to
// one key, whose weight is 1, D_i has the very bits of dw_ij: their difference, which large
// queries and keys would magnify, is 0.
func (b *backward) means(lo, hi int) {
	a := b.a
	var w *worker // which looks, where that is needed
	for row := lo; row < hi; {
		s, h, i := a.split(row)
		n := min(hi-row, a.Lq-i) // of the same head
		do := simd.Mat{Data: b.g.DOut.at(s, h, i), Row: b.g.DOut.Row, Col: 1}
		out := simd.Mat{Data: b.a.Out.at(s, h, i), Row: b.a.Out.Row, Col: 1}
		mean := (*b.mean)[row:][:n]
		simd.RowDots(mean, do, out, a.EV, simd.TilesForHeads(a.EV))
		if a.Dropout > 0 { // else the result is the value
			for k := range mean {
				if b.a.Inverse[row+k] != 1 {
					continue
				}
				if w == nil {
					w = workers.Get().(*worker)
					w.prepareLook(a, 1)
					defer w.release()
				}
				w.look(a, row+k, 1, 0, a.keys())
				if x := a.span(w.spans, 0); x.Hi-x.Lo == 1 {
					d := mean[k : k+1]
					simd.RowDots(d, from(do, k), from(keys(a.V, a.source(s), h/(a.H/a.G)), x.Lo), a.EV, simd.TilesForHeads(a.EV))
					a.drop(d, d, row+k, x.Lo)
				}
			}
		}
		for k, d := range mean {
			if d != d && zero(do.Data[k*do.Row:][:a.EV]) { // and out is not finite
				mean[k] = 0
			}
			if b.g.DWeights != nil {
				w, dw := b.a.Weights[(row+k)*a.keys():][:a.keys()], b.g.DWeights[(row+k)*a.keys():][:a.keys()]
				for j, x := range w {
					if x != 0 && dw[j] != 0 {
						mean[k] += float32(x * dw[j])
					}
				}
			}
		}
		if b.g.DLogSumExp != nil {
			// The derivative of the log-sum-exp by a score is the weight.
			for k := range mean {
				if b.a.Inverse[row+k] != 0 {
					mean[k] -= b.g.DLogSumExp[row+k]
				}
			}
		}
		row += n
	}
}

// sinks adds to the gradient of the sinks: a sink's value is 0, and so is the
// gradient of its weight.
func (b *backward) sinks() {
	a := b.a
	if b.g.Sinks == nil {
		return
	}
	sums := make([]float64, a.H)
	for row := range a.B * a.H * a.Lq {
		_, h, _ := a.split(row)
		if inverse := b.a.Inverse[row]; inverse != 0 {
			if mean := (*b.mean)[row]; mean != 0 {
				sums[h] -= float64(math.Exp2(a.sink(row, b.a.Shift[row])) * float64(inverse) * float64(mean))
			}
		} else if b.g.DLogSumExp != nil { // which is the sink itself
			sums[h] += float64(b.g.DLogSumExp[row])
		}
	}
	for h, sum := range sums {
		b.g.Sinks[h] += float32(sum)
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
	const enough = 16
	wave := min(chunks, max(1, enough/heads))
	if wave == 1 || slices.ContainsFunc(b.g.Changes, func(grad []float32) bool { return grad != nil }) {
		b.inTurn()
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
				w.chunk(b, z/a.G, z%a.G, first+c, dq)
			}
			w.release()
		})
		if b.g.Q.Data == nil {
			continue
		}
		par.For(rows, max(1, 1<<12/max(a.E, 1)), func(lo, hi int) {
			for row := lo; row < hi; row++ {
				s, h, i := a.split(row)
				dq := b.g.Q.at(s, h, i)[:a.E]
				for c := range n {
					simd.Add(dq, dq, (*parts)[(c*rows+row)*a.E:][:a.E])
				}
			}
		})
	}
	returnFloats(parts)
}

// inTurn runs the tasks of a head one after the other, and so those that add to the same elements
// of the gradient of a change's numbers.
func (b *backward) inTurn() {
	a := b.a
	nb, innerB, ng, innerG := a.B, 1, a.G, 1
	for i := range a.Changes {
		if b.g.Changes[i] != nil && a.Changes[i].Batch == 0 {
			nb, innerB = 1, a.B
		}
		if b.g.Changes[i] != nil && a.Changes[i].Head == 0 {
			ng, innerG = 1, a.G
		}
	}
	par.For(nb*ng, 1, func(lo, hi int) {
		w := b.worker()
		for u := lo; u < hi; u++ {
			for inner := range innerB * innerG {
				s, g := u/ng*innerB+inner/innerG, u%ng*innerG+inner%innerG
				for c := range b.nChunks {
					w.chunk(b, s, g, c, b.g.Q)
				}
			}
		}
		w.release()
	})
}
