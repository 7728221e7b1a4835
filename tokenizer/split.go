package tokenizer

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/quote"
)

// A pattern finds what a text is split at.
type pattern interface {
	// next returns the first match that begins at or behind a place. No match is empty.
	next(s string, from int) (start, end int, ok bool)
}

// literal matches a text.
type literal string

func (l literal) next(s string, from int) (start, end int, ok bool) {
	i := -1
	if l != "" {
		i = strings.Index(s[from:], string(l))
	}
	return from + i, from + i + len(l), i >= 0
}

// oneOf matches each character of a class.
type oneOf class

func (c oneOf) next(s string, from int) (start, end int, ok bool) {
	table := classes()
	for i, r := range s[from:] {
		if table.has(r, class(c)) {
			return from + i, from + i + utf8.RuneLen(r), true
		}
	}
	return 0, 0, false
}

// wordsAndSigns matches \w+|[^\w\s]+.
type wordsAndSigns struct{}

func (wordsAndSigns) next(s string, from int) (start, end int, ok bool) {
	table := classes()
	var kind class
	for i, r := range s[from:] {
		is := table.has(r, wordChar)
		if kind == 0 {
			if table.has(r, space) && !is {
				continue
			}
			start, kind = from+i, space
			if is {
				kind = wordChar
			}
			continue
		}
		if is != (kind == wordChar) || !is && table.has(r, space) {
			return start, from + i, true
		}
	}
	return start, len(s), kind != 0
}

// A behavior says what becomes of the matches when a text is split at them.
type behavior int

const (
	isolated   behavior = iota // pieces of their own
	removed                    // dropped
	contiguous                 // pieces of their own, together with the matches beside them
	withPrevious
	withNext
)

var behaviors = map[string]behavior{
	"Isolated": isolated, "Removed": removed, "Contiguous": contiguous,
	"MergedWithPrevious": withPrevious, "MergedWithNext": withNext,
}

// readBehavior returns a behavior by its name.
func readBehavior(name string) (behavior, error) {
	b, ok := behaviors[name]
	if !ok {
		return 0, fmt.Errorf("behavior %s, want Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous",
			quote.Text(name))
	}
	return b, nil
}

// splitter cuts pieces at the matches of a pattern.
type splitter struct {
	at   pattern
	keep behavior
	// invert takes what is between the matches for matches, and the other way round.
	invert bool
}

func (sp splitter) split(out []piece, p piece) []piece {
	j := joiner{splitter: sp, piece: &p, out: out}
	read := 0
	for {
		start, end, ok := sp.at.next(p.s, read)
		if !ok {
			break
		}
		if read < start {
			j.add(read, start, sp.invert)
		}
		j.add(start, end, !sp.invert)
		read = end
	}
	if read < len(p.s) {
		j.add(read, len(p.s), sp.invert)
	}
	j.flush()
	return j.out
}

// joiner makes pieces of matches and what is between them.
type joiner struct {
	splitter
	piece      *piece
	out        []piece
	start, end int  // a piece that may still grow
	open       bool // there is one
	match      bool // it ends in a match
}

func (j *joiner) add(start, end int, match bool) {
	if j.open && j.grows(match) {
		j.end, j.match = end, match
		return
	}
	j.flush()
	if match && j.keep == removed {
		return
	}
	j.start, j.end, j.match, j.open = start, end, match, true
}

// grows reports whether what comes next belongs to the open piece.
func (j *joiner) grows(match bool) bool {
	switch j.keep {
	case contiguous:
		return match == j.match
	case withPrevious:
		return match && !j.match
	case withNext:
		return !match && j.match
	}
	return false
}

func (j *joiner) flush() {
	if j.open {
		j.out = append(j.out, j.piece.slice(j.start, j.end))
		j.open = false
	}
}
