package jinja

import (
	"errors"
	"time"
)

// run is the state of a running template.
type run struct {
	out   *writer
	now   time.Time
	left  work
	depth int
}

// work is a limit on the work of a template.
type work struct {
	steps int   // statements, expressions, and processed elements of lists
	bytes int64 // of all values that it creates, and a sixteenth of the bytes that it reads
}

// usualWork is the default limit, more than any chat needs.
var usualWork = work{2_000_000, 1 << 27}

// A template that nests values in a loop, or a macro that calls itself, must end in an error and not in the end of the
// process.
const (
	mostDepth = 10_000 // nesting of statements and expressions at run time, including macros
	deepest   = 200    // nesting in the source, and of values written as text
)

var errWork = errors.New("the template does more work than a chat can need")

// failure is the panic value that carries an error up to Parse or Render.
type failure struct{ error }

func (r *run) step() {
	if r.left.steps--; r.left.steps < 0 {
		panic(failure{errWork})
	}
}

// charge counts memory before its allocation: n elements of each bytes.
func (r *run) charge(n, each int) {
	if r.left.bytes -= int64(n) * int64(each); r.left.bytes < 0 {
		panic(failure{errWork})
	}
}

// read counts the processing of a text, which takes time but no memory.
func (r *run) read(bytes int) { r.charge(bytes/16, 1) }

// down enters a level of recursion, and up leaves it. The depth is limited because Go cannot recover from a
// stack overflow. A failure ends the whole run, so it need not call up.
func (r *run) down() {
	if r.depth++; r.depth > mostDepth {
		panic(failure{errWork})
	}
}

func (r *run) up() { r.depth-- }

// value evaluates an expression.
func (r *run) value(x expression, s *scope) any {
	r.step()
	r.down()
	v := x(r, s)
	r.up()
	return v
}

// inner returns a new scope within s.
func (r *run) inner(s *scope) *scope {
	r.charge(1, 256)
	return &scope{names: map[string]any{}, outer: s}
}
