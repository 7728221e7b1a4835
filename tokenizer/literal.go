package tokenizer

import (
	"cmp"
	"fmt"
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
	unnamed map[int]bool // tokens of markers that are not called special
}

// reserves reports whether a token cannot be in the user's text.
func (l *literals) reserves(id int) bool { return l.added.byID[id].Special || l.unnamed[id] }

// marker is a special token, or another one that looks like one, without white space that it includes.
type marker struct {
	Span
	id int
}

// neutral replaces a user's range while special tokens are searched for. It is no letter, no mark and no white space,
// and normalizers do not change it.
const neutral = "\uFFFC"

// newLiterals finds the markers of a text with the given ranges of a user: those that the text has if each of the
// ranges is neutral. So the user's text neither completes a marker, nor changes one beside it: by a longer token that
// begins in it, or by a mark that is composed with the marker's last character. newLiterals returns nil if there are no
// ranges.
func (a *addedTokens) newLiterals(text string, ranges []Span, n normalizer) *literals {
	if len(ranges) == 0 {
		return nil
	}
	l := &literals{added: a, unnamed: map[int]bool{}}
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
	var b strings.Builder
	var shifts []int // for each part between the ranges, its position in text, less that in b
	var starts []int // of these parts in b
	done := 0
	for _, s := range append(l.spans, Span{len(text), len(text)}) {
		starts, shifts = append(starts, b.Len()), append(shifts, done-b.Len())
		b.WriteString(text[done:s.Start] + neutral)
		done = s.End
	}
	for _, p := range a.split(newPiece(b.String()[:b.Len()-len(neutral)]), n, nil) {
		if p.token == none || !l.reserves(p.token) && !looksSpecial(a.byID[p.token].Content) {
			continue
		}
		token := a.text(p.token)
		i := strings.Index(p.s, token)
		if i < 0 { // an unknown token of lead
			continue
		}
		at := p.offsets(i, i+len(token))
		part := sort.SearchInts(starts, at.Start+1) - 1
		if part+1 < len(starts) && at.End > starts[part+1]-len(neutral) {
			continue
		}
		if !l.reserves(p.token) {
			l.unnamed[p.token] = true
		}
		l.markers = append(l.markers, marker{Span{at.Start + shifts[part], at.End + shifts[part]}, p.token})
	}
	return l
}

// looksSpecial reports whether a token is a word between signs, such as <｜User｜> of DeepSeek, which its file does not
// call special. Other added tokens may be parts of any text, such as spaces.
func looksSpecial(token string) bool {
	isSign := func(r rune) bool { return r != '▁' && (unicode.IsPunct(r) || unicode.IsSymbol(r)) }
	first, _ := utf8.DecodeRuneInString(token)
	last, _ := utf8.DecodeLastRuneInString(token)
	return isSign(first) && isSign(last) && strings.ContainsFunc(token, unicode.IsLetter)
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

// matches returns the positions of markers in a part of the original text.
func (p *piece) matches(list []marker) (all []match) {
	index := func(at int) int {
		if p.at == nil {
			return at - p.base
		}
		return sort.Search(len(p.at), func(i int) bool { return int(p.at[i].start) >= at })
	}
	for _, c := range list {
		all = append(all, match{index(c.Start), index(c.End), c.id})
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
		k, ok := slices.BinarySearchFunc(list, int(p.align(i).start), func(c marker, at int) int { return c.Start - at })
		if !ok {
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
