package main

import "slices"

// A loop goes along slices. Their pointers stay where they are; at returns the places that the loop
// has reached.
type loop struct {
	p program
	n ptr // elements left
	places
}

// places are the places of slices in a loop: pointers that advance, or an index.
type places interface {
	add(x ptr, bytes int) // a slice of elements of this size
	at(x ptr) ptr
	next(vectors int)
}

// ofFloats adds slices of floats to places.
func ofFloats(all places, slices []ptr) places {
	for _, x := range slices {
		all.add(x, 4)
	}
	return all
}

// with returns the loop with one more slice, whose elements have the given size in bytes.
func (l loop) with(x ptr, bytes int) loop {
	l.add(x, bytes)
	return l
}

// A step is one vector of each slice of a loop, or the first lanes of one.
type step struct {
	loop
	i int // of the vectors after at
	e extent
}

// load reads the vector of x; lanes after the end are 0.
func (s step) load(x ptr) vec { return s.p.read(s.at(x), s.i, s.e) }

// or reads the vector of x, with the lanes of other after the end. The result can only be the last
// operand of one operation.
func (s step) or(x ptr, other vec) vec {
	if s.e == nil {
		return s.p.once(s.at(x), s.i)
	}
	return s.p.choose(s.p.lanesOf(s.e), s.load(x), s.p.spare(other))
}

func (s step) store(v vec, x ptr) { s.p.write(v, s.at(x), s.i, s.e) }

// keep sets lanes after the end to 0.
func (s step) keep(v vec) {
	if s.e != nil {
		s.p.scope(func() { s.p.keep(s.p.lanesOf(s.e), v) })
	}
}

// each calls body to write the code for one vector of a step of unroll vectors, then for single
// vectors, and then for the remainder.
func (l loop) each(unroll int, body func(s step)) {
	l.blocks(unroll, func(vectors int, e extent) { l.vectors(vectors, e, body) })
}

// vectors calls body for each of the next vectors.
func (l loop) vectors(n int, e extent, body func(s step)) {
	for i := range n {
		l.p.scope(func() { body(step{l, i, e}) })
	}
}

// blocks is each for code that processes the vectors of a step together.
func (l loop) blocks(most int, body func(vectors int, e extent)) {
	if most > 1 {
		l.steps(most, body)
	}
	l.steps(1, body)
	l.p.ifElse(notZero(l.n), func() { body(1, l.p.few(l.n)) }, nil)
}

// steps writes the loop over steps of the given number of vectors, without the remainder.
func (l loop) steps(vectors int, body func(vectors int, e extent)) {
	l.p.whole(l.n, vectors*l.p.impl().lanes, func() {
		l.p.scope(func() { body(vectors, nil) })
		l.next(vectors)
	})
}

// full is steps for code that processes one vector after the other.
func (l loop) full(unroll int, body func(s step)) {
	l.steps(unroll, func(vectors int, e extent) { l.vectors(vectors, e, body) })
}

// inLanes is each for count vectors, and vector i of the slices is number i % count of body, also the
// last and incomplete one.
func (l loop) inLanes(count int, body func(i int, s step)) {
	l.full(count, func(s step) { body(s.i, s) })
	l.p.tail(l.n, count, func(i int, e extent) { body(i, step{l, i, e}) })
}

// moving are places that are pointers.
type moving struct {
	p   program
	all []moved
}

// A moved is the place of the slice at x, and the size of its elements in bytes.
type moved struct {
	x, at ptr
	bytes int
}

func (m *moving) add(x ptr, bytes int) { m.all = append(m.all, moved{x, m.p.place(x), bytes}) }

func (m *moving) at(x ptr) ptr {
	return m.all[slices.IndexFunc(m.all, func(s moved) bool { return s.x == x })].at
}

func (m *moving) next(vectors int) {
	for _, s := range m.all {
		m.p.move(vectors*m.p.impl().lanes*s.bytes, s.at)
	}
}
