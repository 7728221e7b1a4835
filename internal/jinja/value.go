package jinja

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The values of a template are those of Python: nil, bool, int64, float64 and string, and
// these.
type (
	undefined struct{ name string }
	function  func(r *run, a args) any
	namespace struct{ *dict }

	list struct {
		items []any
		kind  listKind
		spent bool // an iterator that has been used
	}
	dict struct {
		keys   []string
		values map[string]any
	}
)

// listKind is what a list is in Python.
type listKind int

const (
	listKindList listKind = iota
	tupleKind
	rangeKind
	viewKind     // of the keys, values or items of a dict
	iteratorKind // which can be used once
)

func newDict() *dict { return &dict{values: map[string]any{}} }

func (d *dict) set(key string, v any) {
	if _, ok := d.values[key]; !ok {
		d.keys = append(d.keys, key)
	}
	d.values[key] = v
}

// given converts a value of Go.
func given(v any) any {
	switch v := v.(type) {
	case nil, bool, int64, float64, string:
		return v
	case int:
		return int64(v)
	case []any:
		l := &list{}
		for _, x := range v {
			l.items = append(l.items, given(x))
		}
		return l
	case map[string]any:
		d := newDict()
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			d.set(k, given(v[k]))
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
	case float64:
		return "a number"
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
	case float64:
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

// numeric returns a number as int64 or float64, and nil of anything else.
func numeric(v any) any {
	switch v := v.(type) {
	case bool:
		if v {
			return int64(1)
		}
		return int64(0)
	case int64, float64:
		return v
	}
	return nil
}

func toFloat(v any) float64 {
	if n, ok := v.(int64); ok {
		return float64(n)
	}
	return v.(float64)
}

// str is str of Python: what a template writes.
func (r *run) str(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case undefined:
		return ""
	}
	return r.repr(v, 0)
}

// repr is repr of Python.
func (r *run) repr(v any, depth int) string {
	r.step()
	if depth > deepest {
		fail("values are nested more than %d deep", deepest)
	}
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		if v {
			return "True"
		}
		return "False"
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return reprFloat(v)
	case string:
		return reprString(v)
	case *list:
		var parts []string
		for _, x := range v.items {
			parts = append(parts, r.repr(x, depth+1))
		}
		text := strings.Join(parts, ", ")
		r.charge(len(text))
		switch {
		case v.kind == listKindList:
			return "[" + text + "]"
		case v.kind == tupleKind && len(parts) == 1:
			return "(" + text + ",)"
		case v.kind == tupleKind:
			return "(" + text + ")"
		}
	case *dict:
		var parts []string
		for _, k := range v.keys {
			parts = append(parts, reprString(k)+": "+r.repr(v.values[k], depth+1))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	fail("%s is written as text", typeName(v))
	return ""
}

func reprFloat(x float64) string {
	switch {
	case math.IsInf(x, 1):
		return "inf"
	case math.IsInf(x, -1):
		return "-inf"
	case math.IsNaN(x):
		return "nan"
	}
	format := byte('f')
	if a := math.Abs(x); a != 0 && (a < 1e-4 || a >= 1e16) {
		format = 'e'
	}
	s := strconv.FormatFloat(x, format, -1, 64)
	if format == 'f' && !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

func reprString(s string) string {
	quote := '\''
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	var b strings.Builder
	b.WriteRune(quote)
	for _, r := range s {
		switch {
		case r == quote || r == '\\':
			b.WriteRune('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteRune(quote)
	return b.String()
}

// equal is == of Python.
func (r *run) equal(a, b any) bool {
	r.step()
	if m, n := numeric(a), numeric(b); m != nil && n != nil {
		return toFloat(m) == toFloat(n)
	}
	switch a := a.(type) {
	case nil:
		return b == nil
	case string:
		s, ok := b.(string)
		return ok && a == s
	case undefined:
		_, ok := b.(undefined)
		return ok
	case *list:
		l, ok := b.(*list)
		if ok && a.kind <= tupleKind && l.kind <= tupleKind {
			return a.kind == l.kind && slices.EqualFunc(a.items, l.items, r.equal)
		}
		return ok && a == l
	case *dict:
		d, ok := b.(*dict)
		if !ok || len(a.keys) != len(d.keys) {
			return false
		}
		for k, v := range a.values {
			if w, ok := d.values[k]; !ok || !r.equal(v, w) {
				return false
			}
		}
		return true
	}
	return false
}

// order compares values that have an order.
func (r *run) order(a, b any) int {
	r.step()
	if m, n := numeric(a), numeric(b); m != nil && n != nil {
		return cmp.Compare(toFloat(m), toFloat(n))
	}
	s, isText := a.(string)
	t, ok := b.(string)
	if isText && ok {
		return cmp.Compare(s, t)
	}
	l, isList := a.(*list)
	m, ok := b.(*list)
	if isList && ok && l.kind == m.kind && l.kind <= tupleKind {
		return slices.CompareFunc(l.items, m.items, r.order)
	}
	fail("%s and %s are compared", typeName(a), typeName(b))
	return 0
}

// contains reports whether a value is in another one.
func contains(r *run, in, v any) bool {
	switch in := in.(type) {
	case string:
		s, ok := v.(string)
		if !ok {
			fail("%s in a string", typeName(v))
		}
		return strings.Contains(in, s)
	case *dict:
		s, ok := v.(string)
		_, there := in.values[s]
		return ok && there
	}
	return slices.ContainsFunc(iterate(r, in), func(x any) bool {
		r.step()
		return r.equal(x, v)
	})
}

// iterate returns what a loop over a value goes through.
func iterate(r *run, v any) []any {
	switch v := v.(type) {
	case undefined:
		return nil
	case string:
		r.charge(32 * len(v))
		var all []any
		for _, c := range v {
			all = append(all, string(c))
		}
		return all
	case *list:
		if v.spent {
			fail("an iterator is used a second time, want it made a list first")
		}
		v.spent = v.kind == iteratorKind
		return v.items
	case *dict:
		r.charge(16 * len(v.keys))
		var all []any
		for _, k := range v.keys {
			all = append(all, k)
		}
		return all
	}
	fail("%s is no sequence", typeName(v))
	return nil
}

// length is len of Python.
func length(v any) int {
	switch v := v.(type) {
	case undefined:
		return 0
	case string:
		return utf8.RuneCountInString(v)
	case *list:
		if v.kind != iteratorKind {
			return len(v.items)
		}
	case *dict:
		return len(v.keys)
	}
	fail("the length of %s", typeName(v))
	return 0
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

func (d *dict) get(key string) any {
	if v, ok := d.values[key]; ok {
		return v
	}
	return undefined{key}
}

func getItem(v, key any) any {
	switch x := v.(type) {
	case undefined:
		fail("%s is undefined, and an element is asked of it", x.name)
	case namespace, loopState:
		if s, ok := key.(string); ok {
			return getAttribute(x, s)
		}
	case *dict:
		s, ok := key.(string)
		if !ok {
			return undefined{"an element"}
		}
		if _, there := x.values[s]; !there {
			if m := dictMethod(x, s); m != nil {
				return m
			}
		}
		return x.get(s)
	case string, *list:
		i, ok := numeric(key).(int64)
		if !ok {
			if s, isText := key.(string); isText {
				return getAttribute(v, s)
			}
			return undefined{"an element"}
		}
		var elements []any
		if l, isList := x.(*list); isList {
			if l.kind > rangeKind {
				return undefined{"an element of " + typeName(v)}
			}
			elements = l.items
		} else {
			for _, c := range x.(string) {
				elements = append(elements, string(c))
			}
		}
		if i < 0 {
			i += int64(len(elements))
		}
		if i < 0 || i >= int64(len(elements)) {
			return undefined{fmt.Sprintf("element %v", key)}
		}
		return elements[i]
	}
	return undefined{"an element of " + typeName(v)}
}
