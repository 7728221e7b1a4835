package tokenizer

import (
	"fmt"
	"slices"
)

// Encoding is an encoded text: tokens in parallel slices.
type Encoding struct {
	// IDs are the ids of the tokens, the input of a model.
	IDs []int
	// Tokens are the tokens as written in the vocabulary. A token that is not in the vocabulary is
	// unk_token or, with a Unigram model, its own text.
	Tokens []string
	// Offsets are the byte ranges of the original text that the tokens came from, always within the text.
	// Added special tokens have 0 to 0.
	Offsets []Span
	// TypeIDs distinguish texts in the way the model was trained (segments, token types).
	TypeIDs []int
	// Texts has the number of the text that each token came from, 0 or 1, and −1 for added tokens.
	Texts []int
	// Words has the number of the word in its text that each token belongs to, and −1 for added tokens.
	Words []int
	// Special marks added tokens, including padding.
	Special []bool
	// Mask is true for all tokens to attend to: all except padding.
	Mask []bool
	// Truncated says that truncation removed tokens.
	Truncated bool
	// Overflow has encodings of the tokens that truncation removed, if Options.Overflow is set. Each has its own
	// special tokens. For a pair, each window of the first text is combined with each window of the second.
	//
	// Differs: types follow the file; the Python package gives the second text 1.
	Overflow []*Encoding
}

// Span is a range of bytes of a text: text[Start:End].
//
// Differs: the Python package counts characters.
type Span struct{ Start, End int }

// newEncoding returns an encoding with capacity for n tokens.
func newEncoding(n int) *Encoding {
	ints, flags := make([]int, 4*n), make([]bool, 2*n)
	part := func(i int) []int { return ints[i*n : i*n : (i+1)*n] }
	return &Encoding{
		IDs: part(0), TypeIDs: part(1), Texts: part(2), Words: part(3),
		Tokens: make([]string, 0, n), Offsets: make([]Span, 0, n),
		Special: flags[:0:n], Mask: flags[n : n : 2*n],
	}
}

// add appends a token of a text, or a special token if text is none.
func (e *Encoding) add(t *token, kind, text int) {
	e.IDs = append(e.IDs, t.id)
	e.Tokens = append(e.Tokens, t.text)
	e.Offsets = append(e.Offsets, t.at)
	e.TypeIDs = append(e.TypeIDs, kind)
	e.Texts = append(e.Texts, text)
	e.Words = append(e.Words, t.word)
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

// token is a token of a piece, of a text, or of a template.
type token struct {
	id   int
	text string
	at   Span // bytes of the normalized piece in a model, and of the original text after it
	word int  // number of its piece in the text
}

// specialToken returns a token that is in no text.
func specialToken(id int, text string) token { return token{id: id, text: text, word: none} }

// build combines texts and special tokens according to a template. For each slot of a text it uses the chosen window.
func build(slots []slot, windows [][][]token, chosen []int, special bool) *Encoding {
	n := 0
	for i, s := range slots {
		n += len(s.special)
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
			for j := range s.special {
				e.add(&s.special[j], s.kind, none)
			}
		}
	}
	return e
}

// mostCombined is the maximum number of encodings from combining the windows of several texts.
const mostCombined = 1 << 16

// overflowing returns the chosen windows, by slot, of all encodings except the first. The order is that of
// the reference, which adds slot by slot: first each earlier overflow with each window of the slot, then
// the first windows with each overflowing window of the slot.
func overflowing(slots []slot, windows [][][]token) ([][]int, error) {
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
