package tokenizer

import "fmt"

// wordPiece takes the longest token that a word begins with, then the longest that the
// rest begins with, written with a prefix. A word of which some part is not in the
// vocabulary is unknown as a whole.
type wordPiece struct {
	vocabulary
	trie     *trie
	within   int32 // node of the trie for what is not at the beginning of a word
	hasInner bool  // some token has the prefix
	unknown  string
	longest  int // characters of a word
}

func readWordPiece(c component) (model, error) {
	var n struct {
		typed
		Unknown string `json:"unk_token"`
		Prefix  string `json:"continuing_subword_prefix"`
		Longest int    `json:"max_input_chars_per_word"`
	}
	vocab, c, err := c.apart("vocab")
	if err != nil {
		return nil, err
	}
	if err := c.decode(&n, "unk_token", "continuing_subword_prefix", "max_input_chars_per_word"); err != nil {
		return nil, err
	}
	if n.Longest < 0 {
		return nil, c.fail(fmt.Errorf("max_input_chars_per_word is %d, want at least 0", n.Longest))
	}
	ids, err := readIDs(vocab)
	if err != nil {
		return nil, c.fail(fmt.Errorf("vocab: %w", err))
	}
	v, err := readVocabulary(ids)
	if err != nil {
		return nil, c.fail(err)
	}
	return newWordPiece(v, n.Unknown, n.Prefix, n.Longest), nil
}

func newWordPiece(v vocabulary, unknown, prefix string, longest int) *wordPiece {
	m := &wordPiece{vocabulary: v, trie: newTrie(v.all(), v.size()), unknown: unknown, longest: longest}
	m.within, m.hasInner = m.trie.walk(root, prefix)
	return m
}

func (m *wordPiece) tokenize(out []token, p *piece) ([]token, error) {
	p.plain()
	first := len(out)
	chars := 0
	for range p.s {
		chars++
	}
	if chars > m.longest {
		return appendUnknown(out, &m.vocabulary, m.unknown, p)
	}
	for start := 0; start < len(p.s); {
		node, ok := int32(root), true
		if start > 0 {
			node, ok = m.within, m.hasInner
		}
		end := start
		found := int32(none)
		for i := start; i < len(p.s) && ok; i++ {
			if node, ok = m.trie.child(node, p.s[i]); ok && m.trie.id[node] != none {
				found, end = m.trie.id[node], i+1
			}
		}
		if found == none {
			return appendUnknown(out[:first], &m.vocabulary, m.unknown, p)
		}
		out = append(out, token{int(found), m.tokens[found], start, end})
		start = end
	}
	return out, nil
}
