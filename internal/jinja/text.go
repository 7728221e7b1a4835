package jinja

import (
	"strings"
	"unicode"

	"github.com/attn-go/attn/internal/quote"
)

// strip returns a method that removes characters from the ends of a string: the characters in its argument,
// by default white space.
func strip(left, right bool) builtin {
	return builtin{"chars", func(r *run, v any, a args) any {
		s, cut := r.str(v), isSpace
		if a.values[0] != nil {
			chars := a.text(0)
			cut = func(r rune) bool { return strings.ContainsRune(chars, r) }
		}
		if left {
			s = strings.TrimLeftFunc(s, cut)
		}
		if right {
			s = strings.TrimRightFunc(s, cut)
		}
		return s
	}}
}

func split(r *run, v any, a args) any {
	s := v.(string)
	r.charge(len(s), 32)
	most := a.int(1, -1)
	if a.values[0] == nil {
		if most >= 0 {
			fail("split without a separator and with maxsplit is not supported")
		}
		return listOf(strings.FieldsFunc(s, isSpace))
	}
	sep := a.text(0)
	if sep == "" {
		fail("split with an empty separator")
	}
	if most++; most <= 0 {
		most = -1
	}
	return listOf(strings.SplitN(s, sep, most))
}

func listOf(texts []string) *list {
	made := &list{}
	for _, s := range texts {
		made.items = append(made.items, s)
	}
	return made
}

func replace(r *run, v any, a args) any {
	s, from, to := r.str(v), a.text(0), a.text(1)
	r.charge(len(s), 1)
	r.charge(strings.Count(s, from), len(to))
	return strings.ReplaceAll(s, from, to)
}

func join(r *run, between string, parts []any) string {
	var b strings.Builder
	for i, p := range parts {
		if i > 0 {
			b.WriteString(between)
		}
		text := r.str(p)
		r.charge(len(between)+len(text), 1)
		b.WriteString(text)
	}
	return b.String()
}

// upper and capitalize convert names such as roles. They refuse letters outside of ASCII: Python's upper case of ß has
// two letters, for example.
func upper(r *run, s string) string {
	r.charge(len(s), 1)
	if strings.ContainsFunc(s, func(c rune) bool { return c > unicode.MaxASCII }) {
		fail("upper and capitalize of %s are not supported, want ASCII", quote.Text(s))
	}
	return strings.ToUpper(s)
}

func capitalize(r *run, s string) string {
	first := min(len(s), 1)
	return upper(r, s)[:first] + lower(r, s[first:])
}

// lower also converts messages. It refuses the two letters that Python converts by other rules: the lower case of İ has
// two characters, and that of Σ depends on its place in the word.
func lower(r *run, s string) string {
	r.charge(len(s), 3)
	if strings.ContainsAny(s, "İΣ") {
		fail("lower of İ and Σ is not supported")
	}
	return strings.ToLower(s)
}
