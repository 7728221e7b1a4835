package tokenizer

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// A trie finds each of its tokens and no other text, for any lengths and bytes.
func TestTrie(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, bytes := range []string{"ab", "a\x00\xff", "the quick brown fox\u2581é"} {
		ids := map[string]int{}
		for n := range 2003 {
			text := make([]byte, rng.IntN(23))
			for i := range text {
				text[i] = bytes[rng.IntN(len(bytes))]
			}
			ids[string(text)] = n
		}
		tr := newTrie(ids)
		if got, want := newTrieEntries(ids), slices.Sorted(maps.Keys(ids)); !slices.EqualFunc(got.list, want, func(e trieEntry, text string) bool { return got.texts[e.at] == text }) {
			t.Errorf("tokens of %q are not in order", bytes)
		}
		if got, want := len(tr.label), cap(tr.label); got != want || len(tr.first) != got+1 || len(tr.id) != got {
			t.Errorf("%d nodes, want %d", got, want)
		}
		for text, id := range ids {
			if node, ok := tr.walk(root, text); !ok || tr.id[node] != int32(id) {
				t.Errorf("%q: node %d, %t, want the id %d", text, node, ok, id)
			}
			for _, other := range []string{text + "a", text + "\x00", fmt.Sprint(text, "zz")} {
				_, known := ids[other]
				if node, ok := tr.walk(root, other); known != (ok && tr.id[node] != none) {
					t.Errorf("%q: %t, want %t", other, ok, known)
				}
			}
		}
	}
	if tr := newTrie(nil); len(tr.label) != 1 || tr.id[root] != none {
		t.Errorf("an empty trie has %d nodes", len(tr.label))
	}
}
