package tokenizer

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// unicodeForm is one of NFC, NFD, NFKC and NFKD. Package norm has the data; the
// algorithm is here, because what becomes of each character has to be known.
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

// isNormal reports whether there is certainly nothing to do.
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

// decompose takes characters apart and sorts marks by their combining class. A change
// goes where its character goes.
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

// decomposition returns what a character consists of.
func decomposition(form norm.Form, char string) string {
	if d := form.PropertiesString(char).Decomposition(); d != nil {
		return string(d)
	}
	return form.String(char) // Hangul
}

// sortMarks sorts a run of marks by combining class; equal ones keep their order.
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

// compose puts characters together again. A character that swallows another one
// stands for both.
func compose(changes []change) []change {
	table := classes()
	out := changes[:0]
	starter := none // index in out of what the next character may join
	var last uint8  // combining class of what is between, 0 if nothing is
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

// composed returns the character that two others make.
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
	r, ok := compositions()[[2]rune{a, b}]
	return r, ok
}

// compositions are the pairs of characters that make one, but for Hangul.
var compositions = sync.OnceValue(func() map[[2]rune]rune {
	pairs := map[[2]rune]rune{}
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
				pairs[[2]rune{front[0], parts[n]}] = r
			}
		}
	}
	return pairs
})
