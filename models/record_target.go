package models

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/tokenizer"
)

// recordTarget is Record of an encoder–decoder.
func (m *Model) recordTarget(ctx context.Context, source, target string, o heads.RecorderOptions) (*heads.Record, error) {
	e, err := m.Encode(source, "")
	if err != nil {
		return nil, err
	}
	var y *tokenizer.Encoding
	written := target == ""
	if written {
		y, err = m.written(ctx, e.IDs)
	} else {
		y, err = m.encodeTarget(target)
	}
	if err != nil {
		return nil, err
	}
	reads, err := m.reads(y.IDs)
	if err != nil {
		return nil, err
	}
	x := BatchOf(e)
	x.Targets = [][]int{reads}
	if err := m.Sizes().Check(x); err != nil {
		return nil, fmt.Errorf("the text has %w", err)
	}
	if written {
		target = m.Decode(y.IDs)
	}
	texts := m.texts(source, target, e)
	texts.TargetTokens = labels(m.tokenizer.Target(), y, target)
	first := m.encodingOf(reads[:1]).Tokens[0]
	texts.ReadTokens = append([]string{first}, texts.TargetTokens[:len(y.IDs)-1]...)
	texts.Special = append(texts.Special, first)
	for i, label := range texts.TargetTokens {
		if y.Special[i] {
			texts.Special = append(texts.Special, label)
		}
	}
	slices.Sort(texts.Special)
	texts.Special = slices.Compact(texts.Special)
	return m.recorded(ctx, x, texts, o)
}

// written returns the tokens that the model writes for a source, including those with which it has to begin and the end
// token if it writes one.
func (m *Model) written(ctx context.Context, source []int) (*tokenizer.Encoding, error) {
	g := Generation{Tokens: targetTokens(source), Ends: []int{}}
	ends, err := m.EndTokens()
	if err != nil {
		return nil, err
	}
	tokens, err := m.Generate(ctx, source, g)
	if err != nil {
		return nil, err
	}
	begin, err := m.forced()
	if err != nil {
		return nil, err
	}
	ids, end := slices.Clone(begin), false
	for id := range tokens {
		ids, end = append(ids, id), slices.Contains(ends, id)
		if end {
			break
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(ids) == len(begin) {
		return nil, errors.New("the model generates no tokens for this text")
	}
	y := m.encodingOf(ids)
	for i := range begin {
		y.Special[i] = true
	}
	if end {
		y.Special[len(ids)-1] = true
	}
	return y, nil
}

// targetTokens is the default limit for the number of target tokens.
func targetTokens(source []int) int { return 2*len(source) + 20 }
