package models

import (
	"runtime"
	"sync"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/tensor"
)

const (
	// partTokens is the number of tokens that pass through all layers together in a large batch.
	// It is small enough for a layer's intermediate values to stay in a processor's cache.
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
// The batch is not split in training or if the Run has callbacks.
func inParts(t *tensor.Tape, x Batch, r *Run, width int, hidden func(t *tensor.Tape, x Batch) *tensor.Tensor) *tensor.Tensor {
	n, longest := len(x.IDs), x.longest()
	parts := partsOf(n, longest)
	if parts < 2 || t.Recording() || r.State != nil || r.Observe != nil || r.Inspect != nil || r.States != nil || r.Gates != nil {
		return hidden(t, x)
	}
	y := t.Make(n, longest, width)
	par.For(parts, 1, func(part, end int) {
		own := tapes.Get().(*tensor.Tape)
		for ; part < end; part++ {
			lo, hi := part*n/parts, (part+1)*n/parts
			from := hidden(own, x.part(lo, hi)).Data()
			each, to := len(from)/(hi-lo), longest*width
			for i := lo; i < hi; i++ {
				row := y.Data()[i*to : (i+1)*to]
				clear(row[copy(row, from[(i-lo)*each:][:each]):])
			}
			own.Reset()
		}
		tapes.Put(own)
	})
	return y
}

// tapes are reused between parts.
var tapes = sync.Pool{New: func() any { return tensor.NewTape(tensor.Infer) }}

// partsOf returns the number of parts for n sequences.
func partsOf(n, longest int) int {
	tokens, procs := n*longest, runtime.GOMAXPROCS(0)
	parts := (tokens + partTokens - 1) / partTokens
	if even := (parts + procs - 1) / procs * procs; tokens/max(even, 1) >= fewTokens {
		parts = even
	}
	return min(parts, n)
}
