package tokenizer

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/strictjson"
)

// A pattern finds the positions at which a text is split.
type pattern interface {
	// next returns the first match that begins at or after from. Matches are not empty.
	next(s string, from int) (start, end int, ok bool)
}

// literal matches a fixed text.
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

func (sp splitter) preTokenize(out []piece, p piece) []piece {
	p.plain()
	j := joiner{splitter: sp, piece: &p, out: out}
	read := 0
	for {
		start, end, ok := sp.At.next(p.s, read)
		if !ok {
			break
		}
		if read < start {
			j.add(read, start, sp.Invert)
		}
		j.add(start, end, !sp.Invert)
		read = end
	}
	if read < len(p.s) {
		j.add(read, len(p.s), sp.Invert)
	}
	j.flush()
	return j.out
}

// joiner builds pieces from matches and the text between them.
type joiner struct {
	splitter
	piece      *piece
	out        []piece
	start, end int  // an open piece, which may still grow
	open       bool // there is an open piece
	match      bool // the open piece ends in a match
}

func (j *joiner) add(start, end int, match bool) {
	if j.open && j.grows(match) {
		j.end, j.match = end, match
		return
	}
	j.flush()
	if match && j.Keep == removed {
		return
	}
	j.start, j.end, j.match, j.open = start, end, match, true
}

// grows reports whether the next part belongs to the open piece.
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

func (j *joiner) flush() {
	if j.open {
		j.out = append(j.out, j.piece.slice(j.start, j.end))
		j.open = false
	}
}
