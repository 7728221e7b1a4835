package flash

import (
	"math"
	"slices"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
)

// chunkKeys is the number of keys of a chunk. One task of the backward pass computes one chunk.
const chunkKeys = 256

// chunkRows is the number of queries that a task combines with its keys at a time.
const chunkRows = 5 * TileRows

// Grads are the gradients of the results, which the backward pass reads, and the gradients of the
// inputs, which it adds to. A gradient of an input without data is not computed.
type Grads struct {
	DOut       Heads     // [B H Lq EV]
	DWeights   []float32 // [B H Lq Lk]; nil if no loss depends on the returned weights
	DLogSumExp []float32 // [B H Lq]; nil if no loss depends on the log-sum-exp
	DScores    []float32 // of the result of Scores, and then all others are ignored; nil after Forward

	Q, K, V  Heads       // laid out as in Attention
	Given    []float32   // like Attention.Given; nil if not requested
	Changes  [][]float32 // of the parameters of each of Attention.Changes; nil if not requested
	Additive []float32   // like Attention.Additive; nil if not requested
	Gaussian []float32   // of the w of Attention.Gaussian; nil if not requested
	Sinks    []float32   // like Attention.Sinks; nil if not requested
}

// Backward computes the gradients of the inputs from the gradients of the results, and adds them to
// those in g. The results in a must be unchanged since Forward or Scores.
func Backward(a *Attention, g *Grads) {
	if a.B == 0 || a.H == 0 || a.Lq == 0 {
		return
	}
	b := newBackward(a, g)
	switch {
	case a.keys() == 0:
		b.means(0, a.B*a.H*a.Lq)
	case a.B*a.G < 4*par.Threads() && par.Threads() > 1 && b.nChunks > 1 && !b.addsToChanges():
		b.splitKeys()
	default:
		b.wholeHeads()
	}
	b.sinks()
	if b.features != nil {
		w := b.featuresGrad()
		for i := range a.B * a.G * b.nChunks {
			simd.Add(w, w, (*b.features)[i*a.E:][:a.E])
		}
		returnFloats(b.features)
	}
	returnFloats(b.mean)
}

func newBackward(a *Attention, g *Grads) *backward {
	b := &backward{a: a, g: g, plain: true, nChunks: (a.keys() + chunkKeys - 1) / chunkKeys}
	for i := range a.Changes {
		b.plain = b.plain && !b.changes(i)
		b.keep = b.keep || !a.Changes[i].Rule.Adds()
	}
	b.count = a.queryBlocks(a.Q, a.Out, g.DOut)
	b.mean = borrowFloats(a.B * a.H * a.Lq)
	if b.featuresGrad() != nil {
		b.features = borrowFloats(a.B * a.G * b.nChunks * a.E)
		clear(*b.features)
	}
	return b
}

// featuresGrad returns the gradient of the form's w, or nil if it is not requested.
func (b *backward) featuresGrad() []float32 {
	if b.a.Gaussian != nil {
		return b.g.Gaussian
	}
	return b.g.Additive
}

// backward is the state of a call of Backward.
type backward struct {
	a        *Attention
	g        *Grads
	plain    bool       // whether no score change has a backward step
	keep     bool       // whether a score change needs the scores
	count    int        // query blocks per head of keys
	nChunks  int        // chunks of keys per head
	mean     *[]float32 // D of each row: see means
	features *[]float32 // partial gradients of the form's w, one per chunk; nil if not requested
	orders   *[]order   // of each head: see splitKeys
	delays   *[]delay   // of each chunk
}

// changes reports whether score change i has a backward step.
func (b *backward) changes(i int) bool { return b.g.Changes[i] != nil || !b.a.Changes[i].Rule.Adds() }

// featuresPart returns the partial gradient of the form's w to which chunk c of a head adds.
func (b *backward) featuresPart(s, g, c int) []float32 {
	if b.features == nil {
		return nil
	}
	return (*b.features)[((s*b.a.G+g)*b.nChunks+c)*b.a.E:][:b.a.E]
}

// means computes D_i = Σ_j w_ij·dw_ij, which equals Σ_v do_iv·o_iv. For a query that attends to a
// single key, whose weight is 1, D_i has exactly the bits of dw_ij. Their difference, which large
// queries and keys would amplify, is then 0.
func (b *backward) means(lo, hi int) {
	a := b.a
	if b.g.DScores != nil {
		return
	}
	sequence := a.H * a.Lq
	sideBySide := lo%sequence == 0 && hi%sequence == 0 && b.sideBySide()
	if sideBySide {
		b.meansOfSequences(lo, hi)
	}
	var w *worker // for look; allocated when it is first needed
	for row := lo; row < hi; {
		s, h, i := a.split(row)
		n := min(hi-row, a.Lq-i) // of the same head
		do := simd.RowMajor(b.g.DOut.at(s, h, i), b.g.DOut.Row)
		out := simd.RowMajor(b.a.Out.at(s, h, i), b.a.Out.Row)
		mean := (*b.mean)[row:][:n]
		if !sideBySide {
			simd.RowDots(mean, do, out, a.EV)
		}
		if a.Dropout > 0 { // without dropout, the result of a single key is its value
			for k, inverse := range a.Inverse[row:][:n] {
				if inverse != 1 {
					continue
				}
				if w == nil {
					w = workers.Get().(*worker)
					w.prepareLook(a, 1)
				}
				w.look(a, row+k, 1, 0, a.keys())
				if x := a.span(w.spans, 0); x.Hi-x.Lo == 1 {
					d := mean[k : k+1]
					simd.RowDots(d, from(do, k), from(keys(a.V, a.source(s), h/(a.H/a.G)), x.Lo), a.EV)
					a.drop(d, d, row+k, x.Lo)
				}
			}
		}
		for k, d := range mean {
			if d != d && zero(do.Data[k*do.Row:][:a.EV]) { // 0 times an output that is not finite
				mean[k] = 0
			}
		}
		if b.g.DWeights != nil {
			for k := range mean {
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
	if w != nil {
		w.release()
	}
}

// sideBySide reports whether the results of all heads of a query are contiguous, and the sequences
// so short that their rows are multiplied together, in fewer calls.
func (b *backward) sideBySide() bool {
	a := b.a
	side := func(x Heads) bool { return x.Head == a.EV && x.Row == a.H*a.EV }
	short := a.Lq < 64 && a.H*a.Lq <= 1<<10
	return a.H > 1 && a.EV > 0 && short && side(b.g.DOut) && side(a.Out)
}

// meansOfSequences computes the products of means for whole sequences.
func (b *backward) meansOfSequences(lo, hi int) {
	a := b.a
	n := a.H * a.Lq
	byQuery := borrowFloats(n)
	for ; lo < hi; lo += n {
		s, mean := lo/n, (*b.mean)[lo:][:n]
		do, out := simd.RowMajor(b.g.DOut.at(s, 0, 0), a.EV), simd.RowMajor(a.Out.at(s, 0, 0), a.EV)
		simd.RowDots(*byQuery, do, out, a.EV)
		for h := range a.H {
			to := mean[h*a.Lq:][:a.Lq]
			for i := range to {
				to[i] = (*byQuery)[i*a.H+h]
			}
		}
	}
	returnFloats(byQuery)
}

// sinks adds the gradient of the sinks. The value of a sink is 0, and so is the gradient of its
// weight.
func (b *backward) sinks() {
	a := b.a
	if b.g.Sinks == nil || b.g.DScores != nil {
		return
	}
	sums := make([]float64, a.H)
	for row := range a.B * a.H * a.Lq {
		_, h, _ := a.split(row)
		if inverse := b.a.Inverse[row]; inverse != 0 {
			if mean := (*b.mean)[row]; mean != 0 {
				sums[h] -= float64(math.Exp2(a.sink(row, b.a.Shift[row])) * float64(inverse) * float64(mean))
			}
		} else if b.g.DLogSumExp != nil { // the log-sum-exp is the sink
			sums[h] += float64(b.g.DLogSumExp[row])
		}
	}
	for h, sum := range sums {
		b.g.Sinks[h] += float32(sum)
	}
}

// zero reports whether all elements of x are zero.
func zero(x []float32) bool {
	return !slices.ContainsFunc(x, func(v float32) bool { return v != 0 })
}

// addsToChanges reports whether the gradient of some score change's parameters is requested.
func (b *backward) addsToChanges() bool {
	return slices.ContainsFunc(b.g.Changes, func(grad []float32) bool { return grad != nil })
}

// wholeHeads gives each task all chunks of some heads, one after the other. Heads that add to the same elements of a
// score change's gradient are in one task.
func (b *backward) wholeHeads() {
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
	tasks, rows := nb*ng, a.H/a.G*a.Lq
	each := a.B*a.G/tasks*rows*a.keys()*(a.E+a.EV) + 1<<12
	threads := par.Threads()
	// Preparing a worker takes longer than a head of a few keys.
	chunk := max(1, min(1<<19/each, max(1<<13/each, tasks/(4*threads))))
	if tasks == a.B*a.G && a.B >= 2*threads && b.sideBySide() {
		chunk = (chunk + a.G - 1) / a.G * a.G // whole sequences
	}
	par.For(tasks, chunk, func(lo, hi int) {
		w := b.worker()
		if tasks == a.B*a.G {
			b.means(lo*rows, hi*rows)
		}
		for u := lo; u < hi; u++ {
			for inner := range innerB * innerG {
				s, g := u/ng*innerB+inner/innerG, u%ng*innerG+inner%innerG
				if z := s*a.G + g; tasks < a.B*a.G {
					b.means(z*rows, (z+1)*rows)
				}
				for c := range b.nChunks {
					w.chunk(b, s, g, c, nil)
				}
			}
		}
		w.release()
	})
}
