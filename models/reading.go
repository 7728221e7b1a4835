package models

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/attn-go/attn/tokenizer"
)

// Reading is a text, or two, as a model reads them; see Model.Read.
type Reading struct {
	// First is the text. Second is the second text of a pair, the target of an encoder–decoder, or what Generate has
	// added; empty if there is none.
	First, Second string
	// Tokens are those of First, or of both texts of a pair.
	Tokens *tokenizer.Encoding
	// Target are the tokens of a target, or those that Generate has added; nil if there are none.
	Target *tokenizer.Encoding

	model *Model
}

// Read returns the tokens of a text, or of a pair of texts if second is not empty. In an encoder–decoder, second is the
// target.
//
// Errors: those of Encode, for each text.
func (m *Model) Read(first, second string) (Reading, error) {
	if second != "" && m.Sizes().Decoder != nil {
		return m.ReadTarget(first, second)
	}
	e, err := m.Encode(first, second)
	return Reading{First: first, Second: second, Tokens: e, model: m}, err
}

// ReadTarget is Read for a source and its target, which may be empty.
func (m *Model) ReadTarget(source, target string) (Reading, error) {
	r := Reading{First: source, Second: target, model: m}
	var err error
	if r.Tokens, err = m.Encode(source, ""); err == nil {
		r.Target, err = m.encodeTarget(target)
	}
	return r, err
}

// Generate returns the reading with the tokens that the model generates. A decoder continues the text by at most g.Tokens
// tokens. An encoder–decoder writes the target, including its end; a limit of 0 depends on the text.
//
// Errors: those of Model.Generate; a reading with a second text; in a decoder, a limit that is not positive or leaves
// the model's positions; in an encoder–decoder, a target without tokens; the error of a ctx that ends.
func (r Reading) Generate(ctx context.Context, g Generation) (Reading, error) {
	m, n := r.model, len(r.Tokens.IDs)
	var begin, ends []int
	var err error
	switch z := m.Sizes(); {
	case r.Second != "":
		return r, errors.New("models: Generate: the text is followed by another")
	case z.Decoder != nil:
		if begin, err = m.forced(); err != nil {
			return r, err
		}
		if ends = g.Ends; ends == nil {
			if ends, err = m.EndTokens(); err != nil {
				return r, err
			}
		}
		g.Tokens, g.Ends = cmp.Or(g.Tokens, targetTokens(n)), []int{} // the end is a token of the target
	case g.Tokens < 1:
		return r, fmt.Errorf("models: Generate: %d tokens, want at least 1", g.Tokens)
	case z.Positions > 0 && g.Tokens > z.Positions-n:
		return r, fmt.Errorf("models: Generate: %d tokens after %d, want at most %d in all", g.Tokens, n, z.Positions)
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
	r.Second, r.Target = m.Decode(ids), m.encodingOf(ids)
	for i := range r.Target.Special {
		r.Target.Special[i] = i < len(begin) || ended && i == len(ids)-1
	}
	return r, nil
}

// targetTokens is the default limit of the tokens of a target, for a source of n tokens.
func targetTokens(n int) int { return 2*n + 20 }

// Model returns the model that reads.
func (r Reading) Model() *Model { return r.model }

// Batch returns what the model reads: the tokens of one sequence.
//
// Errors: a model without a start token; too many tokens of a target.
func (r Reading) Batch() (Batch, error) {
	x := BatchOf(r.Tokens)
	if r.Target == nil {
		return x, nil
	}
	y := r.model.Sizes().Decoder
	if y == nil { // one run over all tokens gives the same weights as single steps, bit for bit
		return Batch{IDs: [][]int{slices.Concat(x.IDs[0], r.Target.IDs)}}, nil
	}
	start, err := r.model.startToken()
	if err != nil {
		return x, err
	}
	x.Targets = [][]int{append([]int{start}, r.Target.IDs[:len(r.Target.IDs)-1]...)}
	if err := y.Check(Batch{IDs: x.Targets}); err != nil {
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
	l.Source = labels(m.tokenizer, r.Tokens, r.First, r.Second)
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
	target := labels(m.tokenizer.Target(), r.Target, r.Second)
	if m.Sizes().Decoder == nil {
		l.Source = append(l.Source, target...)
		return l, nil
	}
	first := m.encodingOf(x.Targets[0][:1])
	first.Special[0] = true
	l.Target, l.Read = target, append(first.Tokens, target[:len(target)-1]...)
	special(first, first.Tokens)
	special(r.Target, target)
	slices.Sort(l.Special)
	return l, nil
}
