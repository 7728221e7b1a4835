package tokenizer

import (
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/quote"
)

// unigram selects the tokens with the largest sum of scores, which are logarithms of probabilities
// (Viterbi). A character that is not a token may be unknown, at a price.
type unigram struct {
	vocabulary
	scores   []float64
	trie     *trie
	unknown  int     // id, or none
	price    float64 // score of an unknown character
	fallback []int   // as in bpe
}

type unigramSettings struct {
	Vocab    scoredTokens `json:"vocab"`
	Unknown  *int         `json:"unk_id,omitempty"`
	Fallback bool         `json:"byte_fallback,omitempty"`
}

func (s unigramSettings) finish() (model, error) {
	n := len(s.Vocab)
	u := &unigram{scores: make([]float64, n), unknown: none, price: math.Inf(1)}
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

func (u *unigram) size() int { return len(u.tokens) }

// step is the last token of the best path to a position.
type step struct {
	score float64
	from  int32
	id    int32
}

func (u *unigram) tokenize(out []token, p *piece) ([]token, error) {
	p.plain()
	s := p.s
	var short [64]step // enough for most words
	best := short[:]
	if len(s) >= len(best) {
		best = make([]step, len(s)+1)
	}
	best = best[:len(s)+1]
	for i := range best {
		best[i].from = none
	}
	try := func(from, to int, id int32, score float64) {
		score += best[from].score
		if b := &best[to]; b.from == none || score > b.score {
			*b = step{score, int32(from), id}
		}
	}
	for i := 0; i < len(s); {
		_, n := utf8.DecodeRuneInString(s[i:])
		single := false
		for size, id := range u.trie.starts(root, s[i:]) {
			try(i, i+size, id, u.scores[id])
			single = single || size == n
		}
		if !single {
			if u.unknown == none {
				return nil, fmt.Errorf("%s is not in the vocabulary, and there is no unk_id", quote.Text(s[i:i+n]))
			}
			try(i, i+n, int32(u.unknown), u.price)
		}
		i += n
	}
	return u.backtrack(out, s, best), nil
}

// backtrack follows the best path from its end. Consecutive unknown characters become one token.
func (u *unigram) backtrack(out []token, s string, best []step) []token {
	first := len(out)
	for end := len(s); end > 0; {
		b := best[end]
		start := int(b.from)
		for int(b.id) == u.unknown && start > 0 && int(best[start].id) == u.unknown {
			start = int(best[start].from)
		}
		out = u.appendPart(out, s[start:end], start, end)
		end = start
	}
	slices.Reverse(out[first:])
	return out
}

// appendPart appends a token, or the bytes of an unknown token, the last byte first.
func (u *unigram) appendPart(out []token, text string, start, end int) []token {
	if id, ok := u.ids[text]; ok {
		return append(out, token{id, u.tokens[id], start, end})
	}
	if u.fallback != nil {
		n := len(out)
		for i := len(text) - 1; i >= 0; i-- {
			id := u.fallback[text[i]]
			if id == none {
				return append(out[:n], token{u.unknown, text, start, end})
			}
			out = append(out, token{id, u.tokens[id], start, end})
		}
		return out
	}
	return append(out, token{u.unknown, text, start, end})
}
