package jinja

// scope maps names to values. Statements set names in the innermost scope.
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

// statement runs a part of a template. expression computes a value.
type (
	statement  func(r *run, s *scope) jump
	expression func(r *run, s *scope) any
)

// jump is a pending "break" or "continue".
type jump string

// all runs statements up to the first jump.
func (r *run) all(list []statement, s *scope) jump {
	r.down()
	defer r.up()
	for _, x := range list {
		r.step()
		if j := x(r, s); j != "" {
			return j
		}
	}
	return ""
}

func output(value expression) statement {
	return func(r *run, s *scope) jump {
		r.out.write(r.str(r.value(value, s)))
		return ""
	}
}

// bind assigns an element to the name of a loop, or its parts to several names.
func (s *scope) bind(names []string, v any) {
	if len(names) == 1 {
		s.names[names[0]] = v
		return
	}
	l, ok := v.(*list)
	if !ok || len(l.items) != len(names) {
		fail("%s is assigned to %[2]d names, want %[2]d values", typeName(v), len(names))
	}
	for i, name := range names {
		s.names[name] = l.items[i]
	}
}

// captured returns the text that statements write.
// A failure in the body ends the run, so r.out need not be restored then.
func (r *run) captured(body []statement, s *scope) text {
	outer, inner := r.out, &writer{r: r}
	r.out = inner
	r.all(body, s)
	r.out = outer
	return inner.text()
}

type loop struct {
	names        []string
	over, filter expression
	body         []statement
}

// exec runs a loop. Each iteration has its own scope, as in Jinja: what one sets, the next does not see.
func (l loop) exec(r *run, s *scope) jump {
	chosen := iterate(r, r.value(l.over, s))
	if l.filter != nil {
		var kept []any // loop.length etc. count only these
		for _, v := range chosen {
			inner := r.inner(s)
			inner.bind(l.names, v)
			if truth(r.value(l.filter, inner)) {
				kept = append(kept, v)
			}
		}
		chosen = kept
	}
	for i, v := range chosen {
		r.step()
		inner := r.inner(s)
		inner.bind(l.names, v)
		inner.names["loop"] = loopState{chosen, i}
		if r.all(l.body, inner) == "break" {
			break
		}
	}
	return ""
}

// loopState is the variable loop in a template.
type loopState struct {
	items []any
	at    int
}

func (l loopState) get(name string) any {
	i, n := int64(l.at), int64(len(l.items))
	switch name {
	case "index":
		return number{n: i + 1}
	case "index0":
		return number{n: i}
	case "first":
		return i == 0
	case "last":
		return i == n-1
	case "length":
		return number{n: n}
	case "previtem", "nextitem":
		at := i - 1
		if name == "nextitem" {
			at = i + 1
		}
		if at >= 0 && at < n {
			return l.items[at]
		}
		return undefined{name}
	}
	fail("loop.%s is not supported", name)
	return nil
}
