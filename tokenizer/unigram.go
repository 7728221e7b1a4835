package tokenizer

import (
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/quote"
)

// lattice finds the tokens of a text with the largest sum of scores, which are logarithms of probabilities (Viterbi).
// A character that is not a token is unknown, at a price. Of paths with equal sums, the one whose last token begins
// first is used. Rounding decides which sums are equal, so F is the type in which the reference adds and compares:
// float64 in the library tokenizers, float32 in sentencepiece.
type lattice[F float32 | float64] struct {
	trie    *trie
	scores  []F // by id
	unknown int // id, or none
	price   F   // score of an unknown character
	// most is the largest magnitude of a sum: a larger one is subtracted from all paths that continue after it.
	most F
}

// step is a token of a path.
type step[F float32 | float64] struct {
	score F     // of the path to its end
	at    int32 // its start while the best path is unknown, then its end
	id    int32
}

// path returns the tokens of s. It uses the memory of steps if there is enough. fuse makes one token of consecutive
// unknown characters. If open, more text follows s, and the tokens are those that do not depend on it.
func (l *lattice[F]) path(s string, steps []step[F], fuse, open bool) ([]step[F], error) {
	if len(s) >= len(steps) {
		steps = make([]step[F], len(s)+1)
	}
	steps = steps[:len(s)+1] // the last step of the best path to each position
	for i := range steps {
		steps[i] = step[F]{at: none}
	}
	last := 0 // position that a path reaches
	for i := 0; i < len(s); {
		here := steps[i].score
		if max(here, -here) > l.most {
			for j := range steps[i : last+1] {
				steps[i+j].score -= here
			}
			here = steps[i].score
		}
		_, n := utf8.DecodeRuneInString(s[i:])
		isToken := false
		for size, id := range l.trie.starts(root, s[i:]) {
			score := l.scores[id] + here
			if b := &steps[i+size]; b.at == none || score > b.score {
				*b = step[F]{score, int32(i), id}
			}
			last = max(last, i+size)
			isToken = isToken || size == n
		}
		if !isToken {
			if l.unknown == none {
				return nil, fmt.Errorf("%s is not in the vocabulary, and there is no unk_id", quote.Text(s[i:i+n]))
			}
			score := l.price + here
			if b := &steps[i+n]; b.at == none || score > b.score {
				*b = step[F]{score, int32(i), int32(l.unknown)}
			}
			last = max(last, i+n)
		}
		i += n
	}
	if open {
		s = s[:l.meet(s, steps)]
		steps = steps[:len(s)+1]
	}
	first := len(steps) // of the tokens, which overwrite steps that were read
	for end := int32(len(s)); end > 0; {
		b := steps[end]
		isUnknown := int(b.id) == l.unknown
		if !fuse || !isUnknown || first == len(steps) || steps[first].id != b.id {
			first--
			steps[first] = step[F]{at: end, id: b.id}
		}
		end = b.at
	}
	path := steps[first:]
	if n := len(path) - 1; open && fuse && n >= 0 && int(path[n].id) == l.unknown { // it may become longer
		path = path[:n]
	}
	return path, nil
}

// meet returns the last position that the best path has in common for every text that begins with s. Such a path has the
// best path to some position from which a token extends beyond s, or to the end of s.
func (l *lattice[F]) meet(s string, steps []step[F]) int {
	paths := make([]bool, len(s)+1)
	paths[len(s)] = true
	n := 1
	for i := range s {
		if l.trie.begins(s[i:]) {
			paths[i] = true
			n++
		}
	}
	at := len(s)
	for ; n > 1; at-- {
		if !paths[at] {
			continue
		}
		if before := steps[at].at; paths[before] {
			n--
		} else {
			paths[before] = true
		}
	}
	for !paths[at] {
		at--
	}
	return at
}

// unigram is the model Unigram of a tokenizer.json.
type unigram struct {
	vocabulary
	lattice[float64]
	fallback []int // as in bpe
}

type unigramSettings struct {
	Vocab    scoredTokens `json:"vocab"`
	Unknown  *int         `json:"unk_id,omitempty"`
	Fallback bool         `json:"byte_fallback,omitempty"`
}

func (s unigramSettings) finish() (model, error) {
	n := len(s.Vocab)
	u := &unigram{lattice: lattice[float64]{
		scores: make([]float64, n), unknown: none, price: math.Inf(1), most: math.Inf(1),
	}}
	if s.Unknown != nil {
		if u.unknown = *s.Unknown; u.unknown < 0 || u.unknown >= n {
			return nil, fmt.Errorf("unk_id is %d in a vocabulary of %d tokens", u.unknown, n)
		}
	}
	u.vocabulary = vocabulary{ids: make(map[string]int, n), tokens: make([]string, n), has: make([]bool, n)}
	for i, t := range s.Vocab {
		u.ids[t.token] = i // the last of equal tokens, as in the reference
		u.tokens[i], u.has[i], u.scores[i] = t.token, true, t.score
		u.price = min(u.price, t.score)
	}
	u.price -= 10
	u.trie = newTrie(u.ids)
	if s.Fallback {
		u.fallback = byteTokens(&u.vocabulary)
	}
	return u, nil
}

func (u *unigram) unk() int  { return u.unknown }
func (u *unigram) size() int { return len(u.tokens) }

func (u *unigram) tokenize(out []token, p *piece) ([]token, error) {
	p.plain()
	var short [64]step[float64] // enough for most words
	path, err := u.path(p.s, short[:], true, p.open)
	start := 0
	for _, t := range path {
		out = u.appendPart(out, p.s[start:t.at], start, int(t.at))
		start = int(t.at)
	}
	return out, err
}

// appendPart appends a token, or the bytes of an unknown token.
func (u *unigram) appendPart(out []token, text string, start, end int) []token {
	if id, ok := u.ids[text]; ok {
		return append(out, token{id: id, text: u.tokens[id], at: Span{start, end}})
	}
	n := len(out)
	for i := range len(text) {
		if u.fallback == nil || u.fallback[text[i]] == none {
			return append(out[:n], token{id: u.unknown, text: text, at: Span{start, end}})
		}
		id := u.fallback[text[i]]
		out = append(out, token{id: id, text: u.tokens[id], at: Span{start, end}})
	}
	return out
}
