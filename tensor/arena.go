package tensor

import (
	"math/bits"

	"github.com/attn-go/attn/internal/hugepages"
)

// arena allocates slices that are all freed at once. After a few rounds of similar size it allocates no new memory.
//
// Small slices are cut from slabs, one after another. Large slices, such as the logits of a batch, are allocated
// separately and reused for any request that fits. Cut from slabs, they would leave gaps nearly as large as
// themselves. Memory that is in the caches again is a part of the row "training reverse, width 32, 1,000 tokens"
// of bench/RESULTS.md.
type arena[T any] struct {
	slabs [][]T
	slab  int // index of the slab in use
	used  int // number of its elements in use

	// held is the slice that the last release kept in its place. take skips it.
	held   place[T]
	holds  int         // number of slices held since reset
	recent [8]place[T] // of the last slices taken from slabs
	takes  int

	large []lent[T]
	lends int // of large slices since reset
}

// lent is a large slice and whether it is in use.
type lent[T any] struct {
	slice  []T
	taken  bool
	number int // the value of lends when it was lent
}

// place is where a slice is within a slab.
type place[T any] struct {
	first    *T
	slab     int
	from, to int
}

// mark is a position in an arena.
type mark struct{ slab, used, lends, holds int }

func (a *arena[T]) mark() mark { return mark{a.slab, a.used, a.lends, a.holds} }

// release frees all slices taken since the mark, except keep, which it may move.
func (a *arena[T]) release(m mark, keep []T) []T {
	moves := true
	for i := range a.large {
		l := &a.large[i]
		if !l.taken || l.number < m.lends {
			continue
		}
		if len(keep) > 0 && &keep[0] == &l.slice[0] {
			moves = false
			continue
		}
		l.taken = false
	}
	a.slab, a.used = m.slab, m.used
	if a.holds > m.holds {
		a.held = place[T]{} // was taken since the mark
	}
	if !moves {
		return keep
	}
	if p := a.placeOf(keep); p.first != nil && a.held.first == nil {
		a.held = p
		a.holds++
		return keep
	}
	to := a.take((len(keep) + 15) &^ 15)[:len(keep):len(keep)] // whole cache lines
	copy(to, keep)
	return to
}

// placeOf returns the place of a slice that was taken a short time ago, or none.
func (a *arena[T]) placeOf(s []T) place[T] {
	if len(s) > 0 {
		for _, p := range a.recent {
			if p.first == &s[0] && p.to-p.from >= len(s) {
				p.to = p.from + (len(s)+15)&^15 // whole cache lines, as in Floats
				return p
			}
		}
	}
	return place[T]{}
}

// Slabs double in size from the first to the largest, so that small tapes stay small. A request for more than a
// quarter of the largest slab gets a separate slice.
const (
	firstSlab   = 1 << 10
	largestSlab = 1 << 20
)

// take returns n elements with arbitrary contents.
func (a *arena[T]) take(n int) []T {
	if n > largestSlab/4 {
		return a.takeLarge(n)
	}
	for ; a.slab < len(a.slabs); a.slab, a.used = a.slab+1, 0 {
		if h := &a.held; h.first != nil && h.slab == a.slab && a.used < h.to && a.used+n > h.from {
			a.used = h.to
		}
		if b := a.slabs[a.slab]; a.used+n <= len(b) {
			return a.cut(n)
		}
	}
	length := firstSlab
	if len(a.slabs) > 0 {
		length = min(2*len(a.slabs[len(a.slabs)-1]), largestSlab)
	}
	a.slabs = append(a.slabs, hugepages.Make[T](max(n, length)))
	a.used = 0
	return a.cut(n)
}

// cut returns the next n elements of the slab in use.
func (a *arena[T]) cut(n int) []T {
	s := a.slabs[a.slab][a.used : a.used+n : a.used+n]
	if n > 0 {
		a.recent[a.takes%len(a.recent)] = place[T]{&s[0], a.slab, a.used, a.used + n}
		a.takes++
	}
	a.used += n
	return s
}

// takeLarge returns the smallest free slice that fits. If none fits, it replaces the largest free slice with a new
// one.
func (a *arena[T]) takeLarge(n int) []T {
	fits, short := -1, -1
	for i, l := range a.large {
		switch {
		case l.taken:
		case len(l.slice) >= n:
			if fits < 0 || len(l.slice) < len(a.large[fits].slice) {
				fits = i
			}
		case short < 0 || len(l.slice) > len(a.large[short].slice):
			short = i
		}
	}
	if fits < 0 {
		// Rounded up by at most an eighth, so that a slightly larger request in the next round fits.
		step := 1 << (bits.Len(uint(n)) - 4)
		slice := hugepages.Make[T]((n + step - 1) &^ (step - 1))
		if fits = short; fits >= 0 {
			a.large[fits].slice = slice
		} else {
			fits = len(a.large)
			a.large = append(a.large, lent[T]{slice: slice})
		}
	}
	a.large[fits].taken, a.large[fits].number = true, a.lends
	a.lends++
	return a.large[fits].slice[:n:n]
}

// reset frees all slices.
func (a *arena[T]) reset() {
	a.slab, a.used, a.lends = 0, 0, 0
	a.held, a.holds = place[T]{}, 0
	for i := range a.large {
		a.large[i].taken = false
	}
}
