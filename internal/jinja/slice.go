package jinja

import (
	"strings"
)

// slice is the part of a sequence [from:to:step].
type slice struct{ parts [3]expression }

func (slice) eval(*run, *scope) any { return nil }

func (c slice) of(r *run, s *scope, v any) any {
	var elements []any
	var runes []rune
	n := 0
	switch x := v.(type) {
	case string:
		r.charge(len(x), 16)
		runes = []rune(x)
		n = len(runes)
	case *list:
		if x.kind > tupleKind {
			fail("a slice of %s", typeName(v))
		}
		r.charge(len(x.items), 16)
		elements = x.items
		n = len(elements)
	case undefined:
		fail("%s is undefined", x.name)
	default:
		fail("a slice of %s", typeName(v))
	}
	var at [3]int
	var set [3]bool
	for i, p := range c.parts {
		if p == nil {
			continue
		}
		index := r.value(p, s)
		if index == nil {
			continue
		}
		k, ok := numeric(index).(int64)
		if !ok {
			fail("a slice by %s, want integers", typeName(index))
		}
		at[i], set[i] = int(max(-1<<30, min(1<<30, k))), true
	}
	step := 1
	if set[2] {
		if step = at[2]; step == 0 {
			fail("the step of a slice is 0")
		}
	}
	low, high := 0, n
	if step < 0 {
		low, high = -1, n-1
	}
	bound := func(i, usual int) int {
		if !set[i] {
			return usual
		}
		k := at[i]
		if k < 0 {
			k += n
		}
		return max(low, min(high, k))
	}
	from, to := bound(0, low), bound(1, high)
	if step < 0 {
		from, to = bound(0, high), bound(1, low)
	}
	var text strings.Builder
	made := &list{}
	if l, ok := v.(*list); ok {
		made.kind = l.kind
	}
	for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
		if elements != nil {
			made.items = append(made.items, elements[i])
		} else if runes != nil {
			text.WriteRune(runes[i])
		}
	}
	if _, ok := v.(string); ok {
		return text.String()
	}
	return made
}
