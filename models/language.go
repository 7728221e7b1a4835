package models

import (
	"errors"
	"fmt"
	"strings"

	"github.com/attn-go/attn/tokenizer"
)

// encode returns the tokens that a model reads of a text, or of a pair of texts if second is not empty. It may truncate
// them to most tokens if most is not 0.
func (m *Model) encode(first, second string, most int) (*tokenizer.Encoding, error) {
	t := m.tokenizer
	if second == "" {
		return t.Encode(first, atMost(most))
	}
	// A first text that is too long alone is rejected without reading all of the second.
	o := atMost(most)
	o.NoSpecial = true
	if e, err := t.Encode(first, o); err != nil || e.Truncated {
		return e, err
	}
	return t.EncodePair(first, second, atMost(most))
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
