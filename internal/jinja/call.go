package jinja

import "math"

// arguments are those of a call.
type arguments struct {
	positional []expression
	names      []string
	named      []expression
}

func (a arguments) eval(r *run, s *scope) args {
	v := args{named: map[string]any{}, used: map[string]bool{}}
	for _, x := range a.positional {
		v.list = append(v.list, r.value(x, s))
	}
	for i, x := range a.named {
		v.named[a.names[i]] = r.value(x, s)
		v.order = append(v.order, a.names[i])
	}
	return v
}

type call struct {
	of   expression
	args arguments
}

func (c call) eval(r *run, s *scope) any {
	f := r.value(c.of, s)
	switch f := f.(type) {
	case function:
		return f(r, c.args.eval(r, s))
	case undefined:
		fail("%s is not known, or not defined", f.name)
	}
	fail("%s is called", typeName(f))
	return nil
}

type filter struct {
	value expression
	name  string
	args  arguments
}

func (f filter) eval(r *run, s *scope) any {
	return applyFilter(r, f.name, r.value(f.value, s), f.args.eval(r, s))
}

type test struct {
	value   expression
	name    string
	args    arguments
	negated bool
}

func (t test) eval(r *run, s *scope) any {
	return applyTest(r, t.name, r.value(t.value, s), t.args.eval(r, s)) != t.negated
}

// args are the values of arguments.
type args struct {
	list  []any
	named map[string]any
	order []string // of named
	used  map[string]bool
}

// take returns the argument at a place or with a name.
func (a args) take(i int, name string) (any, bool) {
	if i >= 0 && i < len(a.list) {
		return a.list[i], true
	}
	v, ok := a.named[name]
	a.used[name] = true
	return v, ok
}

// done fails if there are arguments that nobody has taken.
func (a args) done(name string, most int) {
	if len(a.list) > most {
		fail("%s has %d arguments, want at most %d", name, len(a.list), most)
	}
	for _, given := range a.order {
		if !a.used[given] {
			fail("%s has an argument %s, which is not known", name, given)
		}
	}
}

// text returns an argument that is a string, or the usual one.
func (a args) text(i int, name, usual string) string {
	v, ok := a.take(i, name)
	if !ok {
		return usual
	}
	s, ok := v.(string)
	if !ok {
		fail("argument %s is %s, want a string", name, typeName(v))
	}
	return s
}

// needed returns an argument that is a string and may not be missing.
func (a args) needed(i int, name string) string {
	if _, ok := a.take(i, name); !ok {
		fail("argument %s is missing", name)
	}
	return a.text(i, name, "")
}

// int returns an argument that is an integer, or the usual one.
func (a args) int(i int, name string, usual int) int {
	v, ok := a.take(i, name)
	if !ok || v == nil {
		return usual
	}
	n, ok := v.(int64)
	if !ok || n > math.MaxInt32 || n < math.MinInt32 {
		fail("argument %s is %s, want an integer of 32 bits", name, typeName(v))
	}
	return int(n)
}

// flag returns an argument that is a truth value, or false.
func (a args) flag(i int, name string) bool {
	v, _ := a.take(i, name)
	return v != nil && truth(v)
}
