package models

import (
	"context"
	"fmt"
	"slices"

	"github.com/attn-go/attn/heads"
)

// RecordGenerated continues a text by at most g.Tokens tokens and returns the attention weights:
// those of the text, followed by a row for each generated token, as in the step that read it.
//
// Errors: those of Encode, Generate and heads.Recorder; a g.Tokens that is not positive; the
// error of a ctx that ends.
func (m *Model) RecordGenerated(ctx context.Context, text string, g Generation, o heads.RecorderOptions) (*heads.Record, error) {
	if m.Sizes().Decoder != nil {
		return nil, fmt.Errorf("models: RecordGenerated: %s is an encoder-decoder, want a decoder; use Record", m.Family.Name)
	}
	e, err := m.Encode(text, "")
	if err != nil {
		return nil, err
	}
	switch most := m.Sizes().Positions; {
	case g.Tokens < 1:
		return nil, fmt.Errorf("models: RecordGenerated: %d tokens, want at least 1", g.Tokens)
	case most > 0 && g.Tokens > most-len(e.IDs):
		return nil, fmt.Errorf("models: RecordGenerated: %d tokens after %d, want at most %d in all", g.Tokens, len(e.IDs), most)
	}
	tokens, err := m.Generate(ctx, e.IDs, g)
	if err != nil {
		return nil, err
	}
	ids := slices.Collect(tokens)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	texts := m.texts(text, m.Decode(ids), e)
	texts.SourceTokens = append(texts.SourceTokens, labels(m.tokenizer.Target(), m.encodingOf(ids))...)
	// One run over all tokens gives the same weights as the single steps, bit for bit.
	return m.recorded(ctx, Batch{IDs: [][]int{append(BatchOf(e).IDs[0], ids...)}}, texts, o)
}
