package main

import (
	"context"
	"strings"

	"github.com/attn-go/attn/internal/filter"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
)

// pretrained returns the work of a pretrained encoder-decoder on a batch of lines.
func (cmd *translateCommand) pretrained(c console) (func(context.Context, []*filter.Line[translation]) error, error) {
	if cmd.Map {
		return nil, usage("--map goes with a model of attn train, and %s is a pretrained one", quoted(cmd.Model))
	}
	m, err := load(c, models.Load, cmd.Model, models.Options{Weights: tensor.Float32})
	if err != nil {
		return nil, err
	}
	if m.Sizes().Decoder == nil {
		return nil, input.Errorf(cmd.Model, "is a %s model, want an encoder-decoder, such as Marian or T5, or a model of attn train", m.Family.Name)
	}
	t, err := m.Tokenizer()
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, batch []*filter.Line[translation]) error {
		for _, l := range batch {
			if strings.TrimSpace(l.Text) == "" {
				continue
			}
			e, err := m.Encode(l.Text, "")
			if err != nil { // which is about the text
				l.Err = err
				continue
			}
			ids, err := writeTokens(ctx, m, e.IDs, cmd.Beam)
			if err != nil {
				return err
			}
			l.Value.Text = t.Target().Decode(ids)
		}
		return nil
	}, nil
}

// writeTokens returns the tokens that a model writes for those of a source.
func writeTokens(ctx context.Context, m *models.Model, source []int, beam int) (written []int, err error) {
	g := models.Generation{Tokens: longestTarget(len(source))}
	if beam > 1 {
		return m.Beam(ctx, source, beam, g)
	}
	tokens, err := m.Generate(source, g)
	if err != nil {
		return nil, err
	}
	for id := range tokens {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		written = append(written, id)
	}
	return written, nil
}

// longestTarget returns how many tokens an encoder-decoder may write for a source.
func longestTarget(source int) int { return 2*source + 20 }
