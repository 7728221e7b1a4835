package jinja

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
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
	s, from, to, count := r.str(v), a.text(0), a.text(1), a.int(2, -1)
	n := strings.Count(s, from)
	if count >= 0 {
		n = min(n, count)
	}
	r.charge(len(s), 1)
	r.charge(n, len(to))
	return strings.Replace(s, from, to, count)
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

// upper and lower convert letters like Python, which may change their number: ß becomes SS.
func upper(r *run, s string) string {
	r.charge(len(s), 3)
	return cases.Upper(language.Und).String(s)
}

func lower(r *run, s string) string {
	r.charge(len(s), 3)
	return cases.Lower(language.Und).String(s)
}

func capitalize(r *run, s string) string {
	_, n := utf8.DecodeRuneInString(s)
	first := s[:n]
	small := lower(r, s) // of the whole text, because a sigma has another form at the end of a word
	return cases.Title(language.Und).String(first) + strings.TrimPrefix(small, lower(r, first))
}

// lines splits a text like Python's splitlines.
func lines(r *run, s string) []string {
	r.charge(len(s), 32)
	var list []string
	begin := 0
	for i, c := range s {
		switch c {
		case '\n', '\v', '\f', '\r', 0x1c, 0x1d, 0x1e, 0x85, 0x2028, 0x2029:
		default:
			continue
		}
		if c == '\n' && i > 0 && i == begin && s[i-1] == '\r' { // the second half of a line end
			begin = i + 1
			continue
		}
		list = append(list, s[begin:i])
		begin = i + utf8.RuneLen(c)
	}
	if begin < len(s) {
		list = append(list, s[begin:])
	}
	return list
}

// indent adds spaces before each line except the first.
func indent(r *run, v any, a args) any {
	s, ok := v.(string)
	if !ok {
		fail("indent of %s, want a string", typeName(v))
	}
	width := max(a.int(0, 4), 0)
	first, blank := a.flag(1), a.flag(2)
	r.charge(width, 1)
	by := strings.Repeat(" ", width)
	list := lines(r, s+"\n") // Jinja's quirk: a line end at the end of the text is kept
	for i := range list {
		if i == 0 && first || i > 0 && (blank || list[i] != "") {
			r.charge(len(by)+len(list[i]), 1)
			list[i] = by + list[i]
		}
	}
	return strings.Join(list, "\n")
}

// title capitalizes each word. It splits words like Jinja.
func title(r *run, s string) string {
	ends := func(c rune) bool { return isSpace(c) || strings.ContainsRune("-({[<", c) }
	var b strings.Builder
	for s != "" {
		n := strings.IndexFunc(s, ends)
		if n < 0 {
			n = len(s)
		}
		_, size := utf8.DecodeRuneInString(s[:n])
		b.WriteString(upper(r, s[:size]) + lower(r, s[size:n]))
		_, size = utf8.DecodeRuneInString(s[n:])
		b.WriteString(s[n : n+size])
		s = s[n+size:]
	}
	return b.String()
}
