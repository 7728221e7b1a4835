package tokenizer

import (
	"fmt"
	"unicode/utf8"
)

// wordPiece selects the longest token at the beginning of a word, then the longest at the beginning of the
// rest. Tokens within a word are written with a prefix such as ##. If a part of a word is not in the
// vocabulary, the whole word is unknown.
type wordPiece struct {
	vocabulary
	trie     *trie
	within   int32 // node of the trie for tokens that are not at the beginning of a word
	hasInner bool  // some token has the prefix
	unknown  string
	longest  int // maximum number of characters in a word
}

type wordPieceSettings struct {
	Vocab   vocabulary `json:"vocab"`
	Unknown string     `json:"unk_token"`
	Prefix  string     `json:"continuing_subword_prefix"`
	Longest int        `json:"max_input_chars_per_word"`
}

func (s wordPieceSettings) finish() (model, error) {
	if s.Longest < 0 {
		return nil, fmt.Errorf("max_input_chars_per_word is %d, want at least 0", s.Longest)
	}
	return newWordPiece(s.Vocab, s.Unknown, s.Prefix, s.Longest), nil
}

func (m *wordPiece) unk() int { return m.idOr(m.unknown) }

func newWordPiece(v vocabulary, unknown, prefix string, longest int) *wordPiece {
	m := &wordPiece{vocabulary: v, trie: newTrie(v.ids), unknown: unknown, longest: longest}
	m.within, m.hasInner = m.trie.walk(root, prefix)
	return m
}

func (m *wordPiece) tokenize(out []token, p *piece) ([]token, error) {
	if p.open { // the whole word may be unknown
		return out, nil
	}
	p.plain()
	first := len(out)
	// A limit of the reference, as long words took quadratic time there.
	if utf8.RuneCountInString(p.s) > m.longest {
		return appendUnknown(out, &m.vocabulary, m.unknown, p)
	}
	for start := 0; start < len(p.s); {
		node, ok := int32(root), true
		if start > 0 {
			node, ok = m.within, m.hasInner
		}
		n, id := 0, int32(none)
		if ok {
			n, id = m.trie.longest(node, p.s[start:])
		}
		if n == 0 {
			return appendUnknown(out[:first], &m.vocabulary, m.unknown, p)
		}
		out = append(out, token{id: int(id), text: m.tokens[id], at: Span{start, start + n}})
		start += n
	}
	return out, nil
}
