package bench

import "github.com/attn-go/attn/internal/flash"

// Pairs returns the number of query-key pairs that one head computes for all sequences, as
// defined in the package comment.
func (w Work) Pairs() float64 {
	if w.base() == "generate" {
		return float64(w.B) * float64(w.Lk) * float64(w.Lk+1) / 2
	}
	pairs := 0.0
	keys := w.keys()
	for b := range w.B {
		for i := range w.Lq {
			lo, hi := keys(w, b, i)
			to := float64(hi)
			if w.Causal { // half of each diagonal pair, so that a square counts as exactly half
				to = min(to, float64(i+w.Lk-w.Lq)+0.5)
			}
			pairs += max(0, to-float64(lo))
		}
	}
	return pairs
}

// Tiles returns the number of live tiles of one head for all sequences: tiles of scores in which
// some query attends to some key. A tile has as many queries and keys as the kernels compute at
// a time.
func (w Work) Tiles() float64 {
	keys := w.keys()
	n := 0
	for b := range w.B {
		for i0 := 0; i0 < w.Lq; i0 += flash.TileRows {
			for j0 := 0; j0 < w.Lk; j0 += flash.TileKeys {
				live := false
				for i := i0; i < min(i0+flash.TileRows, w.Lq) && !live; i++ {
					lo, hi := keys(w, b, i)
					if w.Causal {
						hi = min(hi, i+w.Lk-w.Lq+1)
					}
					live = max(lo, j0) < min(hi, j0+flash.TileKeys)
				}
				if live {
					n++
				}
			}
		}
	}
	return float64(n)
}

// FLOPs returns the useful floating-point operations of one call.
func (w Work) FLOPs() float64 {
	switch w.Op {
	case "gemm":
		return 2 * float64(w.Lq) * float64(w.Lk) * float64(w.E)
	case "read":
		return 0
	case "linear":
		return w.stateOperations()
	case "linear-train":
		return 4 * w.stateOperations()
	}
	attention, maps := 2*float64(w.H)*w.Pairs()*float64(w.E+w.V), w.maps()
	if triples := w.triples(); triples > 0 {
		// These scores are not products, so nothing is recomputed.
		attention = float64(w.H)*w.Pairs()*2*float64(w.V) + 4*triples
		if w.Training() {
			return 3 * (attention + maps)
		}
		return attention + maps
	}
	if w.Training() {
		return 3.5*attention + 3*maps
	}
	return attention + maps
}

// stateOperations returns the operations of all tokens of linear attention on the elements of states: a query reads them, a
// key reads them if the rule erases, and what the token adds changes them.
func (w Work) stateOperations() float64 {
	each := 4.0
	if w.erases() {
		each = 6
	}
	return each * float64(w.B) * float64(w.H) * float64(w.Lq) * float64(w.E) * float64(w.V)
}

// maps returns the operations of the linear maps in a forward pass.
func (w Work) maps() float64 {
	b, h, g, lq, lk, e, v, width := float64(w.B), float64(w.H), float64(w.G), float64(w.Lq), float64(w.Lk), float64(w.E), float64(w.V), float64(w.Width)
	switch w.base() {
	case "mha":
		return 2 * b * width * (lq*h*e + lk*g*e + lk*g*v + lq*h*v)
	case "additive":
		return 2 * b * width * e * (h*lq + g*lk)
	}
	return 0
}

// Triples returns the number of evaluations of tanh in a forward pass of an additive score, or 0
// for other operations.
func (w Work) Triples() float64 {
	if w.base() != "additive" {
		return 0
	}
	return w.triples()
}

// triples returns the number of triples of query, key and feature for scores that are not products.
func (w Work) triples() float64 {
	switch w.base() {
	case "additive":
		return float64(w.H) * w.Pairs() * float64(w.Width)
	case "gaussian":
		return float64(w.H) * w.Pairs() * float64(w.E)
	}
	return 0
}

// CacheBytes returns the bytes of keys and values that a decoder's step reads, or that all steps of
// a generation read; 0 for operations without a cache.
func (w Work) CacheBytes() float64 {
	if !w.Takes("storage") {
		return 0
	}
	s := w.Storage
	each := float64(w.G) * float64(s.Bytes(w.E)+s.Bytes(w.V))
	if w.base() == "generate" {
		return w.Pairs() * each
	}
	return float64(w.B) * float64(w.Lk) * each
}
