package jinja

import (
	"slices"
	"strings"
)

// arguments has the argument expressions of a call, and given has their values.
type (
	arguments struct {
		list  []expression
		names []string
		named []expression // by names
	}
	given struct {
		list  []any
		names []string
		named []any
	}
)

func (a arguments) eval(r *run, s *scope) given {
	g := given{names: a.names}
	for _, x := range a.list {
		g.list = append(g.list, r.value(x, s))
	}
	for _, x := range a.named {
		g.named = append(g.named, r.value(x, s))
	}
	return g
}

// builtin is a filter, a test or a method.
type builtin struct {
	params string // names, or * if call processes the arguments itself
	call   func(r *run, v any, a args) any
}

// ofText and ofValue return a builtin without parameters. ofText passes the text of the value.
func ofText(f func(r *run, t text) text) builtin {
	return builtin{"", func(r *run, v any, _ args) any { return f(r, r.str(v)) }}
}

func ofValue[T any](f func(r *run, v any) T) builtin {
	return builtin{"", func(r *run, v any, _ args) any { return f(r, v) }}
}

// apply calls a filter, a test or a method of a value.
func (b builtin) apply(r *run, what string, v any, g given) any {
	if b.params == "*" {
		return b.call(r, v, args{given: g, what: what})
	}
	return b.call(r, v, bind(what, strings.Fields(b.params), g))
}

// args has the values of parameters.
type args struct {
	given
	what   string // the function, for errors
	params []string
	values []any
	set    []bool
}

// bind assigns arguments to the parameters of a function.
// As in Python, those without a name come first, and no parameter is set twice.
func bind(what string, params []string, g given) args {
	if len(g.list) > len(params) {
		fail("%s has %d arguments, want at most %d", what, len(g.list), len(params))
	}
	a := args{g, what, params, make([]any, len(params)), make([]bool, len(params))}
	for i, v := range g.list {
		a.values[i], a.set[i] = v, true
	}
	for i, name := range g.names {
		at := slices.Index(params, name)
		if at < 0 {
			fail("%s has the unknown argument %s", what, name)
		}
		if a.set[at] {
			fail("%s has the argument %s twice", what, name)
		}
		a.values[at], a.set[at] = g.named[i], true
	}
	return a
}

// needed returns a required argument.
func (a args) needed(i int) any {
	if !a.set[i] {
		fail("%s needs the argument %s", a.what, a.params[i])
	}
	return a.values[i]
}

// text returns a required argument that must be a string.
func (a args) text(i int) text {
	t, ok := a.needed(i).(text)
	if !ok {
		fail("argument %s of %s is %s, want a string", a.params[i], a.what, typeName(a.values[i]))
	}
	return t
}

// int returns an argument that must be an integer, or the default.
// None counts as absent: Python's methods take it so.
func (a args) int(i int, usual int) int {
	if a.values[i] == nil {
		return usual
	}
	n, ok := a.values[i].(number)
	if !ok {
		fail("argument %s of %s is %s, want an integer", a.params[i], a.what, typeName(a.values[i]))
	}
	return int(n.n)
}

// flag returns the truth value of an argument, by default false.
func (a args) flag(i int) bool { return truth(a.values[i]) }
