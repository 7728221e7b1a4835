package models

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/attn-go/attn/tokenizer"
)

// encode is Encode until ctx ends.
func (m *Model) encode(ctx context.Context, first, second string) (e *tokenizer.Encoding, err error) {
	t := m.tokenizer
	if t == nil {
		return nil, m.untokened
	}
	o := atMost(m.Sizes().Positions)
	o.Context = ctx
	// A first text that is too long alone is rejected without reading all of the second.
	o.NoSpecial = second != ""
	if e, err = t.Encode(first, o); second != "" && err == nil && !e.Truncated {
		o.NoSpecial = false
		e, err = t.EncodePair(first, second, o)
	}
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

// atMost returns the options for a text of no more than most tokens; 0 for any number.
func atMost(most int) tokenizer.Options {
	return tokenizer.Options{NoPadding: true, NoTruncation: most == 0, MaxLength: most, Strategy: tokenizer.LongestFirst}
}

// tooMany returns an error for truncated tokens.
func tooMany(what string, e *tokenizer.Encoding, most int) error {
	if e.Truncated {
		return fmt.Errorf("the %s has more than %d tokens, the limit of the model", what, most)
	}
	return nil
}

// EncodeTarget is Encode for a target text of an encoder–decoder.
func (m *Model) EncodeTarget(target string) (*tokenizer.Encoding, error) {
	if m.tokenizer == nil {
		return nil, m.untokened
	}
	if _, err := m.Forced(); err != nil { // the tokenizer would begin the target with the language of sources
		return nil, err
	}
	most := m.Sizes().Decoder.Positions
	y, err := m.tokenizer.Target().Encode(target, atMost(most))
	if err == nil {
		err = tooMany("target", y, most)
	}
	if err == nil && len(y.IDs) == 0 {
		err = errors.New("the target has no tokens, want one or more")
	}
	return y, err
}

// Decode returns the text of target tokens of an encoder–decoder with a tokenizer, without a space at its end.
func (m *Model) Decode(ids []int) string {
	return strings.TrimSuffix(m.tokenizer.Target().Decode(ids), " ")
}
