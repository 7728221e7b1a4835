package tokenizer

import (
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// unicodeForm is NFC, NFD, NFKC or NFKD. Package norm has the data. The algorithm is implemented here
// because offsets need the changes of each character.
type unicodeForm norm.Form

func (n unicodeForm) normalize(p *piece) {
	if p.open {
		p.cut(lastStart(norm.Form(n), p))
	}
	if isASCII(p.s) || norm.Form(n).IsNormalString(p.s) {
		return
	}
	form := decomposing(norm.Form(n))
	changes := decompose(form, p)
	if form != norm.Form(n) {
		changes = compose(changes, p)
	}
	p.transform(changes)
}

// lastStart returns the position of the last character that is independent of the characters before it: its first
// part begins a sequence of marks, and never combines with a previous character.
func lastStart(form norm.Form, p *piece) int {
	form = decomposing(form)
	s := p.s
	for step, end := 0, len(s); end > 0; step++ {
		p.poll(step)
		r, n := utf8.DecodeLastRuneInString(s[:end])
		end -= n
		if r < utf8.RuneSelf {
			return end
		}
		first := string(decomposition(form, s[end:end+n])[0])
		if norm.NFC.PropertiesString(first).BoundaryBefore() && norm.NFC.PropertiesString(s[end:]).BoundaryBefore() {
			return end
		}
	}
	return 0
}

// decomposing returns the form that decomposes the characters of a form in the same way.
func decomposing(form norm.Form) norm.Form {
	switch form {
	case norm.NFC:
		return norm.NFD
	case norm.NFKC:
		return norm.NFKD
	}
	return form
}

// decompose decomposes characters and sorts marks by their combining class. Changes move with their characters.
func decompose(form norm.Form, p *piece) []change {
	s := p.s
	table := classes()
	changes := make([]change, 0, len(s))
	for i, r := range s {
		p.poll(i)
		if r < utf8.RuneSelf || !table.has(r, composite) ||
			table.has(r, combining) && form.PropertiesString(s[i:]).Decomposition() == nil {
			changes = append(changes, change{r, 0})
			continue
		}
		for j, part := range decomposition(form, s[i:i+utf8.RuneLen(r)]) {
			changes = append(changes, change{part, min(j, 1)})
		}
	}
	for i := 0; i < len(changes); i++ {
		first, inOrder := i, true
		for last := uint8(0); i < len(changes); i++ {
			p.poll(i)
			c := combiningClass(table, changes[i].r)
			if c == 0 {
				break
			}
			inOrder = inOrder && last <= c
			last = c
		}
		if !inOrder {
			sortMarks(table, p, changes[first:i])
		}
	}
	return changes
}

// sortMarks sorts marks by their combining class. It takes linear time, because all of a text may be marks.
func sortMarks(table *classTable, p *piece, marks []change) {
	var ends [256]int // of each class in sorted
	for i, c := range marks {
		p.poll(i)
		ends[combiningClass(table, c.r)]++
	}
	for class := 1; class < len(ends); class++ {
		ends[class] += ends[class-1]
	}
	sorted := make([]change, len(marks))
	for i := len(marks) - 1; i >= 0; i-- {
		p.poll(i)
		end := &ends[combiningClass(table, marks[i].r)]
		*end--
		sorted[*end] = marks[i]
	}
	copy(marks, sorted)
}

// decomposition returns the decomposition of a character.
func decomposition(form norm.Form, char string) []rune {
	if d := form.PropertiesString(char).Decomposition(); d != nil {
		return []rune(string(d))
	}
	return []rune(form.String(char)) // Hangul
}

func combiningClass(table *classTable, r rune) uint8 {
	if r < utf8.RuneSelf || !table.has(r, composite) {
		return 0
	}
	return norm.NFD.PropertiesString(string(r)).CCC()
}

// compose composes characters. A composed character gets the changes of all its parts.
// A mark is composed with the last starter if no mark of the same or a higher class is between them (Unicode
// Standard Annex 15). Changes are overwritten in place, as there are never more of them than were read.
func compose(changes []change, p *piece) []change {
	table := classes()
	out := changes[:0]
	starter := none // index in out of the character that the next one may combine with
	var last uint8  // combining class of the characters between, 0 if there are none
	for i, c := range changes {
		p.poll(i)
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
	if b < utf8.RuneSelf || norm.NFC.PropertiesString(string(b)).BoundaryBefore() {
		return 0, false
	}
	both := norm.NFC.String(string([]rune{a, b}))
	r, n := utf8.DecodeRuneInString(both)
	return r, n == len(both) && classes().has(r, composite) // not if the reference's Unicode lacks it
}
