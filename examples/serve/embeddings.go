package main

import (
	"context"
	"encoding/binary"
	"slices"

	"github.com/attn-go/attn/models"
)

// embeddings answers in the form of OpenAI's API.
type embeddings struct {
	e        *models.Embedder
	name     string
	truncate bool
	batches  *batcher
}

type embedding struct {
	Object    string `json:"object"`
	Index     int    `json:"index"`
	Embedding any    `json:"embedding"` // []float32, or []byte, which becomes base64
}

// create reads {"input": …}, and answers with the vectors of the texts.
func (v *embeddings) create(c *call) (any, error) {
	var list inputs
	var user string
	model, format, n := v.name, "float", v.e.Width()
	err := c.read(v.batches, map[string]any{"input": &list, "model": &model, "encoding_format": &format, "dimensions": &n, "user": &user})
	if err != nil {
		return nil, err
	}
	cut, err := v.e.Cut(n)
	switch {
	case err != nil:
		return nil, problemf(invalid, "dimensions", "%q %w", "dimensions", err)
	case list == nil:
		return nil, problemf(invalid, "input", "no %q", "input")
	case model != v.name:
		return nil, problemf(noModel, "model", "the model %q does not exist, want %s", model, v.name)
	case format != "float" && format != "base64":
		return nil, problemf(invalid, "encoding_format", "encoding_format is %q, want float or base64", format)
	}
	rows, tokens, err := v.batches.run(c, list, v.e.Width(), v.truncate)
	if err != nil {
		return nil, err
	}
	data := make([]embedding, len(rows))
	for i, row := range rows {
		data[i] = embedding{"embedding", i, cut(row)}
		if format == "base64" {
			data[i].Embedding, _ = binary.Append(nil, binary.LittleEndian, cut(row))
		}
	}
	usage := map[string]int{"prompt_tokens": tokens, "total_tokens": tokens}
	return map[string]any{"object": "list", "data": data, "model": v.name, "usage": usage}, nil
}

// models answers with the list of the models, which has one, or with that one.
func (v *embeddings) models(c *call) (any, error) {
	model := map[string]any{"id": v.name, "object": "model", "created": 0, "owned_by": "attn"}
	switch name := c.PathValue("name"); name {
	case "":
		return map[string]any{"object": "list", "data": []any{model}}, nil
	case v.name:
		return model, nil
	default:
		return nil, problemf(noModel, "model", "the model %q does not exist, want %s", name, v.name)
	}
}

// encodeFor returns the function that encodes the input of an embedder.
func encodeFor(e *models.Embedder) encode {
	return func(ctx context.Context, x input) (models.Batch, bool, error) {
		if x.tokens != nil {
			batch, err := checked(ctx, e, x.tokens)
			return batch, false, err
		}
		own, truncated, err := e.Encode(ctx, x.texts[0])
		if err != nil {
			return models.Batch{}, false, problemf(noTokens, "input", "%w", err)
		}
		return models.BatchOf(own), truncated, nil
	}
}

// checked returns the tokens of a client as a batch. They are complete: with the special tokens of the model, which the
// tokens of another tokenizer lack, such as that of OpenAI's models, whose ids would give a vector of nonsense.
func checked(ctx context.Context, e *models.Embedder, ids []int) (models.Batch, error) {
	if e.Prompt != "" {
		return models.Batch{}, problemf(invalid, "input", "the model has a prompt, want texts instead of token ids")
	}
	one, _, err := e.Encode(ctx, "a")
	if err != nil {
		return models.Batch{}, problemf(noTokens, "input", "%w", err)
	}
	start := max(0, slices.Index(one.Texts, 0)) // number of special tokens before a text
	end := len(one.IDs)
	for end > start && one.Texts[end-1] < 0 {
		end--
	}
	before, after := one.IDs[:start], one.IDs[end:]
	switch n := len(ids); {
	case n < start+len(after) || !slices.Equal(ids[:start], before) || !slices.Equal(ids[n-len(after):], after):
		return models.Batch{}, problemf(invalid, "input", "token ids of another model, want %d before and %d after those of the text", before, after)
	case n > e.MostTokens:
		return models.Batch{}, problemf(tooLarge, "input", "%d tokens, want at most %d", n, e.MostTokens)
	}
	batch := models.Batch{IDs: [][]int{ids}, Types: [][]int{make([]int, len(ids))}}
	if err := e.Model.Sizes().Check(batch); err != nil {
		return models.Batch{}, problemf(invalid, "input", "%w", err)
	}
	return batch, nil
}
