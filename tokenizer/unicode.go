package tokenizer

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// class is a set of properties of a character, as defined by the reference implementation. Package unicode
// uses another version of Unicode.
type class uint16

const (
	letter class = 1 << iota
	number
	space
	numeric
	punct
	wordChar
	control
	accent
	mark
	composite // decomposes, or has a combining class
	combining // \p{M}
	ideograph // a Chinese or Japanese character
)

// classTable has the class of every character, in blocks of 256. Equal blocks are stored once.
type classTable struct {
	block [(unicode.MaxRune + 1) / 256]uint16
	of    [][256]class
}

// classes builds the table when the first tokenizer is loaded, which takes milliseconds.
var classes = sync.OnceValue(func() *classTable {
	all := make([]class, unicode.MaxRune+1)
	for _, c := range []struct {
		ranges string
		bit    class
	}{
		{properties()["l"], letter}, {properties()["n"], number}, {spaces, space}, {numerics, numeric},
		{punctuation, punct}, {words, wordChar}, {controls, control}, {accents, accent}, {marks, mark},
		{normalized, composite}, {properties()["m"], combining},
		{properties()["han"], ideograph}, {properties()["hiragana"], ideograph}, {properties()["katakana"], ideograph},
	} {
		for first, last := range codeRanges(c.ranges) {
			for r := first; r <= last; r++ {
				all[r] |= c.bit
			}
		}
	}
	t := new(classTable)
	known := map[[256]class]uint16{}
	for i := range t.block {
		block := [256]class(all[i*256:])
		n, seen := known[block]
		if !seen {
			n = uint16(len(t.of))
			known[block], t.of = n, append(t.of, block)
		}
		t.block[i] = n
	}
	return t
})

// codeRanges yields the ranges of a list like "41-5a 61-7a aa".
func codeRanges(list string) func(yield func(first, last rune) bool) {
	return func(yield func(first, last rune) bool) {
		for word := range strings.FieldsSeq(list) {
			a, b, isRange := strings.Cut(word, "-")
			first, err1 := strconv.ParseUint(a, 16, 21)
			last, err2 := first, error(nil)
			if isRange {
				last, err2 = strconv.ParseUint(b, 16, 21)
			}
			if err1 != nil || err2 != nil {
				panic("tokenizer: " + strconv.Quote(word) + " is not a range of code points")
			}
			if !yield(rune(first), rune(last)) {
				return
			}
		}
	}
}

// tables returns the lists of ranges in a constant like "Lu: 41-5a ; Ll: 61-7a".
func tables(all string) map[string]string {
	lists := map[string]string{}
	for entry := range strings.SplitSeq(all, ";") {
		name, list, _ := strings.Cut(entry, ":")
		lists[strings.TrimSpace(name)] = list
	}
	return lists
}

// complement returns the ranges of all characters that are not in a list.
func complement(list string) string {
	type span struct{ first, last rune }
	var spans []span
	for first, last := range codeRanges(list) {
		spans = append(spans, span{first, last})
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	var b strings.Builder
	next := rune(0)
	for _, s := range append(spans, span{unicode.MaxRune + 1, unicode.MaxRune + 1}) {
		if next < s.first {
			fmt.Fprintf(&b, "%x-%x ", next, s.first-1)
		}
		next = max(next, s.last+1)
	}
	return b.String()
}

// has reports whether a character has any of the properties.
func (t *classTable) has(r rune, c class) bool {
	return t.of[t.block[uint32(r)>>8]][uint32(r)&255]&c != 0
}

func isSpace(r rune) bool { return classes().has(r, space) }

// lower returns the lower-case form of a character, independent of its neighbours, and a further character
// for İ, which becomes two characters.
func lower(r rune) (rune, string) {
	if r < utf8.RuneSelf {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r, ""
	}
	if s, ok := lowered[r]; ok {
		first, n := utf8.DecodeRuneInString(s)
		return first, s[n:]
	}
	return unicode.ToLower(r), ""
}
