package tokenizer

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// plainBPE is algorithm 1 of Sennrich et al., unoptimized: it counts all pairs again for every merge.
func plainBPE(list, special []string, size int) (tokens []string, merges [][2]string) {
	var words [][]string
	chars := map[string]int{}
	for _, word := range list {
		words = append(words, strings.Split(word, ""))
		for _, r := range word {
			chars[string(r)]++
		}
	}
	chars[" "] = 1 << 30
	tokens = TrainWords(chars, special, size)
	for len(tokens) < size {
		counts := map[[2]string]int{}
		for _, w := range words {
			for i := 1; i < len(w); i++ {
				counts[[2]string{w[i-1], w[i]}]++
			}
		}
		var best [2]string
		for p, n := range counts {
			if c := cmp.Or(cmp.Compare(n, counts[best]), strings.Compare(best[0], p[0]), strings.Compare(best[1], p[1])); c > 0 {
				best = p
			}
		}
		if counts[best] < 2 {
			break
		}
		for k, w := range words {
			var out []string
			for i := 0; i < len(w); i++ {
				if i+1 < len(w) && w[i] == best[0] && w[i+1] == best[1] {
					out = append(out, best[0]+best[1])
					i++
				} else {
					out = append(out, w[i])
				}
			}
			words[k] = out
		}
		if token := best[0] + best[1]; !slices.Contains(tokens, token) {
			tokens, merges = append(tokens, token), append(merges, best)
		}
	}
	return tokens, merges
}

// Few letters give many overlaps, several ways to build a token, and pairs that reappear after they were
// merged.
func TestTrainBPEAgainstPlain(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	special := []string{"<pad>", "<unk>"}
	for round := range 400 {
		alphabet := []rune("aabcdé")[:2+rng.IntN(5)]
		words := make([]string, 1+rng.IntN(30))
		counts := map[string]int{}
		for i := range words {
			words[i] = " "
			for range rng.IntN(9) {
				words[i] += string(alphabet[rng.IntN(len(alphabet))])
			}
			counts[words[i]]++
		}
		size := 10 + rng.IntN(150) // below 10 the plain version would have to handle characters without an id
		tokens, pairs := TrainBPE(counts, special, size)
		var merges [][2]string
		for _, p := range pairs {
			merges = append(merges, [2]string{tokens[p[0]], tokens[p[1]]})
		}
		want, wantMerges := plainBPE(words, special, size)
		if !slices.Equal(tokens, want) || !slices.Equal(merges, wantMerges) {
			t.Fatalf("round %d, size %d, words %q:\n got %q and %q\nwant %q and %q",
				round, size, words, tokens, merges, want, wantMerges)
		}
	}
}

func TestTrainWords(t *testing.T) {
	counts := map[string]int{"b": 2, "a": 2, "c": 5, "<unk>": 9}
	for size, want := range []string{"<unk>", "<unk>", "<unk> c", "<unk> c a", "<unk> c a b", "<unk> c a b"} {
		if got := strings.Join(TrainWords(counts, []string{"<unk>"}, size), " "); got != want {
			t.Errorf("at most %d words are %s, want %s", size, got, want)
		}
	}
}

// This package can read a trained tokenizer, and encodes the text of each token as that token.
func TestTrainBPEIsRead(t *testing.T) {
	tokens, pairs := TrainBPE(map[string]int{"low": 5, "lower": 2, "newest": 6, "widest": 3}, []string{"<unk>"}, 19)
	merges := make(mergeList, len(pairs))
	for i, p := range pairs {
		merges[i] = mergePair{tokens[p[0]], tokens[p[1]]}
	}
	ids := map[string]int{}
	for id, token := range tokens {
		ids[token] = id
	}
	var err error
	m := new(bpe)
	if m.vocabulary, err = newVocabulary(ids); err != nil {
		t.Fatal(err)
	}
	if err := m.setMerges(merges); err != nil {
		t.Fatal(err)
	}
	m.setChars()
	for id, token := range tokens[1:] {
		p := newPiece(token)
		list, err := m.tokenize(nil, &p)
		if err != nil || len(list) != 1 || list[0].id != id+1 {
			t.Errorf("token %d, %q, is cut into %v, %v", id+1, token, list, err)
		}
	}
}
