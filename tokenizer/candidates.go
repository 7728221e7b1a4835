package tokenizer

// candidate is a pair that may be joined: the symbol at pos and the one behind it.
type candidate struct {
	rank, pos, id int32
}

func (c candidate) before(d candidate) bool {
	return c.rank < d.rank || c.rank == d.rank && c.pos < d.pos
}

// candidates is a heap, with the pair to be joined first at its top.
type candidates []candidate

// push adds a candidate.
func (q *candidates) push(c candidate) {
	h := append(*q, c)
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !c.before(h[up]) {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = c
	*q = h
}

// pop takes out the first candidate.
func (q *candidates) pop() candidate {
	h := *q
	top, n := h[0], len(h)-1
	c := h[n]
	i := 0
	for {
		down := 2*i + 1
		if down >= n {
			break
		}
		if down+1 < n && h[down+1].before(h[down]) {
			down++
		}
		if !h[down].before(c) {
			break
		}
		h[i] = h[down]
		i = down
	}
	h[i] = c
	*q = h[:n]
	return top
}
