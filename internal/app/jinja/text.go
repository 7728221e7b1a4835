package jinja

import (
	"strings"
	"unicode/utf8"
)

// text is a string of a template.
type text struct {
	s string
	// user has a byte for each byte of s: theirMark if it comes from the user, ourMark if it comes from the template. It
	// is empty if nothing comes from the user.
	//
	// A text is cut far more often than it is searched for marks, and a string is cut without a copy and without
	// arithmetic. Ranges would have to be moved by each operation.
	user string
}

const ourMark, theirMark = "\x00", "\x01"

// theirs returns a text that comes from the user.
func theirs(r *run, s string) text {
	r.charge(len(s), 1)
	return text{s, strings.Repeat(theirMark, len(s))}
}

// written returns the text of a value, which comes from the user if any part of the value does.
// Which bytes of a list came from which element is not known any more. That all are the user's is the safe answer: a
// special token in them stays text.
func written(r *run, s string, v any) text {
	if fromUser(v) {
		return theirs(r, s)
	}
	return text{s: s}
}

// slice returns the bytes from start to end.
func (t text) slice(start, end int) text {
	part := text{s: t.s[start:end]}
	if t.user != "" {
		part.user = t.user[start:end]
	}
	return part
}

// spans returns the parts that come from the user.
func (t text) spans() (all []Span) {
	for at := 0; ; {
		i := strings.Index(t.user[at:], theirMark)
		if i < 0 {
			return all
		}
		start := at + i
		at = len(t.user)
		if n := strings.Index(t.user[start:], ourMark); n >= 0 {
			at = start + n
		}
		all = append(all, Span{start, at})
	}
}

// writer builds a text, and counts its memory.
type writer struct {
	r       *run
	s, user strings.Builder
}

func (w *writer) write(t text) {
	w.r.charge(len(t.s), 2)
	if t.user != "" {
		w.fill()
		w.user.WriteString(t.user)
	}
	w.s.WriteString(t.s)
}

// fill marks what has no marks as text of the template.
// Texts without marks are common, and get them only if a text with marks comes.
func (w *writer) fill() {
	for w.user.Len() < w.s.Len() {
		w.user.WriteString(ourMark)
	}
}

func (w *writer) text() text {
	if w.user.Len() > 0 {
		w.fill()
	}
	return text{w.s.String(), w.user.String()}
}

// join returns the texts of parts, with another text between them.
func join(r *run, between text, parts ...any) text {
	w := writer{r: r}
	for i, p := range parts {
		if i > 0 {
			w.write(between)
		}
		w.write(r.str(p))
	}
	return w.text()
}

// cutText returns the characters from one index to another.
func cutText(r *run, t text, from, to int) text {
	r.read(len(t.s))
	at, start, end := 0, len(t.s), len(t.s)
	for i := range t.s {
		if at == from {
			start = i
		}
		if at == to {
			end = i
			break
		}
		at++
	}
	return t.slice(start, max(start, end))
}

// reversed returns the characters in reverse order.
func reversed(r *run, t text) text {
	w := writer{r: r}
	for end := len(t.s); end > 0; {
		_, n := utf8.DecodeLastRuneInString(t.s[:end])
		w.write(t.slice(end-n, end))
		end -= n
	}
	return w.text()
}
