package tokenizer

import (
	"fmt"
	"math"
	"math/bits"
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
	longest int // bytes of the longest token, or of a character
	// most is the largest magnitude of a sum: a larger one is subtracted from all paths that continue after it.
	most F
}

// path finds the tokens of s. It returns their end, and for each position at which a token begins the token's length,
// negative if the token is unknown. It uses the memory of steps if there is enough. If open, more text follows s, and
// the tokens are those that do not depend on it.
//
// The first token of a run may depend on whether the length of the run is odd, so a step is kept for every byte. It is
// only a length: the sums, of which no more are needed than a token is long, are in a ring.
func (l *lattice[F]) path(p *piece, steps []int32) ([]int32, int, error) {
	s := p.s
	if len(s) >= len(steps) {
		steps = make([]int32, len(s)+1)
	}
	steps = steps[:len(s)+1] // the last token of the best path to each position; 0 if no path reaches it
	clear(steps)
	var short [64]F
	sums := short[:]
	if n := min(l.longest, len(s)); n >= len(sums) {
		sums = make([]F, 1<<bits.Len(uint(n)))
	}
	mask := len(sums) - 1
	last := 0 // position that a path reaches
	for i := 0; i < len(s); {
		p.poll(i)
		here := sums[i&mask]
		if max(here, -here) > l.most {
			for j := i; j <= last; j++ {
				sums[j&mask] -= here
			}
			here = sums[i&mask]
		}
		reach := func(length int, score F, step int) {
			to := i + length
			if score += here; steps[to] == 0 || score > sums[to&mask] {
				sums[to&mask], steps[to] = score, int32(step)
			}
			last = max(last, to)
		}
		_, n := utf8.DecodeRuneInString(s[i:])
		isToken := false
		for size, id := range l.trie.starts(root, s[i:]) {
			step := size
			if int(id) == l.unknown { // the text of the unknown token
				step = -size
			}
			reach(size, l.scores[id], step)
			isToken = isToken || size == n
		}
		if !isToken {
			if l.unknown == none {
				return nil, 0, fmt.Errorf("%s is not in the vocabulary, and there is no unk_id", quote.Text(s[i:i+n]))
			}
			reach(n, l.price, -n)
		}
		i += n
	}
	end := len(s)
	if p.open {
		end = l.meet(s, steps)
	}
	// Each step now moves from the end of its token to the beginning, in the place of the one that it was found with.
	for at, step := end, steps[end]; at > 0; {
		at -= int(max(step, -step))
		steps[at], step = step, steps[at]
	}
	return steps, end, nil
}

// meet returns the last position that the best path has in common for every text that begins with s. Such a path has the
// best path to some position from which a token extends beyond s, or to the end of s.
func (l *lattice[F]) meet(s string, steps []int32) int {
	// All these paths are followed backwards at the same time, the one that is furthest ahead first, until they are
	// one. Where tokens of a run have equal scores they may never be: the length of the run then decides its first
	// token.
	paths := make([]bool, len(s)+1)
	paths[len(s)] = true
	n := 1
	for i := max(0, len(s)-l.longest); i < len(s); i++ {
		if utf8.RuneStart(s[i]) && l.trie.begins(s[i:]) {
			paths[i] = true
			n++
		}
	}
	at := len(s)
	for ; n > 1; at-- {
		if !paths[at] {
			continue
		}
		if before := at - int(max(steps[at], -steps[at])); paths[before] {
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
		scores: make([]float64, n), unknown: none, price: math.Inf(1), longest: utf8.UTFMax, most: math.Inf(1),
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
		u.longest = max(u.longest, len(t.token))
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
	var short [64]int32 // enough for most words
	steps, end, err := u.path(p, short[:])
	for start, to := 0, 0; start < end && !p.enough(out); start = to {
		if to = start + int(steps[start]); to < start { // consecutive unknown characters are one token
			for to = start; to < end && steps[to] < 0; {
				to -= int(steps[to])
			}
			if p.open && to == end { // there may be more of them
				break
			}
		}
		out = p.drop(u.appendPart(out, p, start, to))
	}
	return out, err
}

// appendPart appends a token, or the bytes of an unknown token.
func (u *unigram) appendPart(out []token, p *piece, start, end int) []token {
	text, at := p.s[start:end], Span{start, end}
	if id, ok := u.ids[text]; ok {
		return append(out, token{id: id, text: u.tokens[id], at: at})
	}
	for i := range len(text) {
		if u.fallback == nil || u.fallback[text[i]] == none {
			return append(out, token{id: u.unknown, text: text, at: at})
		}
	}
	for i := 0; i < len(text) && !p.enough(out); i++ {
		id := u.fallback[text[i]]
		out = append(out, token{id: id, text: u.tokens[id], at: at})
	}
	return out
}
