package jinja

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// attribute is of.name.
type attribute struct {
	of   expression
	name string
}

func (a attribute) eval(r *run, s *scope) any { return getAttribute(r.value(a.of, s), a.name) }

// item is of[at].
type item struct{ of, at expression }

func (i item) eval(r *run, s *scope) any {
	of := r.value(i.of, s)
	if cut, ok := i.at.(slice); ok {
		return cut.of(r, s, of)
	}
	return getItem(r, of, r.value(i.at, s))
}

// getAttribute is value.name, and getItem value[key]: of a dict both find its elements, the
// first behind its methods.
func getAttribute(v any, name string) any {
	switch x := v.(type) {
	case undefined:
		fail("%s is undefined, and .%s is asked of it", x.name, name)
	case namespace:
		return x.get(name)
	case loopState:
		return x.get(name)
	case *dict:
		if m := dictMethod(x, name); m != nil {
			return m
		}
		return x.get(name)
	case string:
		if m := stringMethod(x, name); m != nil {
			return m
		}
	}
	if name == "__class__" || strings.HasPrefix(name, "_") || slices.Contains(mutators, name) {
		fail("%s of %s is not known", name, typeName(v))
	}
	return undefined{name}
}

// mutators are methods of lists that a template may not call in transformers either.
var mutators = []string{"append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort", "copy", "index", "count"}

func getItem(r *run, v, key any) any {
	switch x := v.(type) {
	case undefined:
		fail("%s is undefined, and an element is asked of it", x.name)
	case namespace, loopState:
		if s, ok := key.(string); ok {
			return getAttribute(x, s)
		}
	case *dict:
		if i, there := x.find(r, key); there {
			return x.values[i]
		}
		s, ok := key.(string)
		if !ok {
			return undefined{"an element"}
		}
		if m := dictMethod(x, s); m != nil {
			return m
		}
		return undefined{s}
	case string, *list:
		i, ok := numeric(key).(int64)
		if !ok {
			if s, isText := key.(string); isText {
				return getAttribute(v, s)
			}
			return undefined{"an element"}
		}
		if s, isText := x.(string); isText {
			return character(r, s, i)
		}
		l := x.(*list)
		if l.kind > rangeKind {
			return undefined{"an element of " + typeName(v)}
		}
		n := int64(len(l.items))
		if i < -n || i >= n {
			return noElement(i)
		}
		return l.items[(i+n)%n]
	}
	return undefined{"an element of " + typeName(v)}
}

func noElement(i int64) undefined { return undefined{fmt.Sprintf("element %d", i)} }

// character returns that at a place of a text, counted from its end if i is negative.
func character(r *run, s string, i int64) any {
	next, step, left := utf8.DecodeRuneInString, int64(-1), i
	if i < 0 {
		next, step, left = utf8.DecodeLastRuneInString, 1, i+1
	}
	all := len(s)
	for s != "" {
		c, n := next(s)
		if left == 0 {
			r.charge(all-len(s), 1)
			return string(c)
		}
		left += step
		if i < 0 {
			s = s[:len(s)-n]
		} else {
			s = s[n:]
		}
	}
	r.charge(all, 1)
	return noElement(i)
}
