package tokenizer

import (
	"encoding/json"
	"fmt"
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
	free       bool   // has no id yet
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
// The reference does not use the ids of the file: a model whose file has others was trained with ids that nobody can
// tell.
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
		if t.free {
			t.ID, t.free = id, false
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
	return &finder{a, newTrie(ids), normalized, stripsLeft}, nil
}

// text returns the text of an added token in normalized text.
func (a *addedTokens) text(id int) string {
	if s, ok := a.written[id]; ok {
		return s
	}
	return a.byID[id].Content
}

// split cuts the added tokens out of a text and normalizes the rest. If l is not nil, the special tokens are
// the markers of l.
func (a *addedTokens) split(whole piece, n normalizer, l *literals) []piece {
	var pieces []piece
	size := 0 // of the normalized pieces
	normalized := func(p piece) piece {
		if n != nil {
			n.normalize(&p)
			size += len(p.s)
			checkGrowth(len(whole.s), size)
		}
		return p
	}
	// Two passes, as in the reference: tokens that are not normalized are cut out of the original text, and those
	// that are, out of the normalized parts between them.
	for _, p := range a.raw.split(nil, whole, l, whole.matches(l.in(&whole), false)) {
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
		known, normal := l.in(&p), normalized(p)
		fixed := normal.normalMatches(known, a.normal)
		if len(fixed) == len(known) {
			pieces = a.normal.split(pieces, normal, l, fixed)
			continue
		}
		// The user's text beside a token changes how the token is normalized.
		done := 0
		for _, m := range p.matches(known, true) {
			pieces = a.normal.split(pieces, normalized(p.slice(done, m.start)), l, nil)
			pieces = appendPiece(pieces, p.slice(m.start, m.end), m.id)
			done = m.end
		}
		pieces = a.normal.split(pieces, normalized(p.slice(done, len(p.s))), l, nil)
	}
	return pieces
}

// finder finds the leftmost added token, and the longest of those that begin at the same position.
type finder struct {
	tokens     *addedTokens
	trie       *trie
	normalized bool // whether it searches in normalized text
	stripsLeft bool // some token includes the white space before it
}

// next returns the first token between two positions.
func (f *finder) next(s string, from, to int) match {
	// Few bytes begin a token, so most of a text is passed with one read of a table.
	for i := from; i < to; i++ {
		if f.trie.begin[s[i]] == root {
			continue
		}
		if n, id := f.trie.longest(root, s[i:to]); n > 0 {
			return match{i, i + n, int(id)}
		}
	}
	return match{id: none}
}

// split appends the parts of a piece, with added tokens marked. A nil finder finds no tokens. If l is not nil, fixed
// are the markers of the piece, and other tokens that it reserves are text; markers that another finder finds are not
// marked.
func (f *finder) split(out []piece, p piece, l *literals, fixed []match) []piece {
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
	done, at := 0, 0
	for {
		to := len(p.s)
		if len(fixed) > 0 {
			to = fixed[0].start
		}
		m := f.next(p.s, at, to)
		isFixed := m.id == none && len(fixed) > 0
		if isFixed {
			m, fixed = fixed[0], fixed[1:]
		}
		if m.id == none || m.start >= last && p.open {
			break
		}
		at = m.end
		t, start, end := f.tokens.byID[m.id], m.start, m.end
		switch {
		case isFixed && t.Normalized != f.normalized:
			continue
		case !isFixed && (l != nil && l.reserves(m.id) || t.SingleWord && !isAlone(table, p.s, start, end)):
			continue
		}
		// White space that a token includes is in its piece, so that it is in the token's range, as in the reference.
		// It cannot be in two tokens: an earlier one has it.
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
			out = appendPiece(out, p.slice(start, end), m.id)
		}
		done = end
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
