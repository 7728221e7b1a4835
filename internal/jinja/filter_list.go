package jinja

import (
	"slices"
	"strconv"
	"strings"
)

func first(r *run, v any, a args) any {
	for _, x := range iterate(r, v) {
		return x
	}
	return undefined{"the first element"}
}

func last(r *run, v any, a args) any {
	all := iterate(r, v)
	if len(all) == 0 {
		return undefined{"the last element"}
	}
	return all[len(all)-1]
}

func reverse(r *run, v any, a args) any {
	all := copied(r, v)
	slices.Reverse(all)
	if _, ok := v.(string); ok {
		return join(r, "", all)
	}
	return &list{items: all, kind: iteratorKind}
}

func joined(r *run, v any, a args) any {
	if _, ok := a.take(1, "attribute"); ok {
		fail("join by an attribute is not known")
	}
	return join(r, a.text(0, "d", ""), iterate(r, v))
}

// sorted is sort, which pays no attention to the case of letters.
func sorted(r *run, v any, a args) any {
	all := copied(r, v)
	reverse := a.flag(0, "reverse")
	if _, ok := a.take(1, "case_sensitive"); ok {
		fail("sort with case_sensitive is not known")
	}
	by := a.text(2, "attribute", "")
	key := func(x any) any {
		if by != "" {
			x = path(r, x, by)
		}
		return withoutCase(r, x)
	}
	slices.SortStableFunc(all, func(x, y any) int {
		c := r.order(key(x), key(y))
		if reverse {
			return -c
		}
		return c
	})
	return &list{items: all}
}

// withoutCase returns a text in lower case, and anything else as it is.
func withoutCase(r *run, v any) any {
	if s, ok := v.(string); ok {
		return lower(r, s)
	}
	return v
}

func unique(r *run, v any, a args) any {
	made := &list{kind: iteratorKind}
	seen := map[string]bool{}
	for _, x := range iterate(r, v) {
		r.charge(1, 64)
		s, ok := x.(string)
		if !ok || lower(r, s) != s {
			fail("unique of %s that is not lower case is not known", typeName(x))
		}
		if !seen[s] {
			seen[s] = true
			made.items = append(made.items, s)
		}
	}
	return made
}

// unread reports whether map and the filters that pick elements take a value for an empty list without a look
// at their arguments: none, for one, which other filters refuse.
func (a args) unread(v any) bool {
	if truth(v) {
		return false
	}
	for _, name := range a.order {
		a.used[name] = true
	}
	return true
}

// mapped is map: a filter of each element, or an attribute.
func mapped(r *run, v any, a args) any {
	made := &list{kind: iteratorKind}
	if a.unread(v) {
		return made
	}
	by := a.text(-1, "attribute", "")
	if by == "" && len(a.list) == 0 {
		fail("map without a filter or an attribute")
	}
	for _, x := range iterate(r, v) {
		r.step()
		if by != "" {
			x = path(r, x, by)
		} else {
			x = applyFilter(r, r.str(a.list[0]), x, args{list: a.list[1:], named: map[string]any{}, used: map[string]bool{}})
		}
		made.items = append(made.items, x)
	}
	return made
}

// pick is select, reject, selectattr and rejectattr: of what a test says of the elements, or
// of an attribute of each.
func pick(r *run, v any, a args, attributes int, want bool) any {
	made := &list{kind: iteratorKind}
	if a.unread(v) {
		return made
	}
	if len(a.list) < attributes {
		fail("selectattr and rejectattr want an attribute")
	}
	for _, x := range iterate(r, v) {
		r.step()
		value := x
		if attributes > 0 {
			value = path(r, x, r.str(a.list[0]))
		}
		holds := truth(value)
		if rest := a.list[attributes:]; len(rest) > 0 {
			holds = applyTest(r, r.str(rest[0]), value, args{list: rest[1:], named: map[string]any{}, used: map[string]bool{}})
		}
		if holds == want {
			made.items = append(made.items, x)
		}
	}
	return made
}

// path is an attribute of an element, or one of that, with dots between them.
func path(r *run, v any, names string) any {
	for name := range strings.SplitSeq(names, ".") {
		r.step()
		if n, err := strconv.ParseInt(name, 10, 64); err == nil {
			v = getItem(r, v, n)
			continue
		}
		v = getItem(r, v, name)
	}
	return v
}

func items(r *run, v any, a args) any {
	if d, ok := v.(*dict); ok {
		return &list{items: entries(r, d, "items"), kind: iteratorKind}
	}
	fail("items of %s", typeName(v))
	return nil
}

// sortedItems is dictsort.
func sortedItems(r *run, v any, a args) any {
	d, ok := v.(*dict)
	if !ok || len(a.list)+len(a.named) > 0 {
		fail("dictsort of %s, or with arguments, is not known", typeName(v))
	}
	all := entries(r, d, "items")
	key := func(item any) any { return withoutCase(r, item.(*list).items[0]) }
	slices.SortStableFunc(all, func(x, y any) int { return r.order(key(x), key(y)) })
	return &list{items: all}
}
