package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/quote"
)

// strip returns a method that removes characters from the ends of a string: the characters in its argument,
// by default white space.
func strip(left, right bool) builtin {
	return builtin{"chars", func(r *run, v any, a args) any {
		t, cut := r.str(v), isSpace
		if a.values[0] != nil {
			chars := a.text(0).s
			cut = func(r rune) bool { return strings.ContainsRune(chars, r) }
		}
		start, end := 0, len(t.s)
		if left {
			start = end - len(strings.TrimLeftFunc(t.s, cut))
		}
		if right {
			end = start + len(strings.TrimRightFunc(t.s[start:], cut))
		}
		return t.slice(start, end)
	}}
}

// split is Python's split. Without a separator it splits at runs of white space, and there are no empty parts; with one,
// even an empty text has a part.
func split(r *run, v any, a args) any {
	t := v.(text)
	most := a.int(1, -1)
	made := &list{}
	add := func(start, end int) {
		r.charge(1, 64)
		made.items = append(made.items, t.slice(start, end))
	}
	if a.values[0] == nil {
		if most >= 0 {
			fail("split without a separator and with maxsplit is not supported")
		}
		for at := 0; ; {
			at = len(t.s) - len(strings.TrimLeftFunc(t.s[at:], isSpace))
			if at == len(t.s) {
				return made
			}
			end := len(t.s)
			if n := strings.IndexFunc(t.s[at:], isSpace); n >= 0 {
				end = at + n
			}
			add(at, end)
			at = end
		}
	}
	sep := a.text(0).s
	if sep == "" {
		fail("split with an empty separator")
	}
	start := 0
	for most != len(made.items) {
		n := strings.Index(t.s[start:], sep)
		if n < 0 {
			break
		}
		add(start, start+n)
		start += n + len(sep)
	}
	add(start, len(t.s))
	return made
}

// replace is Python's replace. The marks of the new text are those of the argument: a template that replaces a word of
// the user by its own has written it.
func replace(r *run, v any, a args) any {
	t, from, to := r.str(v), a.text(0).s, a.text(1)
	w := writer{r: r}
	start := 0
	for i := range strings.Count(t.s, from) {
		at := start
		if from != "" {
			at += strings.Index(t.s[start:], from)
		} else if i > 0 { // to is written before each character, and at the end
			_, n := utf8.DecodeRuneInString(t.s[start:])
			at += n
		}
		w.write(t.slice(start, at))
		w.write(to)
		start = at + len(from)
	}
	w.write(t.slice(start, len(t.s)))
	return w.text()
}

// upper and capitalize convert names such as roles. They refuse letters outside of ASCII: Python's upper case of ß has
// two letters, for example.
func upper(r *run, t text) text {
	r.charge(len(t.s), 1)
	if strings.ContainsFunc(t.s, func(c rune) bool { return c > unicode.MaxASCII }) {
		fail("upper and capitalize of %s are not supported, want ASCII", quote.Text(t.s))
	}
	return text{strings.ToUpper(t.s), t.user}
}

func capitalize(r *run, t text) text {
	first := min(len(t.s), 1)
	return join(r, text{}, upper(r, t).slice(0, first), lower(r, t.slice(first, len(t.s))))
}

// lower also converts messages. It refuses the two letters that Python converts by other rules: the lower case of İ has
// two characters, and that of Σ depends on its place in the word.
func lower(r *run, t text) text {
	if strings.ContainsAny(t.s, "İΣ") {
		fail("lower of İ and Σ is not supported")
	}
	w := writer{r: r}
	done := 0
	for i, c := range t.s {
		to := unicode.ToLower(c)
		if to == c {
			continue
		}
		w.write(t.slice(done, i))
		done = i + utf8.RuneLen(c)
		w.write(written(r, string(to), t.slice(i, done)))
	}
	w.write(t.slice(done, len(t.s)))
	return w.text()
}
