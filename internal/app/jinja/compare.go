package jinja

import (
	"cmp"
	"slices"
	"strings"
)

// equal evaluates a == b, as Python does.
func (r *run) equal(a, b any) bool {
	r.step()
	r.down()
	defer r.up()
	// In Python, True is the number 1: True == 1, and 1 in [True].
	m, isM := toInt(a)
	n, isN := toInt(b)
	if isM && isN {
		return m.n == n.n
	}
	switch a := a.(type) {
	case nil:
		return b == nil
	case text:
		t, ok := b.(text)
		r.read(len(t.s))
		return ok && a.s == t.s
	case undefined:
		_, ok := b.(undefined)
		return ok
	case *list:
		l, ok := b.(*list)
		if !ok || a.kind != l.kind {
			return false
		}
		// Python compares iterators by identity, and ranges and views by separate rules.
		if a.kind > tupleKind && a != l {
			fail("comparing %s with another one is not supported", typeName(a))
		}
		return a == l || slices.EqualFunc(a.items, l.items, r.equal)
	case *dict:
		d, ok := b.(*dict)
		if !ok || len(a.keys) != len(d.keys) {
			return false
		}
		for i, k := range a.keys {
			if j, ok := d.find(r, k); !ok || !r.equal(a.values[i], d.values[j]) {
				return false
			}
		}
		return true
	case namespace, loopState, function:
		fail("comparing %s is not supported", typeName(a))
	}
	return false
}

// order compares two integers or two texts.
// Python orders texts by code points, which is the order of their bytes in UTF-8.
func (r *run) order(a, b any) int {
	r.step()
	m, isM := toInt(a)
	n, isN := toInt(b)
	if isM && isN {
		return cmp.Compare(m.n, n.n)
	}
	s, isText := a.(text)
	t, ok := b.(text)
	if !isText || !ok {
		fail("%s and %s cannot be compared", typeName(a), typeName(b))
	}
	r.read(min(len(s.s), len(t.s)))
	return cmp.Compare(s.s, t.s)
}

// contains reports whether a value is in another one.
func contains(r *run, in, v any) bool {
	switch in := in.(type) {
	case text:
		t, ok := v.(text)
		if !ok {
			fail("%s in a string, want a string", typeName(v))
		}
		r.read(len(in.s) + len(t.s))
		return strings.Contains(in.s, t.s)
	case *dict:
		_, there := in.find(r, v)
		return there
	}
	return slices.ContainsFunc(iterate(r, in), func(x any) bool { return r.equal(x, v) })
}
