package jinja

import (
	"slices"
	"strconv"
	"strings"

	"github.com/attn-go/attn/internal/quote"
)

// filters are the supported filters of Jinja.
var filters map[string]builtin

func init() { // they refer to each other by name
	filters = map[string]builtin{
		"trim":       stringMethods["strip"],
		"upper":      stringMethods["upper"],
		"lower":      stringMethods["lower"],
		"capitalize": stringMethods["capitalize"],
		"replace":    stringMethods["replace"],
		"string":     ofText(func(_ *run, t text) text { return t }),
		"int":        ofValue(toInteger),
		"tojson":     {"ensure_ascii indent", toJSON},
		"default":    {"default_value boolean", usual},
		"length":     ofValue(length),
		"list":       ofValue(func(r *run, v any) any { return &list{items: copied(r, v)} }),
		"first":      ofValue(first),
		"last":       ofValue(last),
		"join":       {"d", joined},
		"map":        {"*", mapped},
		"select":     {"*", func(r *run, v any, a args) any { return pick(r, v, a, 0, true) }},
		"reject":     {"*", func(r *run, v any, a args) any { return pick(r, v, a, 0, false) }},
		"selectattr": {"*", func(r *run, v any, a args) any { return pick(r, v, a, 1, true) }},
		"rejectattr": {"*", func(r *run, v any, a args) any { return pick(r, v, a, 1, false) }},
		"items":      ofValue(func(r *run, v any) any { return &list{items: itemsOf(r, v), kind: iteratorKind} }),
		"dictsort":   ofValue(sortedItems),
	}
	filters["count"], filters["d"] = filters["length"], filters["default"]
}

func applyFilter(r *run, name string, v any, g given) any {
	f, ok := filters[name]
	if !ok {
		fail("filter %s is not supported", quote.Text(name))
	}
	// Filters of texts return a text of about this length. Those whose result may be longer charge for it themselves.
	if t, ok := v.(text); ok {
		r.charge(len(t.s), 1)
	}
	return f.apply(r, "filter "+name, v, g)
}

// usual is the filter default. None is a value: it is replaced only with the second argument, as every false value.
func usual(r *run, v any, a args) any {
	if _, un := v.(undefined); !un && !(a.flag(1) && !truth(v)) {
		return v
	}
	if a.set[0] {
		return a.values[0]
	}
	return text{}
}

// joined is the filter join. Its elements are written as text, so [1, none]|join is "1None".
func joined(r *run, v any, a args) any {
	between := text{}
	if a.set[0] {
		between = a.text(0)
	}
	return join(r, between, iterate(r, v)...)
}

// first is the filter first. It uses an iterator, as in Jinja.
func first(r *run, v any) any {
	for _, x := range iterate(r, v) {
		return x
	}
	return undefined{"the first element"}
}

// last is the filter last. Jinja asks for the elements in reverse, which an iterator does not have.
func last(r *run, v any) any {
	if l, ok := v.(*list); ok && l.kind == iteratorKind {
		fail("last of an iterator, want the filter list before")
	}
	all := iterate(r, v)
	if len(all) == 0 {
		return undefined{"the last element"}
	}
	return all[len(all)-1]
}

// toInteger is the filter int of whole numbers and their digits.
func toInteger(_ *run, v any) any {
	if n, ok := v.(number); ok {
		return n
	}
	t, ok := v.(text)
	n, err := strconv.ParseInt(strings.TrimFunc(t.s, isSpace), 10, 64)
	if !ok || err != nil {
		fail("int of %s that is no integer is not supported", typeName(v))
	}
	return number{whole(n), fromUser(t)}
}

// only returns the named argument; it fails if an argument has another name.
func (a args) only(name string) (v any) {
	for i, n := range a.names {
		if n != name {
			fail("%s has the unknown argument %s", a.what, n)
		}
		v = a.named[i]
	}
	return v
}

// mapped is the filter map, which applies a filter to each element or returns an attribute of each element.
// Like the filters that select elements, it takes any false value, such as none, for an empty list and
// ignores its arguments then. Other filters reject none.
func mapped(r *run, v any, a args) any {
	made := &list{kind: iteratorKind}
	if !truth(v) {
		return made
	}
	by, isText := a.only("attribute").(text)
	if !isText && len(a.list) == 0 {
		fail("%s needs a filter or an attribute", a.what)
	}
	for _, x := range iterate(r, v) {
		r.step()
		if isText {
			x = path(r, x, by.s)
		} else {
			x = applyFilter(r, r.str(a.list[0]).s, x, given{list: a.list[1:]})
		}
		made.items = append(made.items, x)
	}
	return made
}

// pick is the filters select, reject, selectattr and rejectattr. They select elements by a test of each
// element or of an attribute of each element.
func pick(r *run, v any, a args, attributes int, want bool) any {
	made := &list{kind: iteratorKind}
	if !truth(v) {
		return made
	}
	if a.only(""); len(a.list) < attributes {
		fail("%s needs an attribute", a.what)
	}
	for _, x := range iterate(r, v) {
		r.step()
		value := x
		if attributes > 0 {
			value = path(r, x, r.str(a.list[0]).s)
		}
		holds := truth(value)
		if rest := a.list[attributes:]; len(rest) > 0 {
			holds = applyTest(r, r.str(rest[0]).s, value, given{list: rest[1:]})
		}
		if holds == want {
			made.items = append(made.items, x)
		}
	}
	return made
}

// path returns an attribute of an element. names may name a nested attribute, with dots between the names.
func path(r *run, v any, names string) any {
	for name := range strings.SplitSeq(names, ".") {
		r.step()
		if n, err := strconv.ParseUint(name, 10, 31); err == nil { // "-1" is a name in Jinja
			v = getItem(r, v, number{n: int64(n)})
			continue
		}
		v = getItem(r, v, text{s: name})
	}
	return v
}

// itemsOf returns the keys and values of a dict, as tuples.
func itemsOf(r *run, v any) []any {
	d, ok := v.(*dict)
	if !ok {
		fail("items of %s, want a dict", typeName(v))
	}
	r.charge(len(d.keys), 64)
	var all []any
	for i, k := range d.keys {
		all = append(all, &list{items: []any{k, d.values[i]}, kind: tupleKind})
	}
	return all
}

// sortedItems is the filter dictsort, which sorts by key and ignores the case of letters.
func sortedItems(r *run, v any) any {
	key := func(item any) any {
		k := item.(*list).items[0]
		if t, ok := k.(text); ok {
			return lower(r, t)
		}
		return k
	}
	all := itemsOf(r, v)
	slices.SortStableFunc(all, func(x, y any) int { return r.order(key(x), key(y)) })
	return &list{items: all}
}
