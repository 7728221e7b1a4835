package jinja

import (
	"slices"
	"strings"
	"unicode"
)

// dictMethods are the supported methods of Python's dicts.
var dictMethods = map[string]builtin{
	"items":  view("items"),
	"keys":   view("keys"),
	"values": view("values"),
	"get": {"key default", func(r *run, v any, a args) any {
		d := v.(*dict)
		wantHashable(a.values[0])
		if i, there := d.find(r, a.values[0]); there {
			return d.values[i]
		}
		return a.values[1]
	}},
}

// stringMethods are the supported methods of Python's strings.
var stringMethods = map[string]builtin{
	"strip":      strip(true, true),
	"lstrip":     strip(true, false),
	"rstrip":     strip(false, true),
	"upper":      ofText(upper),
	"lower":      ofText(lower),
	"capitalize": ofText(capitalize),
	"split":      {"sep maxsplit", split},
	"splitlines": ofText(func(r *run, s string) *list { return listOf(lines(r, s)) }),
	"startswith": {"prefix", func(_ *run, v any, a args) any { return affix(v.(string), a, strings.HasPrefix) }},
	"endswith":   {"prefix", func(_ *run, v any, a args) any { return affix(v.(string), a, strings.HasSuffix) }},
	"replace":    {"old new count", replace},
	"count": {"sub", func(_ *run, v any, a args) any {
		return int64(strings.Count(v.(string), a.textOr(0, "")))
	}},
	"removeprefix": {"prefix", func(_ *run, v any, a args) any {
		return strings.TrimPrefix(v.(string), a.textOr(0, ""))
	}},
	"removesuffix": {"suffix", func(_ *run, v any, a args) any {
		return strings.TrimSuffix(v.(string), a.textOr(0, ""))
	}},
	"find": {"sub", func(r *run, v any, a args) any {
		s := v.(string)
		i := strings.Index(s, a.textOr(0, ""))
		if i > 0 {
			i = length(r, s[:i])
		}
		return int64(i)
	}},
	"join": {"iterable", func(r *run, v any, a args) any {
		parts := iterate(r, a.values[0])
		for _, p := range parts {
			if _, ok := p.(string); !ok { // only the filter join converts elements to strings
				fail("join of %s, want strings", typeName(p))
			}
		}
		return join(r, v.(string), parts)
	}},
	"isdigit": ofText(func(_ *run, s string) bool {
		for _, c := range s {
			if unicode.Is(unicode.No, c) { // Python accepts some of them as digits
				fail("isdigit of %q is not supported", c)
			}
		}
		return s != "" && strings.TrimFunc(s, unicode.IsDigit) == ""
	}),
}

// otherMethods are Python's unsupported methods. Calling them is an error.
var otherMethods = map[string][]string{
	"a dict": {"clear", "copy", "fromkeys", "pop", "popitem", "setdefault", "update"},
	"a string": {
		"casefold", "center", "encode", "expandtabs", "format", "format_map", "index", "isalnum", "isalpha", "isascii",
		"isdecimal", "isidentifier", "islower", "isnumeric", "isprintable", "isspace", "istitle", "isupper", "ljust",
		"maketrans", "partition", "rfind", "rindex", "rjust", "rpartition", "rsplit", "swapcase", "title", "translate", "zfill",
	},
}

// method returns a method of a dict or a string, or nil if there is no such method.
func method(v any, name string) any {
	methods := dictMethods
	s, isText := v.(string)
	if isText {
		methods = stringMethods
	}
	m, ok := methods[name]
	switch {
	case ok:
		return function(func(r *run, g given) any {
			r.charge(len(s), 2)
			return m.apply(r, name, v, g)
		})
	case slices.Contains(otherMethods[typeName(v)], name):
		return function(func(*run, given) any {
			fail("method %s is not supported", name)
			return nil
		})
	}
	return nil
}

func view(what string) builtin {
	return ofValue(func(r *run, v any) any { return &list{items: entries(r, v.(*dict), what), kind: viewKind} })
}

func entries(r *run, d *dict, what string) []any {
	r.charge(len(d.keys), 64)
	switch what {
	case "keys":
		return slices.Clone(d.keys)
	case "values":
		return slices.Clone(d.values)
	}
	var all []any
	for i, k := range d.keys {
		all = append(all, &list{items: []any{k, d.values[i]}, kind: tupleKind})
	}
	return all
}

// affix reports whether a string has any of the given prefixes or suffixes.
func affix(s string, a args, has func(s, part string) bool) bool {
	parts := []any{a.values[0]}
	if l, ok := parts[0].(*list); ok && l.kind == tupleKind {
		parts = l.items
	}
	for _, p := range parts {
		text, ok := p.(string)
		if !ok {
			fail("startswith or endswith of %s, want a string or a tuple of strings", typeName(p))
		}
		if has(s, text) {
			return true
		}
	}
	return false
}
