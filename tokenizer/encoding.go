package tokenizer

// Encoding is what a text became: tokens in parallel slices.
type Encoding struct {
	// IDs are the numbers that a model reads.
	IDs []int
	// Tokens are the tokens as the vocabulary writes them. What is not in it stands
	// here as unk_token or, with a Unigram model, as itself.
	Tokens []string
	// Offsets say which bytes of its text each token comes from, as it was given.
	// Special tokens that were added have 0 to 0.
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
}

// Span is a range of bytes of a text: text[Start:End].
//
// Differs: the Python package counts characters.
type Span struct{ Start, End int }

// newEncoding returns an empty encoding with room for n tokens.
func newEncoding(n int) *Encoding {
	return &Encoding{
		make([]int, 0, n), make([]string, 0, n), make([]Span, 0, n), make([]int, 0, n),
		make([]int, 0, n), make([]int, 0, n), make([]bool, 0, n), make([]bool, 0, n),
	}
}

// add appends a token.
func (e *Encoding) add(id int, token string, at Span, kind, text, word int, special bool) {
	e.IDs = append(e.IDs, id)
	e.Tokens = append(e.Tokens, token)
	e.Offsets = append(e.Offsets, at)
	e.TypeIDs = append(e.TypeIDs, kind)
	e.Texts = append(e.Texts, text)
	e.Words = append(e.Words, word)
	e.Special = append(e.Special, special)
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

// cut keeps n tokens: the first ones, or the last ones if the left side is to go.
func (e *Encoding) cut(n int, direction string) {
	from, to := 0, len(e.IDs)
	if n >= to {
		return
	}
	if direction == "Left" {
		from = to - n
	} else {
		to = n
	}
	e.IDs = e.IDs[from:to]
	e.Tokens = e.Tokens[from:to]
	e.Offsets = e.Offsets[from:to]
	e.TypeIDs = e.TypeIDs[from:to]
	e.Texts = e.Texts[from:to]
	e.Words = e.Words[from:to]
	e.Special = e.Special[from:to]
	e.Mask = e.Mask[from:to]
}

// build puts texts and special tokens together as a template says.
func build(slots []slot, texts []*Encoding, special bool) *Encoding {
	n := 0
	for _, s := range slots {
		n += len(s.ids)
		if s.text != none {
			n += len(texts[s.text].IDs)
		}
	}
	e := newEncoding(n)
	for _, s := range slots {
		if s.text != none {
			e.append(texts[s.text])
			for i := len(e.IDs) - len(texts[s.text].IDs); i < len(e.IDs); i++ {
				e.TypeIDs[i] = s.kind
			}
			continue
		}
		for i, id := range s.ids {
			if special {
				e.add(id, s.tokens[i], Span{}, s.kind, none, none, true)
			}
		}
	}
	return e
}
