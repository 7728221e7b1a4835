package tokenizer

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/quote"
)

// pieceModel is the common part of SentencePiece models. It gives exactly the tokens of the library
// sentencepiece, whose arithmetic and treatment of spaces differ from those of tokenizer.json: see unigram.
// Files with the same pieces can give other tokens as a tokenizer.json, which a converter wrote: equal sums are
// decided by another arithmetic, and unknown characters are joined at another place.
type pieceModel struct {
	vocabulary
	pieces   []filePiece // by id
	unknown  int         // id
	fallback []int       // as in bpe
	user     *trie       // pieces that are always one token, or nil
}

// newPieceModel checks the pieces of a file.
func newPieceModel(f *pieceFile) (*pieceModel, error) {
	n := len(f.pieces)
	m := &pieceModel{
		vocabulary: vocabulary{ids: make(map[string]int, n), tokens: make([]string, n), has: make([]bool, n)},
		pieces:     f.pieces, unknown: none,
	}
	user := map[string]int{}
	for id, p := range f.pieces {
		if other, twice := m.ids[p.text]; twice {
			return nil, fmt.Errorf("pieces %d and %d are both %s", other, id, quote.Text(p.text))
		}
		m.ids[p.text], m.tokens[id], m.has[id] = id, p.text, true
		switch p.kind {
		case userPiece:
			user[p.text] = id
		case unknownPiece:
			if m.unknown != none {
				return nil, fmt.Errorf("pieces %d and %d are both unknown pieces", m.unknown, id)
			}
			m.unknown = id
		case bytePiece:
			if _, ok := byteOf(p.text); !ok || !f.fallback {
				return nil, fmt.Errorf("piece %d, %s, is a byte, want byte_fallback and a text like <0xE4>", id, quote.Text(p.text))
			}
		}
	}
	if m.unknown == none {
		return nil, errors.New("has no unknown piece")
	}
	if f.fallback {
		m.fallback = byteTokens(&m.vocabulary)
		for b, id := range m.fallback {
			if id == none || m.pieces[id].kind != bytePiece {
				return nil, fmt.Errorf("has byte_fallback, but no piece for the byte 0x%02X", b)
			}
		}
	}
	if len(user) > 0 {
		m.user = newTrie(user)
	}
	return m, nil
}

func (m *pieceModel) unk() int { return m.unknown }

// inText reports whether a piece can occur in a text.
func (m *pieceModel) inText(id int) bool {
	switch m.pieces[id].kind {
	case normalPiece, userPiece, unusedPiece:
		return true
	}
	return false
}

// appendPart appends a part of a text. Consecutive unknown parts become one token. With byte fallback, an
// unknown part becomes one token per byte, each with the range of the whole part.
func (m *pieceModel) appendPart(out []token, first int, s string, start, end, id int) []token {
	if id != m.unknown {
		return append(out, token{id: id, text: m.tokens[id], at: Span{start, end}})
	}
	if m.fallback != nil {
		for i := start; i < end; i++ {
			id := m.fallback[s[i]]
			out = append(out, token{id: id, text: m.tokens[id], at: Span{start, end}})
		}
		return out
	}
	if n := len(out); n > first && out[n-1].id == m.unknown {
		start = out[n-1].at.Start
		out = out[:n-1]
	}
	return append(out, token{id: m.unknown, text: s[start:end], at: Span{start, end}})
}

// certain removes an unknown token at the end of an open piece, because it may become longer.
func (m *pieceModel) certain(out []token, first int, p *piece) []token {
	if n := len(out) - 1; p.open && n >= first && out[n].id == m.unknown {
		return out[:n]
	}
	return out
}

// pieceUnigrams selects the pieces with the largest sum of scores.
type pieceUnigrams struct {
	*pieceModel
	lattice[float32]
}

func newPieceUnigrams(m *pieceModel) *pieceUnigrams {
	l := lattice[float32]{
		scores: make([]float32, len(m.tokens)), unknown: m.unknown, price: math.MaxFloat32,
		longest: utf8.UTFMax, most: 100000,
	}
	found := map[string]int{}
	for id, p := range m.pieces {
		l.scores[id] = p.score
		switch p.kind {
		case normalPiece:
			l.price = min(l.price, p.score)
		case userPiece: // better than paths of normal pieces, whose scores are negative
			l.scores[id] = float32(0.1 * float64(len(p.text)-1))
		}
		if m.inText(id) && p.kind != unusedPiece {
			found[p.text] = id
			l.longest = max(l.longest, len(p.text))
		}
	}
	l.price -= 10
	l.trie = newTrie(found)
	return &pieceUnigrams{m, l}
}

func (u *pieceUnigrams) tokenize(out []token, p *piece) ([]token, error) {
	steps, end, err := u.path(p, nil)
	first := len(out)
	for start := 0; start < end && !p.enough(out); {
		to, id := start-int(steps[start]), int32(u.pieceModel.unknown)
		if to < start {
			to = start + int(steps[start])
			_, id = u.trie.longest(root, p.s[start:to])
		}
		before := p.dropped
		out = p.drop(u.appendPart(out, first, p.s, start, to, int(id)))
		first = max(first-(p.dropped-before), 0)
		start = to
	}
	return u.certain(out, first, p), err
}

// pieceJoins merges two neighbours whose concatenation is a piece: first the pair with the highest score,
// the leftmost of several.
type pieceJoins struct {
	*pieceModel
	ranks     []int32 // by id: the higher the score of a piece, the lower its rank
	longest   int     // length of the longest piece
	hasUnused bool    // some piece is only a step on the way to longer ones
}

func newPieceJoins(m *pieceModel) *pieceJoins {
	j := &pieceJoins{pieceModel: m, ranks: make([]int32, len(m.tokens))}
	for id, p := range m.pieces {
		j.longest = max(j.longest, len(m.tokens[id]))
		j.hasUnused = j.hasUnused || p.kind == unusedPiece
		bits := int32(math.Float32bits(p.score)) // the library compares bits: −0 is less than 0
		j.ranks[id] = ^(bits ^ bits>>31&math.MaxInt32)
	}
	return j
}

// part returns the id of a text that can be a piece within a larger text.
func (j *pieceJoins) part(text string) (int, bool) {
	id, ok := j.ids[text]
	return id, ok && j.inText(id)
}

// whole is the id of a symbol that is a user-defined piece, which is not merged.
const whole = -2

// joined is the number of bytes that pieceJoins merges at a time, if the tokens of a beginning do not depend on the rest.
const joined = 1 << 14

func (j *pieceJoins) tokenize(out []token, p *piece) ([]token, error) {
	first, done := len(out), 0
	list := symbols{in: p}
	for n := joined; n < len(p.s)-done && !j.hasUnused && !p.enough(out); {
		size := 0 // of the beginning that no merge joins with the rest
		before := p.dropped
		n = beginning(p.s[done:], n)
		if out, size = j.join(out, first, &list, p.s, done, done+n, true); size == 0 {
			n *= 4
		}
		done += size
		first = max(first-(p.dropped-before), 0)
	}
	if !p.open || !j.hasUnused { // how an unused piece is split depends on the whole text
		out, _ = j.join(out, first, &list, p.s, done, len(p.s), p.open)
	}
	return j.certain(out, first, p), nil
}

// join appends the tokens of s[from:to], and returns their length. If open, they are those that do not depend on what
// follows.
func (j *pieceJoins) join(
	out []token, first int, list *symbols, s string, from, to int, open bool,
) ([]token, int) {
	text := s[from:to]
	end := len(text) // an open text is known as far as a piece from there on can be longer than the text
	if open {
		end -= j.longest
	}
	list.list, list.ahead = slices.Grow(list.list[:0], utf8.RuneCountInString(text)), nil
	for at := 0; at < end; {
		list.in.poll(at)
		n, _ := j.user.longest(root, text[at:])
		id := int32(whole)
		if n == 0 {
			_, n = utf8.DecodeRuneInString(text[at:])
			id = int32(j.unknown) // looked up at the end
		}
		list.add(id, int32(n))
		at += n
	}
	if open {
		list.ahead = func(last *symbol) (lowest int32, ok bool) {
			for n := int(last.len) + 1; n <= j.longest && last.id != whole; n++ {
				if id, isPiece := j.part(text[last.at : int(last.at)+n]); isPiece && (!ok || j.ranks[id] < lowest) {
					lowest, ok = j.ranks[id], true
				}
			}
			return lowest, ok
		}
	}
	// An unused piece may be formed on the way to a longer one, and is taken apart again if it stays. How depends on
	// how it was formed first, which the library also remembers by text and not by place.
	taken := map[string]int32{} // for each unused piece, the length of its left part
	list.joinAll(func(a, b *symbol, again bool) (merge, bool) {
		if a.id == whole || b.id == whole {
			return merge{}, false
		}
		both := text[a.at : a.at+a.len+b.len]
		id, ok := j.part(both)
		if !ok {
			return merge{}, false
		}
		if j.pieces[id].kind == unusedPiece && !again {
			taken[both] = a.len
		}
		return merge{j.ranks[id], int32(id)}, true
	})
	size := 0
	for i, part := range list.list {
		list.in.poll(i)
		if list.in.enough(out) {
			break
		}
		start := from + int(part.at)
		before := list.in.dropped
		out = list.in.drop(j.appendUsed(out, first, s, start, start+int(part.len), taken, 0))
		first = max(first-(list.in.dropped-before), 0)
		size = int(part.at + part.len)
	}
	return out, size
}

// appendUsed appends a part of a text. Unused pieces are split again into the parts they were merged from. An unused
// piece of one character is unknown.
func (j *pieceJoins) appendUsed(
	out []token, first int, s string, start, end int, taken map[string]int32, depth int,
) []token {
	id, ok := j.part(s[start:end])
	if !ok {
		id = j.unknown
	} else if j.pieces[id].kind == unusedPiece && depth <= 100 { // as in the library
		if n, ok := taken[s[start:end]]; ok {
			out = j.appendUsed(out, first, s, start, start+int(n), taken, depth+1)
			return j.appendUsed(out, first, s, start+int(n), end, taken, depth+1)
		}
		id = j.unknown
	}
	return j.appendPart(out, first, s, start, end, id)
}

// pieceNormalizer normalizes texts by the rules of a file.
type pieceNormalizer struct {
	pieceRules
	user   *trie // texts that are not changed
	suffix bool  // the space is added after the text instead of before it
	// firstOnly adds a space only before the piece at the beginning of a text, and not after a special token.
	firstOnly bool
	decodes   bool // it normalizes decoded texts, which cannot fail: see pieceRules.checkDecoding
}

const metaSpace = "▁"

func (n *pieceNormalizer) normalize(p *piece) {
	s := p.s
	if s == "" {
		return
	}
	original := func(i int) int32 {
		if i < len(s) {
			return p.align(i).start
		}
		return p.align(len(s) - 1).end
	}
	done := 0
	step := 0
	if n.extraSpaces {
		for done < len(s) {
			p.poll(step)
			step++
			text, size, more := n.next(s[done:])
			if text != " " || p.open && more {
				break
			}
			done += size
		}
	}
	if done == len(s) {
		p.cut(0)
		return
	}
	w := pieceWriter{space: " "}
	if n.escape {
		w.space = metaSpace
	}
	w.s.Grow(len(s) + len(s)/4 + 4)
	dummy := n.dummyPrefix && (!n.firstOnly || p.base == 0)
	if dummy && !n.suffix {
		w.put(" ", original(done))
	}
	// Several spaces become one, and none stays at the ends. A rule may itself write a space, so this is decided for
	// what is written and not for what is read.
	for wasSpace := n.extraSpaces; done < len(s); step++ {
		p.poll(step)
		text, size, more := n.next(s[done:])
		if p.open && more {
			break
		}
		from := original(done)
		if wasSpace {
			text = strings.TrimLeft(text, " ")
		}
		if text != "" {
			wasSpace = n.extraSpaces && strings.HasSuffix(text, " ")
		}
		if !n.decodes {
			checkGrowth(len(s), w.s.Len()+len(text))
		}
		w.put(text, from)
		done += size
	}
	kept, end := w.s.String(), original(done)
	// Removed characters belong to the range of the character before them, which is therefore not known for the last
	// one.
	if p.open && kept != "" { // the last character ends where the next one begins that is not removed
		_, size := utf8.DecodeLastRuneInString(kept)
		kept = kept[:len(kept)-size]
		end = w.at[len(kept)]
	}
	if n.extraSpaces {
		for strings.HasSuffix(kept, w.space) {
			kept = kept[:len(kept)-len(w.space)]
			end = w.at[len(kept)]
		}
	}
	at := w.at[:len(kept)]
	if dummy && n.suffix && !p.open {
		at = appendTimes(at, end, len(w.space))
		kept += w.space
	}
	at = append(at, end)
	p.s, p.at = kept, make([]span, len(kept))
	for i := range p.at {
		p.at[i] = span{at[i], at[i+1]}
	}
}

// pieceWriter builds a normalized text.
type pieceWriter struct {
	space string // replacement of a space
	s     strings.Builder
	at    []int32 // for each byte, its position in the original text
}

func (w *pieceWriter) put(text string, from int32) {
	if text == " " {
		text = w.space // the common case, without a copy
	}
	text = strings.ReplaceAll(text, " ", w.space)
	w.s.WriteString(text)
	w.at = appendTimes(w.at, from, len(text))
}

// next returns the normalized form of the beginning of a text, and the length of that beginning. more reports whether
// the beginning could be longer if the text were longer.
func (n *pieceNormalizer) next(s string) (text string, size int, more bool) {
	more = n.user.begins(s)
	if size, _ := n.user.longest(root, s); size > 0 {
		return s[:size], size, more
	}
	text, size, longer := n.chars.match(s, true)
	if size == 0 {
		_, size = utf8.DecodeRuneInString(s)
		text = s[:size]
	}
	return text, size, more || longer
}
