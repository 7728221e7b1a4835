package seq2seq

import (
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

// rule is what a merge gives, and its place in the order in which merges apply.
type rule struct{ rank, id int32 }

// makeRules indexes the merges and proves that they build all pieces from single characters, each from earlier ones.
func (v *Vocabulary) makeRules() (map[[2]int32]rule, error) {
	made := make([]bool, len(v.pieces))
	for id, piece := range v.pieces {
		made[id] = id >= specials && utf8.RuneCountInString(piece) == 1
	}
	rules := make(map[[2]int32]rule, len(v.merges))
	for i, m := range v.merges {
		if !made[m[0]] || !made[m[1]] {
			return nil, fmt.Errorf("merge %d joins pieces %d and %d, not both of which exist by then", i, m[0], m[1])
		}
		id, known := v.ids[v.pieces[m[0]]+v.pieces[m[1]]]
		if !known {
			return nil, fmt.Errorf("merge %d of %s and %s gives no piece",
				i, quote.Text(v.pieces[m[0]]), quote.Text(v.pieces[m[1]]))
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
			if r, found := v.rules[[2]int32{symbols[i], symbols[i+1]}]; found {
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
