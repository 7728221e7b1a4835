package tokenizer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/quote"
)

// literals describes the ranges of a text that come from a user. All markers of the text are in the rest of it.
type literals struct {
	added   *addedTokens
	spans   []Span // in ascending order, not adjacent
	markers []marker
	marked  map[int]bool // tokens of markers, which the file may not call special
}

// reserves reports whether a token cannot be in the user's text.
func (l *literals) reserves(id int) bool { return l.added.byID[id].Special || l.marked[id] }

// marker is a special token, or another one that looks like one, without white space that it includes.
type marker struct {
	Span
	id int
	// lead is the length of the space before the marker that Prepend makes a part of it. The space may belong to an
	// added token instead, which is found before the text is normalized: then Prepend adds another one.
	lead int
}

// neutral replaces a user's range while special tokens are searched for. It is no letter, no mark and no white space,
// and normalizers do not change it. neutralLetter is beside it where the range begins or ends with a letter or digit:
// beside these, a token with single_word is text. It is a rune, and not changed either.
const (
	neutral       = "\uFFFC"
	neutralLetter = "\u16A0"
)

// newLiterals finds the markers of a text with the given ranges of a user: those that the text has if each of the
// ranges is neutral. So the user's text neither completes a marker, nor changes one beside it: by a longer token that
// begins in it, or by a mark that is composed with the marker's last character. newLiterals returns nil if there are no
// ranges.
func (a *addedTokens) newLiterals(text string, ranges []Span, n normalizer) *literals {
	if len(ranges) == 0 {
		return nil
	}
	l := &literals{added: a, marked: map[int]bool{}}
	ranges = slices.Clone(ranges)
	slices.SortFunc(ranges, func(s, t Span) int { return cmp.Compare(s.Start, t.Start) })
	for _, s := range ranges {
		s = Span{max(s.Start, 0), min(s.End, len(text))}
		if last := len(l.spans) - 1; last >= 0 && s.Start <= l.spans[last].End {
			l.spans[last].End = max(l.spans[last].End, s.End)
		} else if s.Start < s.End {
			l.spans = append(l.spans, s)
		}
	}
	if len(l.spans) == 0 {
		return nil
	}
	l.markers = l.find(text, l.spans, n)
	l.addSpaced(text, n)
	for _, m := range l.markers {
		l.marked[m.id] = true
	}
	return l
}

// find returns the markers of a text in which the given ranges are neutral.
func (l *literals) find(text string, ranges []Span, n normalizer) (markers []marker) {
	a, table := l.added, classes()
	var b strings.Builder
	var shifts []int // for each part between the ranges, its position in text, less that in b
	var parts []Span // positions of these parts in b
	done := 0
	for _, s := range append(slices.Clip(ranges), Span{len(text), len(text)}) {
		shifts = append(shifts, done-b.Len())
		parts = append(parts, Span{b.Len(), b.Len() + s.Start - done})
		b.WriteString(text[done:s.Start])
		user := text[s.Start:s.End]
		first, _ := utf8.DecodeRuneInString(user)
		last, _ := utf8.DecodeLastRuneInString(user)
		if table.has(first, wordChar) {
			b.WriteString(neutralLetter)
		}
		if user != "" {
			b.WriteString(neutral)
		}
		if table.has(last, wordChar) {
			b.WriteString(neutralLetter)
		}
		done = s.End
	}
	for _, p := range a.split(newPiece(b.String()), n, nil) {
		if p.token == none || !a.byID[p.token].looksSpecial() {
			continue
		}
		token := a.text(p.token)
		i := strings.Index(p.s, token)
		if i < 0 { // an unknown token of lead
			continue
		}
		at := p.offsets(i, i+len(token))
		part := sort.Search(len(parts), func(i int) bool { return parts[i].Start > at.Start }) - 1
		if at.End > parts[part].End {
			continue
		}
		m := marker{Span{at.Start + shifts[part], at.End + shifts[part]}, p.token, 0}
		if l.isSpaced(m.id) {
			m.Start = m.End - len(a.byID[m.id].Content)
			r, size := utf8.DecodeLastRuneInString(text[:m.Start])
			spaced := newPiece("a" + text[m.Start-size:m.End])
			if n.normalize(&spaced); (r == ' ' || r == '▁') && strings.HasSuffix(spaced.s, token) {
				m.lead = size
			}
		}
		markers = append(markers, m)
	}
	return markers
}

// isSpaced reports whether the normalizer Prepend makes ▁</s> of a token that looks like a special one.
func (l *literals) isSpaced(id int) bool {
	token, written := l.added.byID[id], l.added.text(id)
	return token.looksSpecial() && written != token.Content && strings.HasSuffix(written, token.Content)
}

// addSpaced adds the markers that are found after a space only, because the normalizer Prepend makes ▁</s> of them, if
// the user's text ends with that space.
func (l *literals) addSpaced(text string, n normalizer) {
	if !slices.ContainsFunc(slices.Collect(maps.Keys(l.added.written)), l.isSpaced) {
		return
	}
	var ranges []Span // without these spaces
	for _, s := range l.spans {
		if r, size := utf8.DecodeLastRuneInString(text[s.Start:s.End]); r == ' ' || r == '▁' {
			s.End -= size
		}
		if s.Start < s.End {
			ranges = append(ranges, s)
		}
	}
	for _, m := range l.find(text, ranges, n) {
		theirs := l.has(Span{m.End - len(l.added.byID[m.id].Content), m.End})
		overlaps := func(o marker) bool { return m.Start < o.End && o.Start < m.End }
		if l.isSpaced(m.id) && !theirs && !slices.ContainsFunc(l.markers, overlaps) {
			l.markers = append(l.markers, m)
		}
	}
	slices.SortFunc(l.markers, func(m, o marker) int { return cmp.Compare(m.Start, o.Start) })
}

// looksSpecial reports whether a token is special, or is a word between signs, such as <｜User｜> of DeepSeek, which its
// file does not call special. Other added tokens may be parts of any text, such as spaces.
func (t addedToken) looksSpecial() bool {
	isSign := func(r rune) bool { return r != '▁' && (unicode.IsPunct(r) || unicode.IsSymbol(r)) }
	first, _ := utf8.DecodeRuneInString(t.Content)
	last, _ := utf8.DecodeLastRuneInString(t.Content)
	return t.Special || isSign(first) && isSign(last) && strings.ContainsFunc(t.Content, unicode.IsLetter)
}

// has reports whether a part of a range of the text is the user's.
func (l *literals) has(at Span) bool {
	i := sort.Search(len(l.spans), func(i int) bool { return l.spans[i].End > at.Start })
	return i < len(l.spans) && l.spans[i].Start < at.End
}

// in returns the markers in a part of the original text.
func (l *literals) in(p *piece) []marker {
	if l == nil || p.s == "" {
		return nil
	}
	at := p.offsets(0, len(p.s))
	first := sort.Search(len(l.markers), func(i int) bool { return l.markers[i].Start >= at.Start })
	last := sort.Search(len(l.markers), func(i int) bool { return l.markers[i].Start >= at.End })
	return l.markers[first:last]
}

// match is a token at bytes of a piece.
type match struct{ start, end, id int }

// matches returns the positions of markers in a part of the original text, with the spaces that belong to them after it
// is normalized.
func (p *piece) matches(list []marker, normalized bool) (all []match) {
	index := func(at int) int {
		if p.at == nil {
			return at - p.base
		}
		return sort.Search(len(p.at), func(i int) bool { return int(p.at[i].start) >= at })
	}
	for _, c := range list {
		start := index(c.Start)
		if lead := index(c.Start - c.lead); normalized && c.lead > 0 && lead >= 0 && p.align(lead).start == int32(c.Start-c.lead) {
			start = lead
		}
		all = append(all, match{start, index(c.End), c.id})
	}
	return all
}

// normalMatches returns the positions of markers in a normalized text, of which f finds the tokens.
func (p *piece) normalMatches(list []marker, f *finder) (all []match) {
	if len(list) == 0 {
		return nil
	}
	for i := 0; i < len(p.s); i++ {
		if f.trie.begin[p.s[i]] == root {
			continue
		}
		at := int(p.align(i).start)
		k := sort.Search(len(list), func(k int) bool { return list[k].Start >= at })
		if k == len(list) || at != list[k].Start && at != list[k].Start-list[k].lead {
			continue
		}
		if token := f.tokens.text(list[k].id); strings.HasPrefix(p.s[i:], token) {
			all = append(all, match{i, i + len(token), list[k].id})
			i += len(token) - 1
		}
	}
	return all
}

// tokenize appends the tokens of a piece. If the user's text becomes a token that l reserves, because the vocabulary of
// the model has it too, the text is cut within the token.
//
// Differs: the Python package makes special tokens of such a text, also with encode_special_tokens.
func (t *Tokenizer) tokenize(out []token, p *piece, l *literals) ([]token, error) {
	done := len(out)
	out, err := t.model.tokenize(out, p)
	if err != nil || l == nil {
		return out, err
	}
	var ends []int
	for _, tok := range out[done:] {
		if !l.reserves(tok.id) || tok.at.Start == tok.at.End || !l.has(p.offsets(tok.at.Start, tok.at.End)) {
			continue
		}
		covered := p.slice(tok.at.Start, tok.at.End)
		_, first := utf8.DecodeRuneInString(covered.s)
		covered.plain()
		if token, _ := t.model.token(tok.id); covered.s != token { // a token for unknown text
			continue
		}
		if tok.at.Start+first == tok.at.End {
			return nil, fmt.Errorf("%s is a special token, and there is no other token for it as text", quote.Text(covered.s))
		}
		ends = append(ends, tok.at.Start+first)
	}
	if p.open { // after the tokens so far, there may be another one to cut
		known := 0
		if len(out) > done {
			known = out[len(out)-1].at.End
		}
		if p.cut(beginning(p.s, known)); ends == nil {
			return t.model.tokenize(out[:done], p)
		}
	} else if ends == nil {
		return out, nil
	}
	out = out[:done]
	start := 0
	for _, end := range append(ends, len(p.s)) {
		part, first := p.slice(start, end), len(out)
		part.open = p.open && end == len(p.s)
		if out, err = t.tokenize(out, &part, l); err != nil {
			return nil, err
		}
		for i := range out[first:] {
			at := &out[first+i].at
			*at = Span{at.Start + start, at.End + start}
		}
		start = end
	}
	return out, nil
}
