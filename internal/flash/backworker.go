package flash

import (
	"sync"

	"github.com/attn-go/attn/internal/simd"
)

// backWorker is the memory of a task of the backward pass.
type backWorker struct {
	worker
	valuesT, keyRows    simd.Panels // Vᵀ and K of the chunk
	queryRows, upstream simd.Panels // Q and dOut of the block
	keysAt              simd.Mat
	additiveGrad        simd.AdditiveKeysGrad // of the chunk, in the additive form
	keysFinite          bool

	dscores          []float32 // dw, and then ds
	kept, keptMemory []float32 // the weights after dropout
	cappedMemory     []float32
	dq, dk, dv       []float32
}

var backWorkers = sync.Pool{New: func() any { return new(backWorker) }}

// worker returns memory for a task.
func (b *backward) worker() *backWorker {
	w := backWorkers.Get().(*backWorker)
	a := b.a
	w.prepare(a, chunkRows, chunkKeys)
	w.dscores = grow(w.dscores, chunkRows*w.stride)
	w.capped = nil
	if a.SoftCap != 0 {
		w.cappedMemory = grow(w.cappedMemory, chunkRows*w.stride)
		w.capped = w.cappedMemory
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

// loadChunk makes keys k0 to k1 of a head ready and clears the sums for them.
func (w *backWorker) loadChunk(a *Attention, b, g, k0, k1 int) {
	k, v, n := from(keys(a.K, b, g), k0), from(keys(a.V, b, g), k0), k1-k0
	w.loadKeys(a, b, g, k0, k1)
	if a.Additive != nil {
		w.additiveGrad.Set(k.Data, k.Row, n, a.E, a.Additive)
	} else {
		useOrCopy(&w.keyRows, k, n, a.E)
		w.keysAt, w.keysFinite = k, finite(k, n, a.E)
		clear(w.dk[:n*a.E])
	}
	w.valuesT.Copy(v.T(), a.EV, n)
	w.valuesAt, w.valuesFinite = v, finite(v, n, a.EV)
	clear(w.dv[:n*a.EV])
}

// release hands w back without the caller's slices.
func (w *backWorker) release() {
	w.forget()
	w.keysAt = simd.Mat{}
	w.additiveGrad.Set(nil, 0, 0, 0, nil)
	for _, p := range []*simd.Panels{&w.keyRows, &w.queryRows, &w.upstream} {
		p.Release()
	}
	backWorkers.Put(w)
}
