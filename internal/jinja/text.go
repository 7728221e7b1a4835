package jinja

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

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
	r.charge(len(s), 32)
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

func replace(r *run, s, from, to string, count int) string {
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
		text, ok := p.(string)
		if !ok {
			text = r.str(p)
		}
		r.charge(len(between)+len(text), 1)
		b.WriteString(text)
	}
	return b.String()
}

// upper and lower are those of Python, which know that some letters become two: ß and SS.
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
	small := lower(r, s) // all of it, for a sigma at the end of a word is another one
	return cases.Title(language.Und).String(first) + strings.TrimPrefix(small, lower(r, first))
}

// lines cuts a text as splitlines of Python does.
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
		if c == '\n' && i > 0 && i == begin && s[i-1] == '\r' { // the second half of one end
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

// indent puts spaces in front of lines but the first.
func indent(r *run, s string, a args) string {
	width := max(a.int(0, "width", 4), 0)
	first, blank := a.flag(1, "first"), a.flag(2, "blank")
	r.charge(width, 1)
	by := strings.Repeat(" ", width)
	list := lines(r, s+"\n") // the quirk is Jinja's: it keeps an end of line at the end
	for i := range list {
		if i == 0 && first || i > 0 && (blank || list[i] != "") {
			r.charge(len(by)+len(list[i]), 1)
			list[i] = by + list[i]
		}
	}
	return strings.Join(list, "\n")
}

// title begins each word with a capital letter, as Jinja cuts words.
func title(r *run, s string) string {
	ends := func(c rune) bool { return isSpace(c) || strings.ContainsRune("-({[<", c) }
	var b strings.Builder
	for s != "" {
		if i := strings.IndexFunc(s, func(c rune) bool { return !ends(c) }); i != 0 {
			if i < 0 {
				i = len(s)
			}
			b.WriteString(s[:i])
			s = s[i:]
			continue
		}
		i := strings.IndexFunc(s, ends)
		if i < 0 {
			i = len(s)
		}
		_, n := utf8.DecodeRuneInString(s)
		b.WriteString(upper(r, s[:n]) + lower(r, s[n:i]))
		s = s[i:]
	}
	return b.String()
}
