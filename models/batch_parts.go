package models

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/stats"
	"github.com/attn-go/attn/tensor"
)

const (
	// partTokens is the number of tokens that pass through all layers together in a large batch.
	// It is small enough for a layer's intermediate values to stay in a processor's cache: the row
	// "encode MiniLM-L6 B32 L128" of bench/RESULTS.md.
	partTokens = 128
	// fewTokens is the least number of tokens that a part should have, because each part reads
	// all weights.
	fewTokens = 64
)

// inParts returns the hidden states of a batch, of the given width. It splits the batch into
// parts of a few sequences, and one processor runs each part through all layers: states stay in
// that processor's cache, and processors synchronise once instead of in every matrix product. A
// sequence's result does not depend on the others.
//
// A tape that records, a State and the callbacks of a Run need the whole batch at once, and a part of eachSimilar is cut
// already.
func inParts(t *tensor.Tape, x Batch, r *Run, width int, hidden func(t *tensor.Tape, x Batch) *tensor.Tensor) *tensor.Tensor {
	if r.alone || t.Recording() || r.State != nil || r.together() {
		return hidden(t, x)
	}
	n, longest := len(x.IDs), x.longest()
	parts := partsOf(n, longest)
	y := t.Make(n, longest, width)
	eachPart(t, parts, func(own *tensor.Tape, part int) {
		lo, hi := part*n/parts, (part+1)*n/parts
		from := hidden(own, x.part(lo, hi)).Data()
		each, to := len(from)/(hi-lo), longest*width
		for i := lo; i < hi; i++ {
			row := y.Data()[i*to : (i+1)*to]
			clear(row[copy(row, from[(i-lo)*each:][:each]):])
		}
	})
	return y
}

// eachPart calls run for each of n parts, on all processors, with an empty tape that has the context
// of t.
func eachPart(t *tensor.Tape, n int, run func(own *tensor.Tape, part int)) {
	par.InOrder(n, 1, func(part, _ int) { // those of eachSimilar begin with the longest
		own := tapes.Get().(*tensor.Tape)
		own.SetContext(t.Context())
		own.SetFormat(t.Format())
		run(own, part)
		own.Reset()
		own.SetContext(context.Background())
		tapes.Put(own)
	})
}

// similar divides sequences of the given lengths into parts of at most about partTokens tokens, padding
// included. The sequences of a part have similar lengths, and the longest come first.
func similar(lens []int) [][]int {
	order, tokens := stats.Numbers(len(lens)), 0
	for _, n := range lens {
		tokens += n
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(lens[j], lens[i]) })
	most := min(max(tokens/par.Threads(), fewTokens), partTokens)
	var parts [][]int
	for len(order) > 0 {
		n := min(max(1, most/max(1, lens[order[0]])), len(order))
		parts, order = append(parts, order[:n]), order[n:]
	}
	return parts
}

// eachSimilar returns a row of the given width for each sequence of a batch, from calls of run for sequences of similar
// lengths.
func eachSimilar(t *tensor.Tape, x Batch, width int, run func(own *tensor.Tape, some Batch) *tensor.Tensor) *tensor.Tensor {
	y := t.Make(len(x.IDs), width)
	inSimilar(t, x, func(own *tensor.Tape, list []int) {
		rows := run(own, x.pick(list)).Data()
		for i, text := range list {
			copy(y.Data()[text*width:][:width], rows[i*width:])
		}
	})
	return y
}

// inSimilar calls run with the numbers of sequences of similar lengths, for all sequences of a batch.
func inSimilar(t *tensor.Tape, x Batch, run func(own *tensor.Tape, list []int)) {
	parts := similar(x.Lens())
	eachPart(t, len(parts), func(own *tensor.Tape, part int) { run(own, parts[part]) })
}

// tapes are reused between parts.
var tapes = sync.Pool{New: func() any { return tensor.NewTape(tensor.Infer) }}

// partsOf returns the number of parts for n sequences.
func partsOf(n, longest int) int {
	tokens, procs := n*longest, par.Threads()
	parts := (tokens + partTokens - 1) / partTokens
	if even := (parts + procs - 1) / procs * procs; tokens/max(even, 1) >= fewTokens {
		parts = even
	}
	return min(parts, n)
}
