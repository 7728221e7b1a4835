package seq2seq

import (
	"cmp"
	"container/heap"
	"fmt"
	"iter"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/quote"
)

// maxWord is the longest word in characters; a longer run is cut. That bounds the work for scripts without spaces and
// for hostile text, and costs nothing elsewhere: the parts join again without a space between them.
const maxWord = 64

const (
	zeroWidthNonJoiner = '\u200c'
	zeroWidthJoiner    = '\u200d'
)

// collapse returns text with a space before each word and no other white space, in valid UTF-8.
func collapse(text string) string {
	fields := strings.Fields(strings.ToValidUTF8(text, "\uFFFD"))
	if len(fields) == 0 {
		return ""
	}
	return " " + strings.Join(fields, " ")
}

// split cuts a collapsed text; all pieces together are the text, but for the space before the first character of Chars.
//
// A word is a run of letters and digits; all else stands alone. An apostrophe between letters goes with what is before
// it: l' homme, don' t. Chinese and Japanese have no spaces, so each of their characters is a word, whereas BPE gets the
// whole run to find pieces in. Marks and joiners stay with what they change, so emoji sequences hold together.
func split(text string, units Units) iter.Seq[string] {
	return func(yield func(string) bool) {
		var last rune
		var lastKind kind
		start, length := 0, 0 // of the piece at hand; the length does not count the space
		for i, r := range text {
			k := kindOf(r)
			var cut bool
			switch {
			case i == 0:
			case units == Chars, k == kindSpace, length >= maxWord:
				cut = true
			case lastKind == kindSpace, last == zeroWidthJoiner:
			case k == kindExtend:
				k = lastKind
			case k == kindLetter:
				cut = lastKind != kindLetter
			case k == kindIdeograph:
				cut = lastKind != kindIdeograph || units == Words
			case (r == '\'' || r == '’') && unicode.IsLetter(last):
				after, _ := utf8.DecodeRuneInString(text[i+utf8.RuneLen(r):])
				cut = !unicode.IsLetter(after)
			default:
				cut = true
			}
			if cut {
				if (units != Chars || start > 0) && !yield(text[start:i]) {
					return
				}
				start, length = i, 0
			}
			last, lastKind = r, k
			if k != kindSpace {
				length++
			}
		}
		if text != "" {
			yield(text[start:])
		}
	}
}

type kind int

const (
	kindSpace kind = iota
	kindLetter
	kindIdeograph
	kindExtend // belongs to the character before
	kindOther
)

func kindOf(r rune) kind {
	switch {
	case r == ' ':
		return kindSpace
	case r < utf8.RuneSelf:
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' {
			return kindLetter
		}
		return kindOther
	case unicode.IsMark(r), r == zeroWidthJoiner, r == zeroWidthNonJoiner, '\U0001F3FB' <= r && r <= '\U0001F3FF': // skin tones
		return kindExtend
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana), r == 'ー': // the sign for length has no script
		return kindIdeograph
	case unicode.IsLetter(r), unicode.IsNumber(r):
		return kindLetter
	}
	return kindOther
}

// merge is two pieces, by id, that become one where they are neighbours within a word.
type merge struct{ left, right int32 }

// rule is what a merge gives, and its place in the order in which merges apply.
type rule struct{ rank, id int32 }

// makeRules indexes the merges and proves that they build all pieces from single characters, each from earlier ones.
func (v *Vocabulary) makeRules() (map[merge]rule, error) {
	made := make([]bool, len(v.pieces))
	for id, piece := range v.pieces {
		made[id] = id >= specials && utf8.RuneCountInString(piece) == 1
	}
	rules := make(map[merge]rule, len(v.merges))
	for i, m := range v.merges {
		if !made[m.left] || !made[m.right] {
			return nil, fmt.Errorf("merge %d joins pieces %d and %d, not both of which exist by then", i, m.left, m.right)
		}
		id, known := v.ids[v.pieces[m.left]+v.pieces[m.right]]
		if !known {
			return nil, fmt.Errorf("merge %d of %s and %s gives no piece",
				i, quote.Text(v.pieces[m.left]), quote.Text(v.pieces[m.right]))
		}
		if _, twice := rules[m]; twice {
			return nil, fmt.Errorf("merge %d is there twice", i)
		}
		rules[m] = rule{rank: int32(i), id: id}
		made[id] = true
	}
	for id := specials; id < len(made); id++ {
		if !made[id] {
			return nil, fmt.Errorf("no merge gives piece %d, %s", id, quote.Text(v.pieces[id]))
		}
	}
	return rules, nil
}

// appendMerged appends the ids of one word: its characters, joined by the rule learnt first as long as one applies.
func (v *Vocabulary) appendMerged(ids []int, word string) []int {
	none := rule{rank: math.MaxInt32}
	var symbolsOf [maxWord + 1]int32
	var rulesOf [maxWord + 1]rule // [i] is for symbols i and i+1
	symbols, rules := symbolsOf[:0], rulesOf[:0]
	find := func(i int) rule {
		if i+1 < len(symbols) {
			if r, found := v.rules[merge{symbols[i], symbols[i+1]}]; found {
				return r
			}
		}
		return none
	}
	for i, r := range word {
		id, known := v.ids[word[i:i+utf8.RuneLen(r)]]
		if !known {
			id = UNK
		}
		symbols = append(symbols, id)
	}
	for i := range symbols {
		rules = append(rules, find(i))
	}
	for {
		first, at := none, 0
		for i, r := range rules {
			if r.rank < first.rank {
				first, at = r, i
			}
		}
		if first == none {
			break
		}
		symbols[at] = first.id
		symbols = append(symbols[:at+1], symbols[at+2:]...)
		rules = append(rules[:at+1], rules[at+2:]...)
		rules[at] = find(at)
		if at > 0 {
			rules[at-1] = find(at - 1)
		}
	}
	for _, id := range symbols {
		ids = append(ids, int(id))
	}
	return ids
}

// learnBPE appends to pieces the characters of the words and then what merging gives, up to size in all.
func learnBPE(pieces []string, words map[string]int, size int) ([]string, []merge) {
	chars := map[string]int{}
	for word, n := range words {
		for _, r := range word {
			chars[string(r)] += n
		}
	}
	if len(chars) > 0 {
		chars[" "] = math.MaxInt // first of all, because losing the spaces would spoil every text
	}
	pieces = append(pieces, mostFrequent(chars, size-len(pieces))...)
	l := bpeLearner{pieces: pieces, ids: map[string]int32{}, counts: map[merge]int{}, places: map[merge][]int32{}, grown: map[merge]bool{}}
	for id := specials; id < len(pieces); id++ {
		l.ids[pieces[id]] = int32(id)
	}
	for word, n := range words {
		l.addWord(word, n)
	}
	l.queueGrown()

	var merges []merge
	for len(l.pieces) < size {
		best, ok := l.pop()
		if !ok {
			break
		}
		if l.apply(best) {
			merges = append(merges, best)
		}
	}
	return l.pieces, merges
}

// bpeLearner keeps how often each pair of neighbours occurs and where, so that a merge costs as much as it changes.
type bpeLearner struct {
	pieces []string
	ids    map[string]int32
	words  []bpeWord
	counts map[merge]int
	places map[merge][]int32 // words that have, or once had, the pair
	grown  map[merge]bool    // pairs that were counted up since they were last queued
	queue  []candidate
}

type bpeWord struct {
	symbols []int32 // -1 for a character without an id
	count   int
}

// candidate is a pair with its count at the time it was queued, an upper bound as long as it is not in grown.
type candidate struct {
	merge
	count int
}

func (l *bpeLearner) addWord(word string, count int) {
	w := bpeWord{count: count}
	for _, r := range word {
		id, known := l.ids[string(r)]
		if !known {
			id = -1
		}
		if n := len(w.symbols); n > 0 {
			l.add(merge{w.symbols[n-1], id}, len(l.words), count)
		}
		w.symbols = append(w.symbols, id)
	}
	l.words = append(l.words, w)
}

func (l *bpeLearner) add(m merge, word, count int) {
	if m.left < 0 || m.right < 0 {
		return
	}
	l.counts[m] += count
	if p := l.places[m]; len(p) == 0 || p[len(p)-1] != int32(word) {
		l.places[m] = append(p, int32(word))
	}
	l.grown[m] = true
}

func (l *bpeLearner) remove(m merge, count int) {
	if m.left >= 0 && m.right >= 0 {
		l.counts[m] -= count
	}
}

// apply joins the pair wherever it is. It declines to make a piece that there is already: every piece has one merge.
func (l *bpeLearner) apply(m merge) bool {
	piece := l.pieces[m.left] + l.pieces[m.right]
	if _, known := l.ids[piece]; known {
		delete(l.counts, m)
		return false
	}
	id := int32(len(l.pieces))
	l.pieces = append(l.pieces, piece)
	l.ids[piece] = id
	for _, at := range l.places[m] {
		w := &l.words[at]
		old, out := w.symbols, w.symbols[:0] // out never overtakes what is still to be read
		joined := false                      // whether the last of out came from a merge just now
		for i := 0; i < len(old); {
			if i+1 == len(old) || old[i] != m.left || old[i+1] != m.right {
				if joined {
					l.add(merge{id, old[i]}, int(at), w.count)
				}
				out, joined = append(out, old[i]), false
				i++
				continue
			}
			l.remove(m, w.count)
			if n := len(out); n > 0 {
				if !joined { // otherwise the merge before has removed it, as its right neighbour
					l.remove(merge{out[n-1], m.left}, w.count)
				}
				l.add(merge{out[n-1], id}, int(at), w.count)
			}
			if i+2 < len(old) {
				l.remove(merge{m.right, old[i+2]}, w.count)
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

func (l *bpeLearner) queueGrown() {
	for m := range l.grown {
		heap.Push(l, candidate{m, l.counts[m]})
	}
	clear(l.grown)
}

// pop returns the most frequent pair; false when none occurs twice.
func (l *bpeLearner) pop() (merge, bool) {
	for len(l.queue) > 0 {
		c := heap.Pop(l).(candidate)
		count := l.counts[c.merge]
		if count == c.count && count >= 2 {
			return c.merge, true
		}
		if 2 <= count && count < c.count {
			heap.Push(l, candidate{c.merge, count})
		}
	}
	return merge{}, false
}

// Less puts the highest count first, then the pair whose pieces come first by their bytes.
func (l *bpeLearner) Less(i, j int) bool {
	a, b := l.queue[i], l.queue[j]
	return cmp.Or(cmp.Compare(b.count, a.count),
		strings.Compare(l.pieces[a.left], l.pieces[b.left]), strings.Compare(l.pieces[a.right], l.pieces[b.right])) < 0
}

func (l *bpeLearner) Len() int      { return len(l.queue) }
func (l *bpeLearner) Swap(i, j int) { l.queue[i], l.queue[j] = l.queue[j], l.queue[i] }
func (l *bpeLearner) Push(x any)    { l.queue = append(l.queue, x.(candidate)) }
func (l *bpeLearner) Pop() any {
	last := l.queue[len(l.queue)-1]
	l.queue = l.queue[:len(l.queue)-1]
	return last
}
