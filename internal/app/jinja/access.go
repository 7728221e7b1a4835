package jinja

import (
	"fmt"
	"slices"
)

// getAttribute evaluates value.name, and getItem evaluates value[key]. Both look up elements of a dict;
// getAttribute prefers the dict's methods.
// So message.items is the method, also if the message has an element with this name, and message["items"] is the
// element.
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
		name, ok := key.(text)
		if !ok {
			return undefined{"an element"}
		}
		if m := method(v, name.s); m != nil {
			return m
		}
		return undefined{name.s}
	}
	if name, ok := key.(text); ok {
		return getAttribute(v, name.s)
	}
	switch x := v.(type) {
	case text, *list:
		at, ok := key.(number)
		if !ok {
			fail("%s as an index of %s is not supported", typeName(key), typeName(v))
		}
		i := at.n
		if t, isText := x.(text); isText {
			return character(r, t, i)
		}
		l := x.(*list)
		// Python has no index for views and iterators, and Jinja makes that undefined.
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
func character(r *run, t text, i int64) any {
	n := length(r, t).n
	if i < -n || i >= n {
		return noElement(i)
	}
	at := int((i + n) % n)
	return cutText(r, t, at, at+1)
}

// slice evaluates v[from:to] and v[::-1] for a sequence.
func slice(r *run, v any, parts [3]any) any {
	t, isText := v.(text)
	l, isList := v.(*list)
	switch u, isUndefined := v.(undefined); {
	case isUndefined:
		fail("%s is undefined", u.name)
	case !isText && !(isList && l.kind <= tupleKind):
		fail("%s cannot be sliced", typeName(v))
	}
	n := length(r, v).n
	// bound returns an end of the slice, limited to the sequence.
	bound := func(at any, usual int64) int {
		if at == nil {
			return int(usual)
		}
		k, ok := at.(number)
		if !ok {
			fail("a slice has %s as an index, want integers", typeName(at))
		}
		if k.n < 0 {
			k.n += n
		}
		return int(max(0, min(n, k.n)))
	}
	from, to := bound(parts[0], 0), bound(parts[1], n)
	to = max(from, to)
	switch step, ok := parts[2].(number); {
	case parts[2] == nil && isText:
		return cutText(r, t, from, to)
	case parts[2] == nil:
		return &list{items: copied(r, v)[from:to], kind: l.kind}
	// Separate rules say where a slice with a step begins and ends if an index is missing or negative. The only one
	// that chat templates use reverses a list.
	case !ok || step.n != -1 || parts[0] != nil || parts[1] != nil:
		fail("a slice with a step is not supported, except [::-1]")
	}
	if isText {
		return reversed(r, t)
	}
	all := copied(r, v)
	slices.Reverse(all)
	return &list{items: all, kind: l.kind}
}
