package tokenizer

import (
	"cmp"
	"encoding/binary"
	"iter"
	"math/bits"
	"slices"
)

// trie finds all tokens that are prefixes of a text.
// Models look up all tokens that begin at a position, so a map would be asked for each length. Slices instead of
// nodes with pointers need one allocation each, and the garbage collector does not follow them.
type trie struct {
	// The children of a node are consecutive: the children of node n are first[n] to first[n+1]−1. label
	// has the byte that leads to each node.
	first []int32
	label []byte
	id    []int32    // the token that ends at a node, or none
	begin [256]int32 // children of the root by byte, 0 if there is none
}

const root = 0

// trieEntry is a token during construction of a trie. Sorting a large vocabulary is fast because most
// tokens differ in their first eight bytes, and because entries have no pointers.
type trieEntry struct {
	start uint64 // the first eight bytes, zeros after the end
	len   int32
	at    int32 // index of the token in a list
}

// trieEntries are entries in the order of their tokens' bytes.
type trieEntries struct {
	texts []string
	ids   []int32
	list  []trieEntry
}

func newTrieEntries(ids map[string]int) *trieEntries {
	n := len(ids)
	e := &trieEntries{make([]string, 0, n), make([]int32, 0, n), make([]trieEntry, 0, n)}
	for text, id := range ids {
		var start [8]byte
		copy(start[:], text)
		e.list = append(e.list, trieEntry{binary.BigEndian.Uint64(start[:]), int32(len(text)), int32(len(e.texts))})
		e.texts, e.ids = append(e.texts, text), append(e.ids, int32(id))
	}
	e.sort()
	return e
}

// sort orders the entries by the first eight bytes of their tokens (radix sort, from the last of these
// bytes to the first), and then entries with equal bytes by the whole token.
func (e *trieEntries) sort() {
	from, to := e.list, make([]trieEntry, len(e.list))
	for shift := 0; shift < 64; shift += 8 {
		var next [257]int // positions after the entries with smaller bytes
		for i := range from {
			next[int(byte(from[i].start>>shift))+1]++
		}
		for c := range 256 {
			next[c+1] += next[c]
		}
		for i := range from {
			at := &next[byte(from[i].start>>shift)]
			to[*at] = from[i]
			*at++
		}
		from, to = to, from
	}
	for i := 0; i < len(from); {
		first := i
		for i < len(from) && from[i].start == from[first].start {
			i++
		}
		if i-first > 1 {
			slices.SortFunc(from[first:i], func(a, b trieEntry) int { return cmp.Compare(e.texts[a.at], e.texts[b.at]) })
		}
	}
	e.list = from
}

// byteAt returns a byte of the i-th token, which must be long enough.
func (e *trieEntries) byteAt(i, depth int32) byte {
	if depth < 8 {
		return byte(e.list[i].start >> (56 - 8*depth))
	}
	return e.texts[e.list[i].at][depth]
}

// shared returns the length of the common prefix of the i-th token and the one before.
func (e *trieEntries) shared(i int) int32 {
	a, b := e.list[i-1], e.list[i]
	n, most := int32(bits.LeadingZeros64(a.start^b.start)/8), min(a.len, b.len)
	if n == 8 {
		for n < most && e.texts[a.at][n] == e.texts[b.at][n] {
			n++
		}
	}
	return min(n, most)
}

// newTrie builds a trie of tokens with their ids.
func newTrie(ids map[string]int) *trie {
	e := newTrieEntries(ids)
	nodes := 1
	for i := range e.list {
		nodes += int(e.list[i].len)
		if i > 0 {
			nodes -= int(e.shared(i))
		}
	}
	t := &trie{first: make([]int32, 0, nodes+1), label: make([]byte, 1, nodes), id: make([]int32, 1, nodes)}
	t.id[root] = none
	type group struct{ from, to, depth int32 } // tokens with a common prefix
	queue := make([]group, 1, nodes)
	queue[root] = group{0, int32(len(e.list)), 0}
	for n := 0; n < len(queue); n++ {
		g := queue[n]
		t.first = append(t.first, int32(len(t.label)))
		i := g.from
		if i < g.to && e.list[i].len == g.depth {
			t.id[n] = e.ids[e.list[i].at]
			i++
		}
		for i < g.to {
			c, from := e.byteAt(i, g.depth), i
			for i < g.to && e.byteAt(i, g.depth) == c {
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

// child returns the child of a node for a byte.
func (t *trie) child(node int32, c byte) (int32, bool) {
	if node == root {
		return t.begin[c], t.begin[c] != root
	}
	from, to := t.first[node], t.first[node+1]
	if to-from > 8 { // labels are sorted by byte
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

// walk returns the node for a text, starting at a node.
func (t *trie) walk(node int32, s string) (int32, bool) {
	ok := true
	for i := 0; i < len(s) && ok; i++ {
		node, ok = t.child(node, s[i])
	}
	return node, ok
}

// begins reports whether a token begins with all of a text. A nil trie has no tokens.
func (t *trie) begins(s string) bool {
	if t == nil {
		return false
	}
	_, ok := t.walk(root, s)
	return ok
}

// starts yields the tokens that are prefixes of a text, starting at a node, and their lengths.
func (t *trie) starts(node int32, s string) iter.Seq2[int, int32] {
	return func(yield func(n int, id int32) bool) {
		ok := true
		for i := 0; i < len(s); i++ {
			if node, ok = t.child(node, s[i]); !ok {
				return
			}
			if id := t.id[node]; id != none && !yield(i+1, id) {
				return
			}
		}
	}
}

// longest returns the length and the id of the longest token that is a prefix of a text, starting at a
// node; 0 and none if there is none. A nil trie has no tokens.
func (t *trie) longest(node int32, s string) (n int, id int32) {
	id = none
	if t != nil {
		for length, found := range t.starts(node, s) {
			n, id = length, found
		}
	}
	return n, id
}
