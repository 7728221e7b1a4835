package tokenizer

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// unicodeForm is one of NFC, NFD, NFKC and NFKD. Package norm has the data. The algorithm is implemented
// here because offsets need the changes of each character.
type unicodeForm struct{ compatible, compose bool }

func (n unicodeForm) normalize(p *piece) {
	if n.isNormal(p.s) {
		return
	}
	changes := n.decompose(p.s)
	if n.compose {
		changes = compose(changes)
	}
	p.transform(0, changes)
}

// isNormal reports whether s is certainly normalized already.
func (n unicodeForm) isNormal(s string) bool {
	if isASCII(s) {
		return true
	}
	switch {
	case n.compose && n.compatible:
		return norm.NFKC.IsNormalString(s)
	case n.compose:
		return norm.NFC.IsNormalString(s)
	}
	table := classes()
	return strings.IndexFunc(s, func(r rune) bool { return table.has(r, composite) }) < 0
}

// decompose decomposes characters and sorts marks by their combining class. Changes move with their characters.
func (n unicodeForm) decompose(s string) []change {
	table := classes()
	form := norm.NFD
	if n.compatible {
		form = norm.NFKD
	}
	changes := make([]change, 0, len(s))
	var marks []uint8 // combining classes of the last changes
	sort := func() {
		if len(marks) > 1 {
			sortMarks(changes[len(changes)-len(marks):], marks)
		}
		marks = marks[:0]
	}
	push := func(c change) {
		combining := combiningClass(table, c.r)
		if combining == 0 {
			sort()
		}
		changes = append(changes, c)
		if combining != 0 {
			marks = append(marks, combining)
		}
	}
	for i, r := range s {
		if r < utf8.RuneSelf || !table.has(r, composite) {
			push(change{r, 0})
			continue
		}
		first := 0
		for _, part := range decomposition(form, s[i:i+utf8.RuneLen(r)]) {
			push(change{part, first})
			first = 1
		}
	}
	sort()
	return changes
}

// decomposition returns the decomposition of a character.
func decomposition(form norm.Form, char string) string {
	if d := form.PropertiesString(char).Decomposition(); d != nil {
		return string(d)
	}
	return form.String(char) // Hangul
}

// sortMarks sorts a run of marks by combining class, and keeps the order of equal ones.
func sortMarks(changes []change, class []uint8) {
	if slices.IsSorted(class) {
		return
	}
	type ranked struct {
		change
		class uint8
	}
	all := make([]ranked, len(changes))
	for i, c := range changes {
		all[i] = ranked{c, class[i]}
	}
	slices.SortStableFunc(all, func(a, b ranked) int { return int(a.class) - int(b.class) })
	for i, c := range all {
		changes[i] = c.change
	}
}

func combiningClass(table *classTable, r rune) uint8 {
	if r < utf8.RuneSelf || !table.has(r, composite) {
		return 0
	}
	return norm.NFD.PropertiesString(string(r)).CCC()
}

// compose composes characters. A composed character gets the changes of all its parts.
func compose(changes []change) []change {
	table := classes()
	out := changes[:0]
	starter := none // index in out of the character that the next one may combine with
	var last uint8  // combining class of the characters between, 0 if there are none
	for _, c := range changes {
		combining := combiningClass(table, c.r)
		if starter >= 0 && (last == 0 || last < combining) {
			if r, ok := composed(out[starter].r, c.r); ok {
				out[starter].r = r
				out[starter].n += c.n - 1
				continue
			}
		}
		if combining == 0 {
			starter, last = len(out), 0
		} else if starter >= 0 {
			last = combining
		}
		out = append(out, c)
	}
	return out
}

// composed returns the character that is composed of two others.
func composed(a, b rune) (rune, bool) {
	const (
		hangul, leading, vowel, trailing = 0xac00, 0x1100, 0x1161, 0x11a7
		leadings, vowels, trailings      = 19, 21, 28
	)
	switch {
	case leading <= a && a < leading+leadings && vowel <= b && b < vowel+vowels:
		return hangul + (a-leading)*vowels*trailings + (b-vowel)*trailings, true
	case hangul <= a && a < hangul+leadings*vowels*trailings && (a-hangul)%trailings == 0 &&
		trailing < b && b < trailing+trailings:
		return a + b - trailing, true
	}
	compositions.Do(findCompositions)
	r, ok := compositions.pairs[[2]rune{a, b}]
	return r, ok
}

// compositions has the pairs of characters that compose to one, except Hangul, from their first use on. An initializer
// would link package norm into every program with a tokenizer.
var compositions struct {
	sync.Once
	pairs map[[2]rune]rune
}

func findCompositions() {
	compositions.pairs = map[[2]rune]rune{}
	for first, last := range codeRanges(normalized) {
		for r := first; r <= last; r++ {
			if 0xac00 <= r && r <= 0xd7a3 || norm.NFC.String(string(r)) != string(r) {
				continue
			}
			parts := []rune(norm.NFD.String(string(r)))
			n := len(parts) - 1
			if n == 0 {
				continue
			}
			if front := []rune(norm.NFC.String(string(parts[:n]))); len(front) == 1 {
				compositions.pairs[[2]rune{front[0], parts[n]}] = r
			}
		}
	}
}
