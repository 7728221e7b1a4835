package main

import "cmp"

// arguments is the struct that the parameter t of a kernel points to.
type arguments struct {
	p      program
	t      ptr
	offset func(field string) int // in bytes
}

func newArguments(p program, offset func(field string) int) arguments {
	return arguments{p, p.pointer("t"), offset}
}

// field loads a pointer or an integer.
func (a arguments) field(name string) ptr { return a.p.field(a.t, a.offset(name)) }

// spread loads a float into all lanes.
func (a arguments) spread(name string) vec { return a.p.load(a.t, a.offset(name)/4) }

// A condition is one of three: that the named field of args is n, or is not; that x is not 0; that a
// lane of v is neither 0 nor -0.
type condition struct {
	args  arguments
	field string
	n     int
	not   bool

	x ptr
	v vec // is overwritten
}

func notZero(x ptr) condition { return condition{x: x} }

func (a arguments) is(field string, n int) condition {
	return condition{args: a, field: field, n: n}
}

func (a arguments) isNot(field string, n int) condition {
	c := a.is(field, n)
	c.not = true
	return c
}

// label returns the start of the names of labels.
func (c condition) label() string { return cmp.Or(c.field, "if") }

// eachHeight calls body for every number of rows from most down to 1, to write its code, which ends
// the kernel.
func (a arguments) eachHeight(most int, body func(rows int)) {
	// Registers cannot be indexed at run time, so each number of rows has its own code.
	for n := most; n > 1; n-- {
		a.p.ifElse(a.is("rows", n), func() { body(n) }, nil)
	}
	a.p.scope(func() { body(1) })
}

// storeTile stores the tile at the fields c and cRow, whose last vectors have as many lanes as the
// field last.
func (a arguments) storeTile(tile [][]vec) {
	last := a.p.first(a.field("last"))
	eachOf(a.p, a.field("c"), a.field("cRow"), len(tile), func(r int, x ptr) {
		end := len(tile[r]) - 1
		writeAll(a.p, tile[r][:end], x, nil)
		a.p.write(tile[r][end], x, end, last)
	})
}

// eachOf calls do for n rows, one after the other, at the given distance in bytes. It moves first.
func eachOf(p program, first, distance ptr, n int, do func(r int, x ptr)) {
	for r := range n {
		do(r, first)
		p.advance(first, distance)
	}
}

// pointers returns pointers to n rows, the first of which is first.
func pointers(p program, first, distance ptr, n int) []ptr {
	all := []ptr{first}
	for len(all) < n {
		next := p.place(all[len(all)-1])
		p.advance(next, distance)
		all = append(all, next)
	}
	return all
}

func setsOfPointers(p program, distance ptr, n int, first []ptr) [][]ptr {
	var sets [][]ptr
	for _, x := range first {
		sets = append(sets, pointers(p, x, distance, n))
	}
	return sets
}

// readRows reads one vector of each of n rows.
func readRows(p program, first, distance ptr, n int) []vec {
	all := make([]vec, n)
	eachOf(p, first, distance, n, func(r int, x ptr) { all[r] = p.read(x, 0, nil) })
	return all
}

// operandRows is readRows for vectors that can only be the last operand.
func operandRows(p program, first, distance ptr, n int) []vec {
	var all []vec
	for _, x := range p.rows(first, distance, n) {
		all = append(all, p.operand(x, 0))
	}
	return all
}

// writeRows writes one vector of each row.
func writeRows(p program, all []vec, first, distance ptr) {
	eachOf(p, first, distance, len(all), func(r int, x ptr) { p.write(all[r], x, 0, nil) })
}

// zeros returns rows of vectors, all 0.
func zeros(p program, rows, vectors int) [][]vec {
	all := make([][]vec, rows)
	for r := range all {
		for range vectors {
			all[r] = append(all[r], p.zero())
		}
	}
	return all
}
