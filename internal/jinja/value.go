package jinja

import (
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"
)

// The values of a template are Python values: nil, bool, int64, string and the following types.
type (
	undefined struct{ name string }
	function  func(r *run, g given) any
	namespace struct{ *dict }

	list struct {
		items []any
		kind  listKind
		spent bool // whether an iterator has been used
	}
	dict struct {
		keys, values []any
		at           map[any]int // indices of keys
	}
)

// listKind is the Python type of a list.
type listKind int

const (
	listKindList listKind = iota
	tupleKind
	rangeKind
	viewKind     // the items of a dict
	iteratorKind // can be used once
)

func newDict() *dict { return &dict{at: map[any]int{}} }

func (d *dict) set(r *run, key, v any) {
	if !is[string](key) && !is[int64](key) {
		fail("%s as a key of a dict is not supported", typeName(key))
	}
	i, there := d.find(r, key)
	if there {
		d.values[i] = v
		return
	}
	d.at[key] = len(d.keys)
	d.keys, d.values = append(d.keys, key), append(d.values, v)
}

// find returns the index of a key. Keys are texts and integers. Python also finds 1 by true, which fails here.
func (d *dict) find(r *run, key any) (i int, there bool) {
	switch k := key.(type) {
	case nil, undefined:
		return 0, false
	case string:
		r.read(len(k))
	case int64:
	default:
		fail("%s as a key of a dict is not supported", typeName(key))
	}
	i, there = d.at[key]
	return i, there
}

func (d *dict) get(name string) any {
	if i, ok := d.at[name]; ok {
		return d.values[i]
	}
	return undefined{name}
}

// fromGo converts a Go value.
func fromGo(r *run, v any) any {
	switch v := v.(type) {
	case nil, bool, string:
		return v
	case int:
		return whole(int64(v))
	case int64:
		return whole(v)
	case []any:
		l := &list{}
		for _, x := range v {
			l.items = append(l.items, fromGo(r, x))
		}
		return l
	case map[string]any:
		d := newDict()
		for _, k := range slices.Sorted(maps.Keys(v)) {
			d.set(r, k, fromGo(r, v[k]))
		}
		return d
	}
	fail("a variable is %T", v)
	return nil
}

func typeName(v any) string {
	switch v := v.(type) {
	case nil:
		return "none"
	case bool:
		return "a truth value"
	case int64:
		return "an integer"
	case string:
		return "a string"
	case *list:
		return [...]string{"a list", "a tuple", "a range", "a view of a dict", "an iterator"}[v.kind]
	case *dict:
		return "a dict"
	case namespace:
		return "a namespace"
	case loopState:
		return "loop"
	case undefined:
		return v.name + ", which is undefined,"
	case function:
		return "a function"
	}
	return fmt.Sprintf("%T", v)
}

func truth(v any) bool {
	switch v := v.(type) {
	case nil, undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case string:
		return v != ""
	case *list:
		return v.kind == iteratorKind || len(v.items) > 0
	case *dict:
		return len(v.keys) > 0
	}
	return true
}

// iterate returns the elements of a value for a loop.
func iterate(r *run, v any) []any {
	switch v := v.(type) {
	case undefined:
		return nil
	case string:
		r.charge(len(v), 32)
		var all []any
		for _, c := range v {
			all = append(all, string(c))
		}
		return all
	case *list:
		if v.spent {
			fail("an iterator is used a second time, want the filter list before")
		}
		v.spent = v.kind == iteratorKind
		return v.items
	case *dict:
		return v.keys
	}
	fail("%s is not a sequence", typeName(v))
	return nil
}

// copied returns a copy of the elements of a value.
func copied(r *run, v any) []any {
	all := iterate(r, v)
	r.charge(len(all), 16)
	return slices.Clone(all)
}

// length is Python's len.
func length(r *run, v any) int {
	switch v := v.(type) {
	case undefined:
		return 0
	case string:
		r.read(len(v))
		return utf8.RuneCountInString(v)
	case *list:
		if v.kind != iteratorKind {
			return len(v.items)
		}
	case *dict:
		return len(v.keys)
	}
	fail("%s has no length", typeName(v))
	return 0
}
