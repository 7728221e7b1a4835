package models

import (
	"runtime"
	"sync"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/tensor"
)

const (
	// partTokens is how many tokens go through all layers together, if a batch has more: so
	// many that what is inside of a layer stays in a processor's cache.
	partTokens = 128
	// fewTokens is how many a part should have at least, for each reads all weights.
	fewTokens = 64
)

// inParts returns the hidden states of a batch, of the given width. A few sequences at a time go
// through all layers, each part on one processor: so its states stay in a cache, and processors
// wait for each other once and not in every product. What a sequence comes to does not depend on
// the others.
//
// Who is told of what is inside, or trains, gets the batch as a whole.
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

// tapes are for parts.
var tapes = sync.Pool{New: func() any { return tensor.NewTape(tensor.Infer) }}

// partsOf returns into how many parts to cut n sequences.
func partsOf(n, longest int) int {
	tokens, procs := n*longest, runtime.GOMAXPROCS(0)
	parts := (tokens + partTokens - 1) / partTokens
	if even := (parts + procs - 1) / procs * procs; tokens/max(even, 1) >= fewTokens {
		parts = even
	}
	return min(parts, n)
}
