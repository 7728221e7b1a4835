package jinja

import (
	"fmt"
	"slices"
)

// getAttribute evaluates value.name, and getItem evaluates value[key]. Both look up elements of a dict;
// getAttribute prefers the dict's methods.
func getAttribute(v any, name string) any {
	switch x := v.(type) {
	case undefined:
		fail("%s is undefined and has no attribute %s", x.name, name)
	case namespace:
		return x.get(name)
	case loopState:
		return x.get(name)
	}
	if m := method(v, name); m != nil {
		return m
	}
	if d, ok := v.(*dict); ok {
		return d.get(name)
	}
	return undefined{name}
}

func getItem(r *run, v, key any) any {
	switch x := v.(type) {
	case undefined:
		fail("%s is undefined and has no elements", x.name)
	case *dict:
		if i, there := x.find(r, key); there {
			return x.values[i]
		}
		s, ok := key.(string)
		if !ok {
			return undefined{"an element"}
		}
		if m := method(v, s); m != nil {
			return m
		}
		return undefined{s}
	}
	if name, ok := key.(string); ok {
		return getAttribute(v, name)
	}
	switch x := v.(type) {
	case string, *list:
		i, ok := key.(int64)
		if !ok {
			fail("%s as an index of %s is not supported", typeName(key), typeName(v))
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

// character returns the character at index i of a text; a negative i counts from the end.
func character(r *run, s string, i int64) any {
	r.charge(len(s), 4)
	all := []rune(s)
	n := int64(len(all))
	if i < -n || i >= n {
		return noElement(i)
	}
	return string(all[(i+n)%n])
}

// slice evaluates v[from:to] and v[::-1] for a sequence.
func slice(r *run, v any, parts [3]any) any {
	l, isList := v.(*list)
	switch u, isUndefined := v.(undefined); {
	case isUndefined:
		fail("%s is undefined", u.name)
	case !is[string](v) && !(isList && l.kind <= tupleKind):
		fail("%s cannot be sliced", typeName(v))
	}
	all := copied(r, v)
	if parts[2] != nil {
		if parts != [3]any{nil, nil, int64(-1)} {
			fail("a slice with a step is not supported, except [::-1]")
		}
		slices.Reverse(all)
	} else {
		// bound returns an end of the slice, limited to the sequence.
		bound := func(at any, usual int) int {
			if at == nil {
				return usual
			}
			k, ok := at.(int64)
			if !ok {
				fail("a slice has %s as an index, want integers", typeName(at))
			}
			n := int64(len(all))
			if k < 0 {
				k += n
			}
			return int(max(0, min(n, k)))
		}
		from, to := bound(parts[0], 0), bound(parts[1], len(all))
		all = all[from:max(from, to)]
	}
	if isList {
		return &list{items: all, kind: l.kind}
	}
	return join(r, "", all)
}
