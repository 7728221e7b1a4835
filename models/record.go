package models

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tokenizer"
)

// Encode returns the tokens of a text, or of a pair of texts if second is not empty, with the
// model's special tokens. It neither truncates nor pads. It stops reading a text that has too many
// tokens.
//
// Errors: a directory without a tokenizer; a text that the tokenizer rejects; tokens outside the
// vocabulary, or too many tokens.
func (m *Model) Encode(first, second string) (*tokenizer.Encoding, error) {
	if m.tokenizer == nil {
		return nil, m.untokened
	}
	e, err := m.encode(first, second, m.Sizes().Positions)
	if err == nil {
		err = tooMany("text", e, m.Sizes().Positions)
	}
	if err != nil {
		return nil, err
	}
	if err := m.Sizes().Check(BatchOf(e)); err != nil {
		return nil, fmt.Errorf("the text has %w", err)
	}
	return e, nil
}

// Tokens is Encode of several texts, as a batch.
func (m *Model) Tokens(texts ...string) (Batch, error) {
	var all []*tokenizer.Encoding
	for i, text := range texts {
		e, err := m.Encode(text, "")
		if err != nil {
			return Batch{}, fmt.Errorf("text %d: %w", i, err)
		}
		all = append(all, e)
	}
	return BatchOf(all...), nil
}

// recorded runs the model and returns the record, in which heads have their numbers from the
// unpruned model and their shared key/value heads.
func (m *Model) recorded(ctx context.Context, x Batch, texts heads.Texts, o heads.RecorderOptions) (*heads.Record, error) {
	layers := m.Attention()
	some := slices.ContainsFunc(layers, func(l *attn.MultiHead) bool { return l.Config().Heads > 0 })
	if len(layers) > 0 && !some {
		return nil, errors.New("the model has no attention heads left, so it has no weights to record")
	}
	recorder := heads.NewRecorder(o)
	observers, inspect := recorder.Callbacks()
	var tape *tensor.Tape
	if inner := inspect; o.OnRequest { // the record keeps tensors, and with them all memory of a tape
		inspect = func(layer string, p attn.Parts) { par.Check(ctx); inner(layer, p) }
	} else {
		tape = tensor.NewTape(tensor.Infer)
		tape.SetContext(ctx)
	}
	if err := par.Stopped(func() { m.Hidden(tape, x, Run{Observers: observers, Inspect: inspect}) }); err != nil {
		return nil, err
	}
	r, err := recorder.Record(texts)
	if err != nil {
		return r, err
	}
	configs := map[string]attn.MultiHeadConfig{}
	for _, l := range layers {
		configs[l.Config().Name] = l.Config()
	}
	for i := range r.Layers {
		l := &r.Layers[i]
		c, ok := configs[l.Name]
		if !ok { // attention without a layer
			continue
		}
		if left := m.kept[c.Name]; left != nil {
			if l.Chosen != nil {
				left = pick(left, l.Chosen)
			}
			l.Chosen = slices.Clone(left)
		}
		if c.KVHeads == c.Heads {
			continue
		}
		l.KeyHeads = make([]int, l.Heads)
		for h := range l.KeyHeads {
			l.KeyHeads[h] = l.Number(h) / (c.Heads / c.KVHeads)
		}
	}
	return r, nil
}

// pick returns the elements of x at some places.
func pick[T any](x []T, at []int) []T {
	y := make([]T, len(at))
	for i, n := range at {
		y[i] = x[n]
	}
	return y
}
