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

// addedToken is a token that is cut out of a text before the model processes the text.
type addedToken struct {
	ID         int    `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"` // only matches if no letter or digit is beside it
	LStrip     bool   `json:"lstrip"`      // includes the white space before it
	RStrip     bool   `json:"rstrip"`      // includes the white space after it
	Normalized bool   `json:"normalized"`  // is searched for in the normalized text
	Special    bool   `json:"special"`     // is left out when decoding
}

func (t addedToken) token() token { return specialToken(t.ID, t.Content) }

// addedTokens has all added tokens of a tokenizer.
type addedTokens struct {
	byID    map[int]addedToken
	ids     map[string]int
	written map[int]string // texts of the tokens that the normalizer changes
	special map[string]bool
	raw     *finder // finds tokens in text before normalization
	normal  *finder // finds tokens in normalized text
	// lead returns the id and the length of the token at the beginning of a text between tokens; n is 0 if
	// there is none, and −1 if it depends on what follows. lead is nil if the tokenizer has no such tokens.
	lead func(text string) (id, n int)
}

// everywhere is the range of a whole text, including texts that a normalizer adds around it.
var everywhere = []Span{{-1, math.MaxInt}}

// spared reports whether a part of a piece overlaps the ranges in which special tokens are treated as text.
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

// newAddedTokens assigns ids to added tokens like the reference: the model's ids, and ids from the model's
// size on for tokens that the model does not have. It returns an error if the ids in the file differ.
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

// finder returns a finder for the tokens that are searched for in normalized text, or for the other tokens.
func (a *addedTokens) finder(normalized bool) (*finder, error) {
	ids, stripsLeft := map[string]int{}, false
	for id, t := range a.byID {
		if t.Normalized != normalized {
			continue
		}
		stripsLeft = stripsLeft || t.LStrip
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
	return &finder{a, newTrie(ids), stripsLeft}, nil
}

// text returns the text of an added token in normalized text.
func (a *addedTokens) text(id int) string {
	if s, ok := a.written[id]; ok {
		return s
	}
	return a.byID[id].Content
}

// split cuts the added tokens out of a text and normalizes the rest. Special tokens within the ranges of
// literal are not cut out.
func (a *addedTokens) split(whole piece, n normalizer, literal []Span) []piece {
	var pieces []piece
	size := 0 // of the normalized pieces
	for _, p := range a.raw.split(nil, whole, literal) {
		if p.token != none {
			pieces = append(pieces, p)
			continue
		}
		if a.lead != nil {
			id, n := a.lead(p.s)
			if p.open && n < 0 {
				continue
			}
			if n > 0 {
				pieces = appendPiece(pieces, p.slice(0, n), id)
				open := p.open
				p = p.slice(n, len(p.s))
				p.open = open
			}
		}
		if n != nil {
			n.normalize(&p)
			size += len(p.s)
			checkGrowth(len(whole.s), size)
		}
		pieces = a.normal.split(pieces, p, literal)
	}
	return pieces
}

// finder finds the leftmost added token, and the longest of those that begin at the same position.
type finder struct {
	tokens     *addedTokens
	trie       *trie
	stripsLeft bool // some token includes the white space before it
}

// next returns the first token at or after a position.
func (f *finder) next(s string, from int) (start, end, id int) {
	for i := from; i < len(s); i++ {
		if f.trie.begin[s[i]] == root {
			continue
		}
		if n, id := f.trie.longest(root, s[i:]); n > 0 {
			return i, i + n, int(id)
		}
	}
	return 0, 0, none
}

// split appends the parts of a piece, with added tokens marked. A nil finder finds no tokens.
func (f *finder) split(out []piece, p piece, literal []Span) []piece {
	if f == nil {
		rest := p.slice(0, len(p.s))
		rest.open = p.open
		return appendPiece(out, rest, none)
	}
	table := classes()
	last := len(p.s) // an open piece may have further tokens from here on
	if p.open {
		for last = 0; last < len(p.s) && !f.trie.begins(p.s[last:]); last++ {
		}
	}
	done := 0
	for start, end, id := f.next(p.s, 0); id != none && start < last; {
		t, resume := f.tokens.byID[id], end
		if !(t.Special && spared(literal, &p, start, end)) && (!t.SingleWord || isAlone(table, p.s, start, end)) {
			if t.LStrip {
				start = done + len(strings.TrimRightFunc(p.s[done:max(start, done)], isSpace))
			}
			if t.RStrip { // white space of an earlier token is not scanned again
				end = len(p.s) - len(strings.TrimLeftFunc(p.s[max(end, done):], isSpace))
			}
			if p.open && end == len(p.s) {
				last = max(start, done)
				break
			}
			if done < start {
				out = appendPiece(out, p.slice(done, start), none)
			}
			if start < end {
				out = appendPiece(out, p.slice(start, end), id)
			}
			done = end
		}
		start, end, id = f.next(p.s, resume)
	}
	rest := p.slice(done, max(last, done))
	if rest.open = p.open; rest.open && f.stripsLeft { // a token after the rest may include white space
		rest.cut(len(strings.TrimRightFunc(rest.s, isSpace)))
	}
	return appendPiece(out, rest, none)
}

// appendPiece appends a piece, unless it is empty.
func appendPiece(out []piece, p piece, id int) []piece {
	if p.s == "" {
		return out
	}
	p.token = id
	return append(out, p)
}

// isAlone reports whether there is no letter or digit directly before or after a part of a text.
func isAlone(table *classTable, s string, start, end int) bool {
	before, n := utf8.DecodeLastRuneInString(s[:start])
	after, m := utf8.DecodeRuneInString(s[end:])
	return (n == 0 || !table.has(before, wordChar)) && (m == 0 || !table.has(after, wordChar))
}
