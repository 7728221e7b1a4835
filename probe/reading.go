package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tokenizer"
)

// Reading is a text, or two, as a model reads them; see Read.
type Reading struct {
	// First is the text. Second is the second text of a pair, the target of an encoder–decoder, or what Generate has
	// added; empty if there is none.
	First, Second string
	// Tokens are those of First, or of both texts of a pair.
	Tokens *tokenizer.Encoding
	// Target are the tokens of a target, or those that Generate has added; nil if there are none.
	Target *tokenizer.Encoding

	model *models.Model
}

// Read returns the tokens of a text, or of a pair of texts if second is not empty. In an encoder–decoder, second is the
// target.
//
// Errors: those of Encode, for each text.
func Read(m *models.Model, first, second string) (Reading, error) {
	if second != "" && m.Sizes().Decoder != nil {
		return ReadTarget(m, first, second)
	}
	e, err := m.Encode(first, second)
	return Reading{First: first, Second: second, Tokens: e, model: m}, err
}

// ReadTarget is Read for a source and its target, which may be empty.
func ReadTarget(m *models.Model, source, target string) (Reading, error) {
	r := Reading{First: source, Second: target, model: m}
	var err error
	if r.Tokens, err = m.Encode(source, ""); err == nil {
		r.Target, err = m.EncodeTarget(target)
	}
	return r, err
}

// Generate returns the reading with the tokens that the model generates. A decoder continues the text by at most g.Tokens
// tokens. An encoder–decoder writes the target, including its end; a limit of 0 depends on the text.
//
// Errors: those of models.Model.Generate; a reading with a second text; in a decoder, a limit that is not positive or leaves
// the model's positions; in an encoder–decoder, a target without tokens; the error of a ctx that ends.
func (r Reading) Generate(ctx context.Context, g models.Generation) (Reading, error) {
	m, n := r.model, len(r.Tokens.IDs)
	var begin, ends []int
	var err error
	switch z := m.Sizes(); {
	case r.Second != "":
		return r, errors.New("probe: Generate: the text is followed by another")
	case z.Decoder != nil:
		if begin, err = m.Forced(); err != nil {
			return r, err
		}
		if ends = g.Ends; ends == nil {
			if ends, err = m.EndTokens(); err != nil {
				return r, err
			}
		}
		g.Tokens, g.Ends = cmp.Or(g.Tokens, models.TargetTokens(n)), []int{} // the end is a token of the target
	case g.Tokens < 1:
		return r, fmt.Errorf("probe: Generate: %d tokens, want at least 1", g.Tokens)
	case z.Positions > 0 && g.Tokens > z.Positions-n:
		return r, fmt.Errorf("probe: Generate: %d tokens after %d, want at most %d in all", g.Tokens, n, z.Positions)
	}
	tokens, err := m.Generate(ctx, r.Tokens.IDs, g)
	if err != nil {
		return r, err
	}
	ids, ended := slices.Clone(begin), false
	for id := range tokens {
		if ids, ended = append(ids, id), slices.Contains(ends, id); ended {
			break
		}
	}
	if err := ctx.Err(); err != nil {
		return r, err
	}
	if m.Sizes().Decoder != nil && len(ids) == len(begin) {
		return r, errors.New("the model generates no tokens for this text")
	}
	r.Second, r.Target = m.Decode(ids), encodingOf(m, ids)
	for i := range r.Target.Special {
		r.Target.Special[i] = i < len(begin) || ended && i == len(ids)-1
	}
	return r, nil
}

// Model returns the model that reads.
func (r Reading) Model() *models.Model { return r.model }

// Batch returns what the model reads: the tokens of one sequence.
//
// Errors: a model without a start token; too many tokens of a target.
func (r Reading) Batch() (models.Batch, error) {
	x := models.BatchOf(r.Tokens)
	if r.Target == nil {
		return x, nil
	}
	y := r.model.Sizes().Decoder
	if y == nil { // one run over all tokens gives the same weights as single steps, bit for bit
		return models.Batch{IDs: [][]int{slices.Concat(x.IDs[0], r.Target.IDs)}}, nil
	}
	start, err := r.model.DecoderStart()
	if err != nil {
		return x, err
	}
	x.Targets = [][]int{append([]int{start}, r.Target.IDs[:len(r.Target.IDs)-1]...)}
	if err := y.Check(models.Batch{IDs: x.Targets}); err != nil {
		return x, fmt.Errorf("the target has %w", err)
	}
	return x, nil
}

// Labels are the tokens of a reading for people to read, such as the axes of a picture.
type Labels struct {
	Source, Target []string // Target is nil in a model without a decoder
	Read           []string // what the decoder reads: the start token and Target without its last token
	Special        []string // those of the others that are special tokens
}

// Labels returns the labels of a reading's tokens.
//
// Errors: those of Batch.
func (r Reading) Labels() (l Labels, err error) {
	m := r.model
	x, err := r.Batch()
	if err != nil {
		return l, err
	}
	t, err := m.Tokenizer()
	if err != nil {
		return l, err
	}
	l.Source = labels(t, r.Tokens, r.First, r.Second)
	special := func(e *tokenizer.Encoding, labels []string) {
		for i, label := range labels {
			if e.Special[i] && !slices.Contains(l.Special, label) {
				l.Special = append(l.Special, label)
			}
		}
	}
	special(r.Tokens, l.Source)
	if r.Target == nil {
		return l, nil
	}
	target := labels(t.Target(), r.Target, r.Second)
	if m.Sizes().Decoder == nil {
		l.Source = append(l.Source, target...)
		return l, nil
	}
	first := encodingOf(m, x.Targets[0][:1])
	first.Special[0] = true
	l.Target, l.Read = target, append(first.Tokens, target[:len(target)-1]...)
	special(first, first.Tokens)
	special(r.Target, target)
	slices.Sort(l.Special)
	return l, nil
}

// encodingOf returns the encoding of tokens that an encoder–decoder has written.
func encodingOf(m *models.Model, ids []int) *tokenizer.Encoding {
	y := &tokenizer.Encoding{IDs: ids, Special: make([]bool, len(ids))}
	t, _ := m.Tokenizer() // which has read the source
	for _, id := range ids {
		token, _ := t.Target().Token(id)
		y.Tokens = append(y.Tokens, token)
	}
	return y
}

// labels returns the tokens for people to read. A byte-level vocabulary represents each byte by a
// letter; if the bytes of a token are text, labels returns that text instead. An unknown token has its part of the
// texts that were encoded, after "⁇".
func labels(t *tokenizer.Tokenizer, e *tokenizer.Encoding, texts ...string) []string {
	list := slices.Clone(e.Tokens)
	unknown, some := t.ID(t.UnknownToken())
	for i, at := range e.Offsets {
		if some && e.IDs[i] == unknown && e.Texts[i] >= 0 && e.Texts[i] < len(texts) {
			if part := strings.TrimSpace(texts[e.Texts[i]][at.Start:at.End]); part != "" {
				list[i] = "⁇" + part
			}
		}
	}
	_, spaces := t.ID("Ġ")
	_, lines := t.ID("Ċ")
	if !spaces || !lines { // every byte-level vocabulary has both
		for i, token := range list {
			list[i] = printable(token)
		}
		return list
	}
	for i, id := range e.IDs {
		text := t.Decode([]int{id})
		if e.Special[i] || text == "" || strings.ContainsRune(text, '\uFFFD') {
			continue
		}
		for mark, space := range map[string]string{"Ġ": " ", "Ċ": "\n"} {
			if body, cut := strings.CutPrefix(text, space); cut {
				text = mark + body
				break
			}
		}
		list[i] = text
	}
	return list
}

// printable returns a label for a token: "▁" shows a space at its beginning, a dotted circle precedes a combining mark
// that has no letter, and invisible characters are written as U+200B.
func printable(token string) string {
	var label strings.Builder
	body, space := strings.CutPrefix(token, " ")
	if space {
		label.WriteRune('▁')
	}
	for i, r := range body {
		joiner := (r == '\u200d' || r == '\u200c') && len(body) > utf8.RuneLen(r)
		switch {
		case i == 0 && unicode.IsMark(r):
			label.WriteString("◌" + string(r))
		case unicode.IsPrint(r) || joiner: // a joiner changes the shape of its neighbours
			label.WriteRune(r)
		default:
			fmt.Fprintf(&label, "U+%04X", r)
		}
	}
	return label.String()
}
