package jinja

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// The values of a template are Python values: nil, bool, text and the following types.
type (
	number struct {
		n    int64
		user bool // whether it comes from the user: its digits are text of the user where they are written
	}
	// undefined is the value of what does not exist. It is false, has no elements, and is written as nothing; that a
	// template goes further, to an attribute of it, is an error, with this name.
	undefined struct{ name string }
	function  func(r *run, g given) any
	namespace struct{ *dict }

	list struct {
		items []any
		kind  listKind
		// spent is whether an iterator has been used. In Python it has no elements then, so that a template which
		// loops over it twice loses text and does not fail; here it fails.
		spent bool
	}
	dict struct {
		keys, values []any
		at           map[any]int // indices of keys, which are string or int64 here
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

// set sets the value of a key. A key keeps its first place, as in Python.
func (d *dict) set(r *run, key, v any) {
	plain, ok := plainKey(r, key)
	if !ok {
		fail("%s as a key of a dict is not supported", typeName(key))
	}
	if i, there := d.at[plain]; there {
		d.values[i] = v
		return
	}
	d.at[plain] = len(d.keys)
	d.keys, d.values = append(d.keys, key), append(d.values, v)
}

// find returns the index of a key. Keys are texts and integers. Python also finds 1 by true, which fails here.
func (d *dict) find(r *run, key any) (i int, there bool) {
	plain, ok := plainKey(r, key)
	if !ok && key != nil && !is[undefined](key) {
		fail("%s as a key of a dict is not supported", typeName(key))
	}
	i, there = d.at[plain]
	return i, there
}

// plainKey returns the string or the int64 of a key; ok is false if it has another type.
// Marks are not a part of it: a key that the user wrote finds that of the template.
func plainKey(r *run, key any) (plain any, ok bool) {
	switch k := key.(type) {
	case text:
		r.read(len(k.s))
		return k.s, true
	case number:
		return k.n, true
	}
	return nil, false
}

func (d *dict) get(name string) any {
	if i, ok := d.at[name]; ok {
		return d.values[i]
	}
	return undefined{name}
}

// fromGo converts a variable.
func fromGo(r *run, v any) any {
	switch v := v.(type) {
	case nil, bool:
		return v
	case Trusted:
		return text{s: strings.ToValidUTF8(string(v), invalid)}
	case string:
		return theirs(r, strings.ToValidUTF8(v, invalid))
	case int:
		return number{whole(int64(v)), true}
	case int64:
		return number{whole(v), true}
	case []any:
		l := &list{}
		for _, x := range v {
			l.items = append(l.items, fromGo(r, x))
		}
		return l
	case Map:
		d := newDict()
		for _, e := range v {
			d.set(r, fromGo(r, e.Key), fromGo(r, e.Value))
		}
		return d
	}
	fail("a variable is %T", v)
	return nil
}

// fromUser reports whether a part of a value comes from the user.
// None, True and False do not: there are only three of them, so no user can choose what they say.
func fromUser(v any) bool {
	switch v := v.(type) {
	case text:
		return strings.Contains(v.user, theirMark)
	case number:
		return v.user
	case *list:
		return slices.ContainsFunc(v.items, fromUser)
	case *dict:
		return slices.ContainsFunc(v.keys, fromUser) || slices.ContainsFunc(v.values, fromUser)
	}
	return false
}

func typeName(v any) string {
	switch v := v.(type) {
	case nil:
		return "none"
	case bool:
		return "a truth value"
	case number:
		return "an integer"
	case text:
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

// truth is Python's bool. An iterator is true even if it has no elements, because Python cannot know that before it is
// used.
func truth(v any) bool {
	switch v := v.(type) {
	case nil, undefined:
		return false
	case bool:
		return v
	case number:
		return v.n != 0
	case text:
		return v.s != ""
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
	case text:
		r.charge(len(v.s), 64)
		var all []any
		for i, c := range v.s {
			all = append(all, v.slice(i, i+utf8.RuneLen(c)))
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
func length(r *run, v any) number {
	switch v := v.(type) {
	case undefined:
		return number{}
	case text:
		r.read(len(v.s))
		return number{int64(utf8.RuneCountInString(v.s)), fromUser(v)}
	case *list:
		if v.kind != iteratorKind {
			return number{n: int64(len(v.items))}
		}
	case *dict:
		return number{n: int64(len(v.keys))}
	}
	fail("%s has no length", typeName(v))
	return number{}
}
