package tokenizer

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/strictjson"
)

// addedToken is a token that is cut out of a text before the model sees it.
type addedToken struct {
	ID         int    `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"` // not beside letters
	LStrip     bool   `json:"lstrip"`      // takes the white space in front of it
	RStrip     bool   `json:"rstrip"`      // takes the white space behind it
	Normalized bool   `json:"normalized"`  // is looked for in the normalized text
	Special    bool   `json:"special"`     // is left out when decoding
}

func (t addedToken) numbered() numbered { return numbered{t.Content, t.ID} }

// addedTokens are all added tokens of a tokenizer.
type addedTokens struct {
	byID    map[int]addedToken
	ids     map[string]int
	written map[int]string // those that the normalizer changes
	special map[string]bool
	raw     *finder // of tokens that are looked for before normalizing
	normal  *finder // and behind it
	// lead returns the token that a text between tokens begins with and its length, 0 if
	// it begins with none; nil where there are no such tokens.
	lead func(text string) (id, n int)
}

// everywhere is the range of a whole text, and of what a normalizer puts around it.
var everywhere = []Span{{-1, math.MaxInt}}

// spared reports whether a part of a piece is within the ranges in which special tokens are
// text.
func spared(literal []Span, p *piece, start, end int) bool {
	at := p.offsets(start, end)
	return slices.ContainsFunc(literal, func(s Span) bool { return at.Start < s.End && s.Start < at.End })
}

// readAddedTokens reads the added tokens of a tokenizer.json.
func readAddedTokens(raw json.RawMessage, m model, n normalizer) (*addedTokens, error) {
	var list []addedToken
	if !absent(raw) {
		if err := strictjson.Unmarshal(raw, &list); err != nil {
			return nil, fmt.Errorf("added_tokens: %w", err)
		}
	}
	return newAddedTokens(list, m, n)
}

// newAddedTokens numbers added tokens as the reference does: as the model does, and
// from its size on where it does not know them. The file has to agree.
func newAddedTokens(list []addedToken, m model, n normalizer) (*addedTokens, error) {
	a := &addedTokens{
		byID: map[int]addedToken{}, ids: map[string]int{}, written: map[int]string{}, special: map[string]bool{},
	}
	next := m.size()
	for _, t := range list {
		if t.Content == "" {
			return nil, fmt.Errorf("added token %d is empty", t.ID)
		}
		id, known := a.ids[t.Content]
		if !known {
			if id, known = m.id(t.Content); !known {
				id = next
				next++
			}
		}
		if id != t.ID {
			return nil, fmt.Errorf("added token %s has id %d, want %d, which follows from the vocabulary",
				quote.Text(t.Content), t.ID, id)
		}
		a.byID[id], a.ids[t.Content] = t, id
		delete(a.written, id)
		if t.Normalized && n != nil {
			p := newPiece(t.Content)
			if n.normalize(&p); p.s != t.Content {
				a.written[id] = p.s
			}
		}
		if t.Special {
			a.special[t.Content] = true
		}
	}
	var err error
	if a.raw, err = a.finder(false); err == nil {
		a.normal, err = a.finder(true)
	}
	return a, err
}

// finder returns what finds the tokens that are looked for in normalized text, or the
// others.
func (a *addedTokens) finder(normalized bool) (*finder, error) {
	ids := map[string]int{}
	for id, t := range a.byID {
		if t.Normalized != normalized {
			continue
		}
		text := a.text(id)
		if text == "" {
			return nil, fmt.Errorf("added token %s is normalized to nothing", quote.Text(t.Content))
		}
		if other, twice := ids[text]; twice {
			return nil, fmt.Errorf("added tokens %d and %d are both normalized to %s",
				min(id, other), max(id, other), quote.Text(text))
		}
		ids[text] = id
	}
	if len(ids) == 0 {
		return nil, nil
	}
	f := &finder{tokens: a, trie: trieOf(ids)}
	for text := range ids {
		f.begins[text[0]] = true
	}
	return f, nil
}

// text returns an added token as it stands in normalized text.
func (a *addedTokens) text(id int) string {
	if s, ok := a.written[id]; ok {
		return s
	}
	return a.byID[id].Content
}

// split cuts the added tokens out of a text, the special ones only outside of the ranges in
// which they are text, and normalizes the rest.
func (a *addedTokens) split(whole piece, n normalizer, literal []Span) []piece {
	var pieces []piece
	for _, p := range a.raw.split(nil, whole, literal) {
		if p.token != none {
			pieces = append(pieces, p)
			continue
		}
		if a.lead != nil {
			if id, n := a.lead(p.s); n > 0 {
				pieces = appendPiece(pieces, p.slice(0, n), id)
				p = p.slice(n, len(p.s))
			}
		}
		if n != nil {
			n.normalize(&p)
		}
		pieces = a.normal.split(pieces, p, literal)
	}
	return pieces
}

// finder finds added tokens: the leftmost, and of those that begin there the longest.
type finder struct {
	tokens *addedTokens
	trie   *trie
	begins [256]bool // bytes that a token begins with
}

// next returns the first token at or behind a place.
func (f *finder) next(s string, from int) (start, end, id int) {
	for i := from; i < len(s); i++ {
		if !f.begins[s[i]] {
			continue
		}
		if n, id := f.trie.longest(root, s[i:]); n > 0 {
			return i, i + n, int(id)
		}
	}
	return 0, 0, none
}

// split appends the parts of a piece, added tokens marked. A nil finder finds none.
func (f *finder) split(out []piece, p piece, literal []Span) []piece {
	if f == nil {
		return appendPiece(out, p.slice(0, len(p.s)), none)
	}
	table := classes()
	isSpace := func(r rune) bool { return table.has(r, space) }
	done := 0
	for start, end, id := f.next(p.s, 0); id != none; {
		t, behind := f.tokens.byID[id], end
		if !(t.Special && spared(literal, &p, start, end)) && (!t.SingleWord || isAlone(table, p.s, start, end)) {
			if t.LStrip {
				start = done + len(strings.TrimRightFunc(p.s[done:max(start, done)], isSpace))
			}
			if t.RStrip { // white space that an earlier token took is not scanned again
				end = len(p.s) - len(strings.TrimLeftFunc(p.s[max(end, done):], isSpace))
			}
			if done < start {
				out = appendPiece(out, p.slice(done, start), none)
			}
			if start < end {
				out = appendPiece(out, p.slice(start, end), id)
			}
			done = end
		}
		start, end, id = f.next(p.s, behind)
	}
	return appendPiece(out, p.slice(done, len(p.s)), none)
}

// appendPiece appends a piece that is not empty.
func appendPiece(out []piece, p piece, id int) []piece {
	if p.s == "" {
		return out
	}
	p.token = id
	return append(out, p)
}

// isAlone reports whether no letter or digit is beside a part of a text.
func isAlone(table *classTable, s string, start, end int) bool {
	before, n := utf8.DecodeLastRuneInString(s[:start])
	behind, m := utf8.DecodeRuneInString(s[end:])
	return (n == 0 || !table.has(before, wordChar)) && (m == 0 || !table.has(behind, wordChar))
}
