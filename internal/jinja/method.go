package jinja

import (
	"strings"
	"unicode"
)

// dictMethod returns a method of a dict, nil if there is none of that name.
func dictMethod(d *dict, name string) any {
	switch name {
	case "items", "keys", "values":
		return function(func(r *run, a args) any {
			a.done(name, 0)
			return &list{items: entries(r, d, name), kind: viewKind}
		})
	case "get":
		return function(func(r *run, a args) any {
			key, _ := a.take(0, "key")
			usual, _ := a.take(1, "default")
			a.done(name, 2)
			wantHashable(key)
			if i, there := d.find(r, key); there {
				return d.values[i]
			}
			return usual
		})
	case "clear", "copy", "fromkeys", "pop", "popitem", "setdefault", "update":
		return unknown("method", name)
	}
	return nil
}

// unknown is a function that is not known, which matters when it is called.
func unknown(what, name string) function {
	return func(*run, args) any {
		fail("%s %s is not known", what, name)
		return nil
	}
}

func entries(r *run, d *dict, what string) []any {
	r.charge(len(d.keys), 64)
	var all []any
	for i, k := range d.keys {
		switch what {
		case "keys":
			all = append(all, k)
		case "values":
			all = append(all, d.values[i])
		default:
			all = append(all, &list{items: []any{k, d.values[i]}, kind: tupleKind})
		}
	}
	return all
}

// stringMethods are those of Python's strings; nil are those that are not known here.
var stringMethods = map[string]func(r *run, s string, a args) any{
	"strip":      func(r *run, s string, a args) any { return strip(s, a, true, true) },
	"lstrip":     func(r *run, s string, a args) any { return strip(s, a, true, false) },
	"rstrip":     func(r *run, s string, a args) any { return strip(s, a, false, true) },
	"upper":      func(r *run, s string, a args) any { return upper(r, s) },
	"lower":      func(r *run, s string, a args) any { return lower(r, s) },
	"capitalize": func(r *run, s string, a args) any { return capitalize(r, s) },
	"split":      func(r *run, s string, a args) any { return split(r, s, a) },
	"splitlines": func(r *run, s string, a args) any {
		made := &list{}
		for _, line := range lines(r, s) {
			made.items = append(made.items, line)
		}
		return made
	},
	"startswith": func(r *run, s string, a args) any { return affix(s, a, strings.HasPrefix) },
	"endswith":   func(r *run, s string, a args) any { return affix(s, a, strings.HasSuffix) },
	"replace": func(r *run, s string, a args) any {
		return replace(r, s, a.needed(0, "old"), a.needed(1, "new"), a.int(2, "count", -1))
	},
	"find": func(r *run, s string, a args) any {
		i := strings.Index(s, a.text(0, "sub", ""))
		if i > 0 {
			i = length(r, s[:i])
		}
		return int64(i)
	},
	"count": func(r *run, s string, a args) any { return int64(strings.Count(s, a.text(0, "sub", ""))) },
	"join": func(r *run, s string, a args) any {
		v, _ := a.take(0, "iterable")
		parts := iterate(r, v)
		for _, p := range parts {
			if _, ok := p.(string); !ok { // of which the filter join makes a string
				fail("join of %s, want strings", typeName(p))
			}
		}
		return join(r, s, parts)
	},
	"removeprefix": func(r *run, s string, a args) any {
		return strings.TrimPrefix(s, a.text(0, "prefix", ""))
	},
	"removesuffix": func(r *run, s string, a args) any {
		return strings.TrimSuffix(s, a.text(0, "suffix", ""))
	},
	"isdigit": func(r *run, s string, a args) any {
		for _, c := range s {
			if unicode.Is(unicode.No, c) { // of which Python takes some
				fail("isdigit of %q is not known", c)
			}
		}
		return s != "" && strings.TrimFunc(s, unicode.IsDigit) == ""
	},
	"casefold": nil, "center": nil, "encode": nil, "expandtabs": nil, "format": nil, "format_map": nil, "index": nil, "isalnum": nil,
	"isalpha": nil, "isascii": nil, "isdecimal": nil, "isidentifier": nil, "islower": nil, "isnumeric": nil, "isprintable": nil, "isspace": nil,
	"istitle": nil, "isupper": nil, "ljust": nil, "maketrans": nil, "partition": nil, "rfind": nil, "rindex": nil, "rjust": nil,
	"rpartition": nil, "rsplit": nil, "swapcase": nil, "title": nil, "translate": nil, "zfill": nil,
}

// mostArguments of those methods that have any.
var mostArguments = map[string]int{
	"strip": 1, "lstrip": 1, "rstrip": 1, "split": 2, "startswith": 1, "endswith": 1, "replace": 3, "find": 1, "count": 1, "join": 1,
	"removeprefix": 1, "removesuffix": 1,
}

// stringMethod returns a method of a string, nil if there is none of that name.
func stringMethod(s, name string) any {
	method, ok := stringMethods[name]
	switch {
	case !ok:
		return nil
	case method == nil:
		return unknown("method", name)
	}
	return function(func(r *run, a args) any {
		r.charge(len(s), 2)
		v := method(r, s, a)
		a.done(name, mostArguments[name])
		return v
	})
}

// affix reports whether a string has one of the prefixes, or suffixes.
func affix(s string, a args, has func(s, part string) bool) bool {
	v, _ := a.take(0, "prefix")
	parts := []any{v}
	if l, ok := v.(*list); ok && l.kind == tupleKind {
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
