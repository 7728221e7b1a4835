package models

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/tokenizer"
)

// Encode returns the tokens of a text, or of a pair of texts if second is not empty, with the
// model's special tokens. It neither truncates nor pads. It stops reading a text that has too many
// tokens.
//
// Errors: a directory without a tokenizer; a text that the tokenizer rejects; tokens outside the
// vocabulary, or too many tokens.
func (m *Model) Encode(first, second string) (*tokenizer.Encoding, error) {
	return m.encode(context.Background(), first, second)
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

// encodeAll encodes texts by a function such as Embedder.Encode. An error has the number of the text, unless ctx ends.
func encodeAll(
	ctx context.Context, encode func(context.Context, string) (*tokenizer.Encoding, bool, error), texts []string,
) (all []*tokenizer.Encoding, err error) {
	all = make([]*tokenizer.Encoding, len(texts))
	for i, text := range texts {
		if all[i], _, err = encode(ctx, text); err != nil {
			return nil, cmp.Or(ctx.Err(), fmt.Errorf("text %d: %w", i, err))
		}
	}
	return all, ctx.Err()
}

// MaskToken returns the id of the mask token: the mask_token of tokenizer_config.json, or else one
// with a common name.
func (m *Model) MaskToken() (int, error) { return m.namedToken("mask_token", "[MASK]", "<mask>") }

// namedToken returns the id of the token that tokenizer_config.json has under a key, or else of one of the usual names.
func (m *Model) namedToken(key string, names ...string) (int, error) {
	if m.tokenizer == nil {
		return 0, m.untokened
	}
	if s := m.tokens; s != nil && s.Has(key) {
		raw, text := s.values[key], ""
		var object struct{ Content string }
		if json.Unmarshal(raw, &text) != nil {
			if err := json.Unmarshal(raw, &object); err != nil {
				return 0, &FormatError{s.path, fmt.Errorf("%s is %s, want a text", key, quote.JSON(raw))}
			}
			text = object.Content
		}
		names = []string{text}
	}
	for _, name := range names {
		if id, ok := m.tokenizer.ID(name); ok {
			return id, nil
		}
	}
	return 0, &FormatError{m.Dir, fmt.Errorf("has a tokenizer without the %s %s", strings.Replace(key, "_", " ", 1), quote.Texts(names))}
}
