package tokenizer

import (
	"fmt"
)

// vocabulary numbers tokens.
type vocabulary struct {
	ids    map[string]int
	tokens []string
	has    []bool // by id: numbers may be left out
}

// readVocabulary checks the numbers of tokens.
func readVocabulary(ids map[string]int) (vocabulary, error) {
	limit := 16*len(ids) + 4096 // of memory, for a file may say anything
	size := 0
	for token, id := range ids {
		if id < 0 || id > limit {
			return vocabulary{}, fmt.Errorf("token %q has id %d in a vocabulary of %d tokens", token, id, len(ids))
		}
		size = max(size, id+1)
	}
	v := vocabulary{ids, make([]string, size), make([]bool, size)}
	for token, id := range ids {
		if v.has[id] {
			a, b := min(token, v.tokens[id]), max(token, v.tokens[id])
			return vocabulary{}, fmt.Errorf("tokens %q and %q both have id %d", a, b, id)
		}
		v.tokens[id], v.has[id] = token, true
	}
	return v, nil
}

func (v *vocabulary) id(token string) (int, bool) {
	id, ok := v.ids[token]
	return id, ok
}

func (v *vocabulary) token(id int) (string, bool) {
	if id < 0 || id >= len(v.tokens) || !v.has[id] {
		return "", false
	}
	return v.tokens[id], true
}

func (v *vocabulary) size() int { return len(v.ids) }

// trie finds all tokens that a text begins with.
type trie struct {
	// The children of a node stand side by side: those of node n are first[n] to
	// first[n+1]−1, and label has the byte that leads to each.
	first []int32
	label []byte
	id    []int32    // of the token that ends at a node, or none
	begin [256]int32 // children of the root by their byte, 0 where there is none
}

const root = 0

// newTrie makes a trie of tokens in the order of their bytes, all different.
func newTrie(tokens []string, ids []int) *trie {
	t := &trie{label: []byte{0}, id: []int32{none}}
	type group struct{ from, to, depth int } // tokens that share a beginning
	queue := []group{{0, len(tokens), 0}}
	for n := 0; n < len(queue); n++ {
		g := queue[n]
		t.first = append(t.first, int32(len(t.label)))
		i := g.from
		if i < g.to && len(tokens[i]) == g.depth {
			t.id[n] = int32(ids[i])
			i++
		}
		for i < g.to {
			c, from := tokens[i][g.depth], i
			for i < g.to && tokens[i][g.depth] == c {
				i++
			}
			t.label, t.id = append(t.label, c), append(t.id, none)
			queue = append(queue, group{from, i, g.depth + 1})
		}
	}
	t.first = append(t.first, int32(len(t.label)))
	for n := t.first[root]; n < t.first[root+1]; n++ {
		t.begin[t.label[n]] = n
	}
	return t
}

// child returns the node that a byte leads to.
func (t *trie) child(node int32, c byte) (int32, bool) {
	if node == root {
		return t.begin[c], t.begin[c] != root
	}
	from, to := t.first[node], t.first[node+1]
	if to-from > 8 { // the order of labels is that of bytes
		for to-from > 1 {
			middle := int32(uint32(from+to) / 2)
			if t.label[middle] <= c {
				from = middle
			} else {
				to = middle
			}
		}
		return from, t.label[from] == c
	}
	for ; from < to; from++ {
		if t.label[from] == c {
			return from, true
		}
	}
	return 0, false
}

// walk returns the node that a text leads to.
func (t *trie) walk(node int32, s string) (int32, bool) {
	ok := true
	for i := 0; i < len(s) && ok; i++ {
		node, ok = t.child(node, s[i])
	}
	return node, ok
}
