package jinja

import "strings"

// scope is where names have values. Statements set them in the innermost one.
type scope struct {
	names map[string]any
	outer *scope
}

func (s *scope) lookup(name string) (any, bool) {
	for ; s != nil; s = s.outer {
		if v, ok := s.names[name]; ok {
			return v, true
		}
	}
	return nil, false
}

// statement is a part of a template that is run, and expression one that has a value.
type (
	statement  interface{ exec(r *run, s *scope) jump }
	expression interface{ eval(r *run, s *scope) any }
)

// jump is "break" or "continue" on its way to its loop.
type jump string

func (j jump) exec(*run, *scope) jump { return j }

// all runs statements until there is a jump.
func (r *run) all(list []statement, s *scope) jump {
	r.down()
	defer r.up()
	for _, x := range list {
		r.step()
		if j := x.exec(r, s); j != "" {
			return j
		}
	}
	return ""
}

// sequence is a block without a meaning of its own.
type sequence []statement

func (q sequence) exec(r *run, s *scope) jump { return r.all(q, r.inner(s)) }

type output struct{ value expression }

func (o output) exec(r *run, s *scope) jump {
	text := r.str(r.value(o.value, s))
	r.charge(len(text), 1)
	r.out.WriteString(text)
	return ""
}

// branch is an if, and each elif one more condition.
type branch struct {
	conditions []expression
	then       [][]statement
	otherwise  []statement
}

func (b branch) exec(r *run, s *scope) jump {
	for i, c := range b.conditions {
		if truth(r.value(c, s)) {
			return r.all(b.then[i], s)
		}
	}
	return r.all(b.otherwise, s)
}

type assign struct {
	names     []string
	attribute string
	value     expression // or
	body      []statement
}

func (a assign) exec(r *run, s *scope) jump {
	var v any
	if a.value != nil {
		v = r.value(a.value, s)
	} else {
		v = r.captured(a.body, r.inner(s))
	}
	if a.attribute == "" {
		bind(s, a.names, v)
		return ""
	}
	ns, _ := s.lookup(a.names[0])
	if n, ok := ns.(namespace); ok {
		n.set(r, a.attribute, v)
		return ""
	}
	fail("%s.%s is set, but %[1]s is %[3]s, want a namespace", a.names[0], a.attribute, typeName(ns))
	return ""
}

// bind gives names to a value, or to its parts if there are several.
func bind(s *scope, names []string, v any) {
	if len(names) == 1 {
		s.names[names[0]] = v
		return
	}
	l, ok := v.(*list)
	if !ok || len(l.items) != len(names) {
		fail("%s is taken apart, want %d values", typeName(v), len(names))
	}
	for i, name := range names {
		s.names[name] = l.items[i]
	}
}

// captured returns what statements write.
func (r *run) captured(body []statement, s *scope) string {
	outer := r.out
	r.out = strings.Builder{}
	r.all(body, s)
	text := r.out.String()
	r.out = outer
	return text
}

type macro struct {
	name     string
	params   []string
	defaults []expression
	body     []statement
}

func (m *macro) exec(r *run, s *scope) jump {
	s.names[m.name] = function(func(r *run, a args) any {
		inner := r.inner(s)
		for i, name := range m.params {
			v, given := a.take(i, name)
			switch {
			case given:
			case m.defaults[i] != nil:
				v = r.value(m.defaults[i], inner)
			default:
				v = undefined{name}
			}
			inner.names[name] = v
		}
		a.done(m.name, len(m.params))
		return r.captured(m.body, inner)
	})
	return ""
}
