package tokenizer

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// TrainWords returns a vocabulary of at most size tokens: the special tokens, then the words with the
// highest counts, ties in the order of their bytes.
func TrainWords(counts map[string]int, special []string, size int) []string {
	words := make([]string, 0, len(counts))
	for word := range counts {
		if !slices.Contains(special, word) {
			words = append(words, word)
		}
	}
	slices.SortFunc(words, func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
	return append(slices.Clone(special), words[:min(max(0, size-len(special)), len(words))]...)
}

// TrainBPE learns a vocabulary of at most size tokens by byte-pair encoding, from words and their counts: the special
// tokens, then the characters of the words, the most frequent first, then the merged tokens. While there is room, it
// merges the two neighbours that occur together most often within words, ties in the order of their bytes. Pairs that
// occur only once are not merged. If words begin with a space, the space is the first character.
//
// merges are pairs of ids, in the order in which they apply. Each token of several characters has one merge.
//
// Source: Sennrich et al., "Neural Machine Translation of Rare Words with Subword Units", 2016, algorithm
// 1. Differs: no mark is added to words; the paper adds one at their ends.
func TrainBPE(counts map[string]int, special []string, size int) (tokens []string, merges [][2]int32) {
	chars := map[string]int{}
	for word, n := range counts {
		for _, r := range word {
			chars[string(r)] += n
		}
	}
	if chars[" "] > 0 {
		chars[" "] = math.MaxInt // the first character, because without the space every text would be wrong
	}
	tokens = TrainWords(chars, special, size)
	l := bpeTrainer{
		tokens: tokens, ids: map[string]int32{},
		counts: map[pair]int{}, places: map[pair][]int32{}, grown: map[pair]bool{},
	}
	for id, token := range tokens {
		l.ids[token] = int32(id)
	}
	for word, n := range counts {
		l.addWord(word, n)
	}
	l.queueGrown()
	for len(l.tokens) < size {
		best, ok := l.pop()
		if !ok {
			break
		}
		if l.apply(best) {
			merges = append(merges, best)
		}
	}
	return l.tokens, merges
}

// pair is a pair of neighbours within a word, by id.
type pair = [2]int32

// bpeTrainer tracks the count and the places of each pair of neighbours, so that a merge only updates the
// affected words.
type bpeTrainer struct {
	tokens []string
	ids    map[string]int32
	words  []bpeWord
	counts map[pair]int
	places map[pair][]int32 // words that have or had the pair
	grown  map[pair]bool    // pairs whose count increased since they were last queued
	queue  heapOf[pairCount]
}

type bpeWord struct {
	symbols []int32 // -1 for a character without an id
	count   int
}

// pairCount is a pair with its count when it was queued, which is an upper bound unless the pair is in grown.
type pairCount struct {
	pair   pair
	tokens [2]string
	count  int
}

// before orders by the highest count, then by the bytes of the tokens.
func (c pairCount) before(d pairCount) bool {
	return cmp.Or(cmp.Compare(d.count, c.count), slices.Compare(c.tokens[:], d.tokens[:])) < 0
}

func (l *bpeTrainer) addWord(word string, count int) {
	w := bpeWord{count: count}
	for _, r := range word {
		id, known := l.ids[string(r)]
		if !known {
			id = -1
		}
		if n := len(w.symbols); n > 0 {
			l.add(pair{w.symbols[n-1], id}, len(l.words), count)
		}
		w.symbols = append(w.symbols, id)
	}
	l.words = append(l.words, w)
}

func (l *bpeTrainer) add(m pair, word, count int) {
	if m[0] < 0 || m[1] < 0 {
		return
	}
	l.counts[m] += count
	if p := l.places[m]; len(p) == 0 || p[len(p)-1] != int32(word) {
		l.places[m] = append(p, int32(word))
	}
	l.grown[m] = true
}

func (l *bpeTrainer) remove(m pair, count int) {
	if m[0] >= 0 && m[1] >= 0 {
		l.counts[m] -= count
	}
}

// apply merges the pair wherever it occurs. It returns false if the merged token already exists: each has one merge.
func (l *bpeTrainer) apply(m pair) bool {
	token := l.tokens[m[0]] + l.tokens[m[1]]
	if _, known := l.ids[token]; known {
		delete(l.counts, m)
		return false
	}
	id := int32(len(l.tokens))
	l.tokens = append(l.tokens, token)
	l.ids[token] = id
	for _, at := range l.places[m] {
		w := &l.words[at]
		old, out := w.symbols, w.symbols[:0] // out never overtakes the symbols still to be read
		joined := false                      // whether the last symbol of out was just merged
		for i := 0; i < len(old); {
			if i+1 == len(old) || old[i] != m[0] || old[i+1] != m[1] {
				if joined {
					l.add(pair{id, old[i]}, int(at), w.count)
				}
				out, joined = append(out, old[i]), false
				i++
				continue
			}
			l.remove(m, w.count)
			if n := len(out); n > 0 {
				if !joined { // otherwise the previous merge has removed it, as its right neighbour
					l.remove(pair{out[n-1], m[0]}, w.count)
				}
				l.add(pair{out[n-1], id}, int(at), w.count)
			}
			if i+2 < len(old) {
				l.remove(pair{m[1], old[i+2]}, w.count)
			}
			out, joined = append(out, id), true
			i += 2
		}
		w.symbols = out
	}
	delete(l.counts, m)
	delete(l.places, m)
	l.queueGrown()
	return true
}

func (l *bpeTrainer) queueGrown() {
	for m := range l.grown {
		l.queue.push(pairCount{m, [2]string{l.tokens[m[0]], l.tokens[m[1]]}, l.counts[m]})
	}
	clear(l.grown)
}

// pop returns the most frequent pair, and false if no pair occurs twice.
func (l *bpeTrainer) pop() (pair, bool) {
	for len(l.queue) > 0 {
		c := l.queue.pop()
		count := l.counts[c.pair]
		if count == c.count && count >= 2 {
			return c.pair, true
		}
		if 2 <= count && count < c.count {
			c.count = count
			l.queue.push(c)
		}
	}
	return pair{}, false
}
