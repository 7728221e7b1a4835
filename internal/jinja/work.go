package jinja

import (
	"errors"
	"strings"
	"time"
)

// run is a template at work.
type run struct {
	out   strings.Builder
	now   time.Time
	left  work
	depth int
}

// work is how much a template may do.
type work struct {
	steps int   // statements, expressions, and elements of lists that are gone through
	bytes int64 // of all that it makes on the way, and a sixteenth of what it reads
}

// usualWork is more than any chat needs.
var usualWork = work{2_000_000, 1 << 27}

const (
	mostDepth = 10_000 // of statements and expressions within each other, macros included
	deepest   = 200    // of what is nested in the source, and of values that are written as text
)

var errWork = errors.New("the template does more work than a chat can need")

// failure is an error on its way up to Parse or Render.
type failure struct{ error }

func (r *run) step() {
	if r.left.steps--; r.left.steps < 0 {
		panic(failure{errWork})
	}
}

// charge counts memory before it is taken: n elements of so many bytes each.
func (r *run) charge(n, each int) {
	if r.left.bytes -= int64(n) * int64(each); r.left.bytes < 0 {
		panic(failure{errWork})
	}
}

// read counts a text that is gone through, which takes time but no memory.
func (r *run) read(bytes int) { r.charge(bytes/16, 1) }

// down enters a level of recursion, which ends with up. Go cannot recover from a stack that
// is full. A failure ends the whole run, so nobody has to come up from there.
func (r *run) down() {
	if r.depth++; r.depth > mostDepth {
		panic(failure{errWork})
	}
}

func (r *run) up() { r.depth-- }

// value returns the value of an expression.
func (r *run) value(x expression, s *scope) any {
	r.step()
	r.down()
	v := x(r, s)
	r.up()
	return v
}

// inner returns a scope within another one.
func (r *run) inner(s *scope) *scope {
	r.charge(1, 256)
	return &scope{names: map[string]any{}, outer: s}
}
