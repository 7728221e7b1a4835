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
			if s, ok := key.(string); ok {
				if v, ok := d.values[s]; ok {
					return v
				}
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
	r.charge(64 * len(d.keys))
	var all []any
	for _, k := range d.keys {
		switch what {
		case "keys":
			all = append(all, k)
		case "values":
			all = append(all, d.values[k])
		default:
			all = append(all, &list{items: []any{k, d.values[k]}, kind: tupleKind})
		}
	}
	return all
}

// stringMethods are those of Python's strings; nil are those that are not known here.
var stringMethods = map[string]func(r *run, s string, a args) any{
	"strip":  func(r *run, s string, a args) any { return strip(s, a, true, true) },
	"lstrip": func(r *run, s string, a args) any { return strip(s, a, true, false) },
	"rstrip": func(r *run, s string, a args) any { return strip(s, a, false, true) },
	"upper":  func(r *run, s string, a args) any { return strings.ToUpper(s) },
	"lower":  func(r *run, s string, a args) any { return strings.ToLower(s) },
	"capitalize": func(r *run, s string, a args) any {
		return capitalize(s)
	},
	"split": func(r *run, s string, a args) any { return split(r, s, a) },
	"splitlines": func(r *run, s string, a args) any {
		r.charge(32 * len(s))
		made := &list{}
		s = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s)
		for line := range strings.Lines(s) {
			made.items = append(made.items, strings.TrimSuffix(line, "\n"))
		}
		return made
	},
	"startswith": func(r *run, s string, a args) any { return affix(s, a, strings.HasPrefix) },
	"endswith":   func(r *run, s string, a args) any { return affix(s, a, strings.HasSuffix) },
	"replace": func(r *run, s string, a args) any {
		return replace(r, s, a.text(0, "old", ""), a.text(1, "new", ""), a.int(2, "count", -1))
	},
	"find": func(r *run, s string, a args) any {
		i := strings.Index(s, a.text(0, "sub", ""))
		if i > 0 {
			i = length(s[:i])
		}
		return int64(i)
	},
	"count": func(r *run, s string, a args) any { return int64(strings.Count(s, a.text(0, "sub", ""))) },
	"join":  func(r *run, s string, a args) any { v, _ := a.take(0, "iterable"); return join(r, s, iterate(r, v)) },
	"removeprefix": func(r *run, s string, a args) any {
		return strings.TrimPrefix(s, a.text(0, "prefix", ""))
	},
	"removesuffix": func(r *run, s string, a args) any {
		return strings.TrimSuffix(s, a.text(0, "suffix", ""))
	},
	"isdigit": func(r *run, s string, a args) any {
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
		r.charge(2 * len(s))
		v := method(r, s, a)
		a.done(name, mostArguments[name])
		return v
	})
}

// strip removes characters from the ends of a string, white space if a does not name them.
func strip(s string, a args, left, right bool) string {
	cut := isSpace
	if v, ok := a.take(0, "chars"); ok && v != nil {
		chars := a.text(0, "chars", "")
		cut = func(r rune) bool { return strings.ContainsRune(chars, r) }
	}
	if left {
		s = strings.TrimLeftFunc(s, cut)
	}
	if right {
		s = strings.TrimRightFunc(s, cut)
	}
	return s
}

func split(r *run, s string, a args) *list {
	r.charge(32 * len(s))
	most := a.int(1, "maxsplit", -1)
	var parts []string
	if sep, ok := a.take(0, "sep"); !ok || sep == nil {
		if most >= 0 {
			fail("split without a separator and with maxsplit is not known")
		}
		parts = strings.FieldsFunc(s, isSpace)
	} else {
		text := a.text(0, "sep", "")
		if text == "" {
			fail("split with an empty separator")
		}
		if most++; most <= 0 {
			most = -1
		}
		parts = strings.SplitN(s, text, most)
	}
	made := &list{}
	for _, p := range parts {
		made.items = append(made.items, p)
	}
	return made
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

func replace(r *run, s, from, to string, count int) string {
	n := strings.Count(s, from)
	if count >= 0 {
		n = min(n, count)
	}
	if n > 0 && len(to) > mostBytes/n {
		panic(failure{errWork})
	}
	r.charge(len(s) + n*len(to))
	return strings.Replace(s, from, to, count)
}

func join(r *run, between string, parts []any) string {
	var b strings.Builder
	for i, p := range parts {
		if i > 0 {
			b.WriteString(between)
		}
		text, ok := p.(string)
		if !ok {
			text = r.str(p)
		}
		r.charge(len(between) + len(text))
		b.WriteString(text)
	}
	return b.String()
}

func capitalize(s string) string {
	for i := range s {
		if i > 0 {
			return strings.ToUpper(s[:i]) + strings.ToLower(s[i:])
		}
	}
	return strings.ToUpper(s)
}
