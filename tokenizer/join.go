package tokenizer

import "slices"

// symbol is a part of a word. id is its token, or none after it was merged into the symbol before it.
type symbol struct {
	id         int32
	at, len    int32 // bytes of the word; len 0 for a byte of the prefix or suffix
	prev, next int32
}

// symbols is a word during tokenization. Its memory is reused.
type symbols struct {
	in   *piece // the word
	list []symbol
	heap heapOf[candidate]
	// ahead is nil if the word ends after the list. Otherwise it returns the lowest rank at which the last symbol may be
	// merged with what follows.
	ahead func(last *symbol) (rank int32, ok bool)
}

// add appends a symbol of length bytes.
func (s *symbols) add(id, length int32) {
	n, at := int32(len(s.list)), int32(0)
	if n > 0 {
		at = s.list[n-1].at + s.list[n-1].len
	}
	s.list = append(s.list, symbol{id, at, length, n - 1, n + 1})
}

// merge is the result of merging a pair. Pairs with lower ranks are merged first.
type merge struct{ rank, id int32 }

// joinAll merges the pair with the lowest rank, the leftmost of several, until no pair can be merged. It takes n·log n
// steps for n symbols. find is called when a pair is formed, and again (with again true) before it is merged.
//
// If more symbols follow, joinAll removes the last symbol when it may be merged with them: no merge of what is left
// crosses the end, so what follows does not affect it.
func (s *symbols) joinAll(find func(left, right *symbol, again bool) (merge, bool)) {
	list := s.list
	s.heap = slices.Grow(s.heap[:0], len(list))
	consider := func(pos, next int32) {
		if pos < 0 {
			return
		}
		if int(next) >= len(list) {
			if s.ahead != nil {
				if rank, ok := s.ahead(&list[pos]); ok {
					s.heap.push(candidate{rank, pos, none})
				}
			}
			return
		}
		if to, ok := find(&list[pos], &list[next], false); ok {
			s.heap.push(candidate{to.rank, pos, to.id})
		}
	}
	for i := range list {
		s.in.poll(i)
		consider(int32(i), int32(i)+1)
	}
	for step := 0; len(s.heap) > 0; step++ {
		s.in.poll(step)
		c := s.heap.pop()
		if int(c.pos) >= len(list) || list[c.pos].id == none {
			continue
		}
		left := &list[c.pos]
		if int(left.next) >= len(list) {
			// The symbol may have become longer since the candidate was pushed.
			if c.id == none {
				if rank, ok := s.ahead(left); ok && rank == c.rank {
					before := left.prev
					list = list[:c.pos]
					consider(before, c.pos)
				}
			}
			continue
		}
		right := &list[left.next]
		// The pair may have changed since find was called.
		if to, ok := find(left, right, true); !ok || to.id != c.id {
			continue
		}
		left.id = c.id
		left.len += right.len
		left.next = right.next
		right.id = none
		if int(right.next) < len(list) {
			list[right.next].prev = c.pos
		}
		consider(left.prev, c.pos)
		consider(c.pos, left.next)
	}
	s.list = slices.DeleteFunc(list, func(part symbol) bool { return part.id == none })
}

// candidate is a pair that may be merged: the symbol at pos and the symbol after it.
// Candidates are not removed from the heap when one of their symbols is merged: finding them would take longer than
// to check each when it comes. So joinAll compares it with what is there then.
type candidate struct {
	rank, pos, id int32
}

func (c candidate) before(d candidate) bool {
	return c.rank < d.rank || c.rank == d.rank && c.pos < d.pos
}

// ranked is the constraint for elements of a heap.
type ranked[T any] interface{ before(other T) bool }

// heapOf is a heap whose top is before all other elements.
// Not package heap, which calls its methods through an interface, and makes a value of each element.
type heapOf[T ranked[T]] []T

func (q *heapOf[T]) push(c T) {
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

func (q *heapOf[T]) pop() T {
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
