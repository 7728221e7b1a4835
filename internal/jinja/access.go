package jinja

import (
	"fmt"
	"slices"
	"strings"
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
	case *dict:
		if m := method(v, name); m != nil {
			return m
		}
		return x.get(name)
	case string:
		if m := method(v, name); m != nil {
			return m
		}
	}
	if name == "__class__" || strings.HasPrefix(name, "_") || slices.Contains(mutators, name) {
		fail("%s of %s is not supported", name, typeName(v))
	}
	return undefined{name}
}

// mutators are methods of lists that templates may not call, neither here nor in transformers.
var mutators = []string{
	"append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort", "copy", "index", "count",
}

func getItem(r *run, v, key any) any {
	switch x := v.(type) {
	case undefined:
		fail("%s is undefined and has no elements", x.name)
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
		if m := method(v, s); m != nil {
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

// slice evaluates v[from:to:step] for a sequence.
func slice(r *run, v any, parts [3]any) any {
	var all []any
	l, isList := v.(*list)
	switch u, isUndefined := v.(undefined); {
	case isUndefined:
		fail("%s is undefined", u.name)
	case is[string](v), isList && l.kind <= tupleKind:
		all = copied(r, v)
	default:
		fail("%s cannot be sliced", typeName(v))
	}
	// index returns the value of a part, limited to the bounds of a slice.
	index := func(i int, usual int) int {
		if parts[i] == nil {
			return usual
		}
		k, ok := numeric(parts[i]).(int64)
		if !ok {
			fail("a slice has %s as an index, want integers", typeName(parts[i]))
		}
		return int(max(-1<<30, min(1<<30, k)))
	}
	step, n := index(2, 1), len(all)
	if step == 0 {
		fail("the step of a slice is 0")
	}
	low, high := 0, n
	from, to := low, high
	if step < 0 {
		low, high = -1, n-1
		from, to = high, low
	}
	bound := func(i, usual int) int {
		k := index(i, usual)
		if k < 0 && parts[i] != nil {
			k += n
		}
		return max(low, min(high, k))
	}
	from, to = bound(0, from), bound(1, to)
	var chosen []any
	for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
		chosen = append(chosen, all[i])
	}
	if isList {
		return &list{items: chosen, kind: l.kind}
	}
	return join(r, "", chosen)
}
