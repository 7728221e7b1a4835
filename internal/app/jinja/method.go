package jinja

import (
	"slices"
	"strings"
)

// dictMethods are the supported methods of Python's dicts.
var dictMethods = map[string]builtin{
	"items": ofValue(func(r *run, v any) any { return &list{items: itemsOf(r, v), kind: viewKind} }),
	"get": {"key default", func(r *run, v any, a args) any {
		d := v.(*dict)
		if i, there := d.find(r, a.needed(0)); there {
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
	"replace":    {"old new", replace},
	"startswith": {"prefix", func(_ *run, v any, a args) any { return affix(v, a, strings.HasPrefix) }},
	"endswith":   {"suffix", func(_ *run, v any, a args) any { return affix(v, a, strings.HasSuffix) }},
}

// otherMethods are Python's unsupported methods. Other names are undefined attributes, which a template may test. All
// attributes of types that are not listed, such as macros, are unsupported.
var otherMethods = map[string][]string{
	"none":          nil,
	"a truth value": numberMethods,
	"an integer":    numberMethods,
	"a list":        {"append", "clear", "copy", "count", "extend", "index", "insert", "pop", "remove", "reverse", "sort"},
	"a dict":        {"clear", "copy", "fromkeys", "keys", "pop", "popitem", "setdefault", "update", "values"},
	"a string": {
		"casefold", "center", "count", "encode", "expandtabs", "find", "format", "format_map", "index", "isalnum", "isalpha",
		"isascii", "isdecimal", "isdigit", "isidentifier", "islower", "isnumeric", "isprintable", "isspace", "istitle",
		"isupper", "join", "ljust", "maketrans", "partition", "removeprefix", "removesuffix", "rfind", "rindex", "rjust",
		"rpartition", "rsplit", "splitlines", "swapcase", "title", "translate", "zfill",
	},
}

var numberMethods = []string{
	"as_integer_ratio", "bit_count", "bit_length", "conjugate", "denominator", "from_bytes", "imag", "is_integer", "numerator",
	"real", "to_bytes",
}

// method returns a method of a dict or a string, or nil if there is no such method. It fails for unsupported methods.
// The difference matters: most messages have no tool_calls, and a template tests for them, but a method that is missing
// only here would pass for an attribute that does not exist.
func method(v any, name string) any {
	var methods map[string]builtin
	t, isText := v.(text)
	if isText {
		methods = stringMethods
	} else if is[*dict](v) {
		methods = dictMethods
	}
	m, ok := methods[name]
	if !ok {
		others, listed := otherMethods[typeName(v)]
		if !listed || strings.HasPrefix(name, "__") || slices.Contains(others, name) {
			fail("%s of %s is not supported", name, typeName(v))
		}
		return nil
	}
	return function(func(r *run, g given) any {
		r.read(len(t.s))
		return m.apply(r, name, v, g)
	})
}

// affix reports whether a string has any of the given prefixes or suffixes.
func affix(v any, a args, has func(s, part string) bool) bool {
	parts := []any{a.needed(0)}
	if l, ok := parts[0].(*list); ok && l.kind == tupleKind {
		parts = l.items
	}
	for _, p := range parts {
		part, ok := p.(text)
		if !ok {
			fail("argument %s of %s is %s, want a string or a tuple of strings", a.params[0], a.what, typeName(p))
		}
		if has(v.(text).s, part.s) {
			return true
		}
	}
	return false
}
