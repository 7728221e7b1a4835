package tokenizer

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/strictjson"
)

// A pattern finds the positions at which a text is split. Matches are not empty.
type pattern interface{ in(p *piece) search }

// A search returns the first match in a piece that begins at or after a position; start and end are the end of the
// piece if there is none. In an open piece, whatever follows, no match begins between from and start. If end is more
// than start, a match begins at start and has the bytes up to end. It ends there if whole.
type search func(from int) (start, end int, whole bool)

// lookAhead is what a pattern needs that knows how far it looks ahead.
type lookAhead interface {
	next(s string, from int) (start, end int, ok bool)
	open(s string, from int) (start, end int, whole bool)
}

// searchIn returns the search of a pattern in a piece.
func searchIn(pat lookAhead, p *piece) search {
	if p.open {
		return func(from int) (start, end int, whole bool) { return pat.open(p.s, from) }
	}
	return func(from int) (start, end int, whole bool) {
		if start, end, ok := pat.next(p.s, from); ok {
			return start, end, true
		}
		return len(p.s), len(p.s), false
	}
}

// scanner is a pattern that examines no more than ahead bytes beyond the end of a match, and no more than ahead bytes
// to find that no match begins at a position.
type scanner struct {
	ahead int
	find  func(s string, from int) (start, end int, ok bool)
}

func (p scanner) next(s string, from int) (start, end int, ok bool) { return p.find(s, from) }

// open uses that in a longer text, a match that ends within the last ahead bytes of s may only become longer, or
// shorter by some of these bytes.
func (p scanner) open(s string, from int) (start, end int, whole bool) {
	start, end, ok := p.next(s, from)
	last := max(from, len(s)-p.ahead)
	for last > from && last < len(s) && !utf8.RuneStart(s[last]) {
		last--
	}
	switch {
	case !ok || start > last:
		return last, last, false
	case end > last:
		return start, max(start, last), false
	}
	return start, end, true
}

func (p scanner) in(text *piece) search { return searchIn(p, text) }

// literal matches a fixed text.
type literal string

func (l literal) next(s string, from int) (start, end int, ok bool) {
	i := -1
	if l != "" {
		i = strings.Index(s[from:], string(l))
	}
	return from + i, from + i + len(l), i >= 0
}

func (l literal) in(p *piece) search { return searchIn(l, p) }

func (l literal) open(s string, from int) (start, end int, whole bool) {
	return scanner{max(len(l)-1, 0), l.next}.open(s, from)
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

func (c oneOf) in(p *piece) search { return searchIn(c, p) }

func (c oneOf) open(s string, from int) (start, end int, whole bool) {
	return scanner{0, c.next}.open(s, from)
}

// wordsAndSigns matches \w+|[^\w\s]+.
var wordsAndSigns = &scanner{1, func(s string, from int) (start, end int, ok bool) {
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
}}

// A behavior determines what happens to the matches when a text is split.
type behavior int

const (
	isolated   behavior = iota // each match is a separate piece
	removed                    // matches are dropped
	contiguous                 // consecutive matches are one separate piece
	withPrevious
	withNext
)

var behaviors = map[string]behavior{
	"Isolated": isolated, "Removed": removed, "Contiguous": contiguous,
	"MergedWithPrevious": withPrevious, "MergedWithNext": withNext,
}

func (b *behavior) read(raw json.RawMessage) error {
	var name string
	if err := strictjson.Unmarshal(raw, &name); err != nil {
		return err
	}
	var ok bool
	if *b, ok = behaviors[name]; !ok {
		return fmt.Errorf("%s, want Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous",
			quote.Text(name))
	}
	return nil
}

// splitter splits pieces at the matches of a pattern.
type splitter struct {
	At   place    `json:"pattern"`
	Keep behavior `json:"behavior"`
	// Invert swaps the matches and the text between them.
	Invert bool `json:"invert"`
}

func (sp splitter) preTokenize(p piece, yield func(piece) bool) bool {
	p.plain()
	j := joiner{splitter: sp, piece: &p, yield: yield}
	find, read, step := sp.At.in(&p), 0, 0
	for whole := true; whole && !j.stopped; step++ {
		p.poll(step)
		var start, end int
		start, end, whole = find(read)
		if read < start {
			j.add(read, start, sp.Invert)
		}
		if start < end {
			j.add(start, end, !sp.Invert)
		}
		read = end
	}
	j.flush(p.open)
	return !j.stopped
}

// joiner builds pieces from matches and the text between them.
type joiner struct {
	splitter
	piece      *piece
	yield      func(piece) bool
	stopped    bool // yield has returned false
	start, end int  // an open piece, which may still grow
	open       bool // there is an open piece
	match      bool // the open piece ends in a match
}

func (j *joiner) add(start, end int, match bool) {
	if j.open && j.grows(match) {
		j.end, j.match = end, match
		return
	}
	j.flush(false)
	if match && j.Keep == removed {
		return
	}
	j.start, j.end, j.match, j.open = start, end, match, true
}

// grows reports whether the next part belongs to the open piece.
// The reference joins a match to the text before it only if that is no match itself, so of several matches in a row
// the first is joined and the others are pieces.
func (j *joiner) grows(match bool) bool {
	switch j.Keep {
	case contiguous:
		return match == j.match
	case withPrevious:
		return match && !j.match
	case withNext:
		return !match && j.match
	}
	return false
}

// flush yields the open piece, if any. grows says that the text after it is not known.
func (j *joiner) flush(grows bool) {
	if j.open && !j.stopped {
		part := j.piece.slice(j.start, j.end)
		part.open = grows
		j.stopped = !j.yield(part)
		j.open = false
	}
}
