package tokenizer

import (
	"fmt"
	"slices"
)

// Encoding is what a text became: tokens in parallel slices.
type Encoding struct {
	// IDs are the numbers that a model reads.
	IDs []int
	// Tokens are the tokens as the vocabulary writes them. What is not in it stands
	// here as unk_token or, with a Unigram model, as itself.
	Tokens []string
	// Offsets say which bytes of its text each token comes from, as it was given: always
	// within it. Special tokens that were added have 0 to 0.
	Offsets []Span
	// TypeIDs tell texts apart as the model was trained to (segments, token types).
	TypeIDs []int
	// Texts say which text a token comes from, 0 or 1, and −1 for what was added.
	Texts []int
	// Words number the words of each text that the tokens are parts of; −1 for what
	// was added.
	Words []int
	// Special marks tokens that were added, padding too.
	Special []bool
	// Mask is true for all tokens but padding: those to attend to.
	Mask []bool
	// Overflow, if Options ask for it, has encodings of what truncation cuts off, each
	// with its own special tokens. Of a pair, each window of the first text stands with
	// each of the second.
	//
	// Differs: types are as the file says; the Python package gives the second text 1.
	Overflow []*Encoding
}

// Span is a range of bytes of a text: text[Start:End].
//
// Differs: the Python package counts characters.
type Span struct{ Start, End int }

// newEncoding returns an encoding with room for n tokens.
func newEncoding(n int) *Encoding {
	ints, flags := make([]int, 4*n), make([]bool, 2*n)
	part := func(i int) []int { return ints[i*n : i*n : (i+1)*n] }
	return &Encoding{
		IDs: part(0), TypeIDs: part(1), Texts: part(2), Words: part(3),
		Tokens: make([]string, 0, n), Offsets: make([]Span, 0, n),
		Special: flags[:0:n], Mask: flags[n : n : 2*n],
	}
}

// add appends a token of a text.
func (e *Encoding) add(p *part, kind, text int) {
	e.IDs = append(e.IDs, p.id)
	e.Tokens = append(e.Tokens, p.text)
	e.Offsets = append(e.Offsets, p.at)
	e.TypeIDs = append(e.TypeIDs, kind)
	e.Texts = append(e.Texts, text)
	e.Words = append(e.Words, p.word)
	e.Special = append(e.Special, text == none)
	e.Mask = append(e.Mask, true)
}

// append appends all tokens of another encoding.
func (e *Encoding) append(f *Encoding) {
	e.IDs = append(e.IDs, f.IDs...)
	e.Tokens = append(e.Tokens, f.Tokens...)
	e.Offsets = append(e.Offsets, f.Offsets...)
	e.TypeIDs = append(e.TypeIDs, f.TypeIDs...)
	e.Texts = append(e.Texts, f.Texts...)
	e.Words = append(e.Words, f.Words...)
	e.Special = append(e.Special, f.Special...)
	e.Mask = append(e.Mask, f.Mask...)
}

// part is a token of a text before it is put together with others.
type part struct {
	id   int
	text string
	at   Span
	word int
}

// build puts texts and special tokens together as a template says: of each text the window that is chosen
// for its slot.
func build(slots []slot, windows [][][]part, chosen []int, special bool) *Encoding {
	n := 0
	for i, s := range slots {
		n += len(s.ids)
		if s.text != none {
			n += len(windows[s.text][chosen[i]])
		}
	}
	e := newEncoding(n)
	for i, s := range slots {
		if s.text != none {
			window := windows[s.text][chosen[i]]
			for j := range window {
				e.add(&window[j], s.kind, s.text)
			}
		} else if special {
			for i, id := range s.ids {
				e.add(&part{id, s.tokens[i], Span{}, none}, s.kind, none)
			}
		}
	}
	return e
}

// mostCombined is how many encodings may overflow where each window of a text is combined with each of another.
const mostCombined = 1 << 16

// overflowing returns the windows of all encodings but the first, by slot. The order is that of the reference,
// which adds slot by slot: what overflowed before with each window of the slot, then the beginning with what
// overflows of the slot.
func overflowing(slots []slot, windows [][][]part) ([][]int, error) {
	var all [][]int
	for i, s := range slots {
		n := 1
		if s.text != none {
			n = len(windows[s.text])
		}
		if total := (len(all) + 1) * n; n > 1 && len(all) > 0 && total > mostCombined {
			return nil, fmt.Errorf("at least %d encodings overflow, want at most %d", total-1, mostCombined-1)
		}
		var next [][]int
		for _, chosen := range all {
			for j := range n {
				next = append(next, append(slices.Clone(chosen), j))
			}
		}
		for j := 1; j < n; j++ {
			next = append(next, append(make([]int, i, i+1), j))
		}
		all = next
	}
	return all, nil
}
