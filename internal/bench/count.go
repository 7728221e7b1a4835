package bench

// Pairs returns how many pairs of query and key one head of all sequences
// computes, as the package comment counts them.
func (w Work) Pairs() float64 {
	lens := w.lengths()
	if w.Mask != "padding" {
		lens = nil
	}
	pairs := 0.0
	for b := range w.B {
		seen := float64(w.Lk)
		if lens != nil {
			seen = float64(lens[b])
		}
		if !w.Causal {
			pairs += float64(w.Lq) * seen
			continue
		}
		for i := range w.Lq {
			// Half a key on the diagonal makes a square half of itself.
			pairs += max(0, min(seen, float64(i+w.Lk-w.Lq)+0.5))
		}
	}
	return pairs
}

// FLOPs returns the useful floating-point operations of one call.
func (w Work) FLOPs() float64 {
	if w.Op == "gemm" {
		return 2 * float64(w.Lq) * float64(w.Lk) * float64(w.E)
	}
	attention, maps := 2*float64(w.H)*w.Pairs()*float64(w.E+w.V), w.maps()
	if w.base() == "additive" {
		// The scores are no products, so nothing is computed again.
		attention = float64(w.H)*w.Pairs()*2*float64(w.V) + 4*w.Triples()
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

// maps returns the operations of the linear maps, forward.
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

// Triples returns how often an additive score evaluates tanh in a forward pass,
// 0 for other operations.
func (w Work) Triples() float64 {
	if w.base() != "additive" {
		return 0
	}
	return float64(w.H) * w.Pairs() * float64(w.Width)
}

// CacheBytes returns the bytes of keys and values that a step of a decoder
// reads, 0 for other operations.
func (w Work) CacheBytes() float64 {
	if w.Op != "decode" {
		return 0
	}
	s := w.storage()
	return float64(w.B) * float64(w.G) * float64(w.Lk) * float64(s.Bytes(w.E)+s.Bytes(w.V))
}

// lengths returns a number of keys for each sequence, from all down to half of
// them.
func (w Work) lengths() []int {
	lens := make([]int, w.B)
	for b := range lens {
		lens[b] = w.Lk - b*w.Lk/(2*w.B)
	}
	return lens
}
