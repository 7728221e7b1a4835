package main

import (
	"fmt"
	"strings"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/models"
)

// description is the JSON object of a models.Description.
type description struct {
	Family     string   `json:"family"`
	Name       string   `json:"name"`
	Kind       string   `json:"kind"`
	Layers     int      `json:"layers"`
	Kinds      []string `json:"layer_types,omitempty"` // of a hybrid
	Heads      int      `json:"heads"`
	KVHeads    int      `json:"kv_heads"`
	HeadSize   int      `json:"head_size"`
	Left       []int    `json:"heads_left,omitempty"` // in each attention layer, if heads were removed
	Width      int      `json:"width"`
	Hidden     int      `json:"hidden"`
	Vocabulary int      `json:"vocabulary"`
	TokenTypes int      `json:"token_types"`
	Positions  int      `json:"positions"`
	Task       string   `json:"task"`
	Labels     []string `json:"labels,omitempty"`
	Parameters int      `json:"parameters"`
	Bytes      int      `json:"file_bytes"`
	Types      []string `json:"dtypes"`
	Memory     int      `json:"memory_bytes"`
	Tokens     int      `json:"tokenizer_tokens"`
	Untokened  string   `json:"tokenizer_error,omitempty"`
	Pipeline   []string `json:"pipeline,omitempty"`
	Routes     []string `json:"routes,omitempty"` // of a Router, that of the pipeline first
	Unpooled   string   `json:"pipeline_error,omitempty"`
	Late       bool     `json:"late_interaction,omitempty"`
	// Decoder has the sizes of the decoder of an encoder-decoder, whose other sizes are the encoder's.
	Decoder *decoderSizes `json:"decoder,omitempty"`
}

// decoderSizes are the sizes of the decoder of an encoder-decoder.
type decoderSizes struct {
	Layers     int `json:"layers"`
	Heads      int `json:"heads"`
	HeadSize   int `json:"head_size"`
	Hidden     int `json:"hidden"`
	Vocabulary int `json:"vocabulary"`
}

// newDescription returns the JSON object that attn models --json writes.
func newDescription(d *models.Description) *description {
	z, kind := d.Sizes, "encoder"
	switch {
	case z.Causal:
		kind = "decoder"
	case z.Layers == 0:
		kind = "table"
	}
	all := &description{
		Family: d.Family.Type, Name: d.Family.Name, Kind: kind, Layers: z.Layers, Kinds: d.Kinds, Heads: z.Heads,
		KVHeads: z.KVHeads, HeadSize: z.HeadSize, Left: d.Heads, Width: z.Width, Hidden: z.Hidden,
		Vocabulary: z.Vocabulary, TokenTypes: z.Types, Positions: z.Positions, Task: string(d.Task), Labels: d.Labels,
		Parameters: d.Parameters, Bytes: d.Bytes, Memory: d.Memory, Tokens: d.Tokens, Pipeline: d.Pipeline, Routes: d.Routes, Late: d.Late,
	}
	if y := z.Decoder; y != nil {
		all.Kind = "encoder and decoder"
		all.Decoder = &decoderSizes{y.Layers, y.Heads, y.HeadSize, y.Hidden, y.Vocabulary}
	}
	for _, t := range d.Types {
		all.Types = append(all.Types, string(t))
	}
	if d.TokenizerError != nil {
		all.Untokened = d.TokenizerError.Error()
	}
	if d.Unpooled != nil {
		all.Unpooled = d.Unpooled.Error()
	}
	return all
}

// kinds returns how many layers of each kind a hybrid has, in the order of their first ones.
func (d *description) kinds() string {
	count, list := map[string]int{}, []string{}
	for _, k := range d.Kinds {
		if count[k]++; count[k] == 1 {
			list = append(list, k)
		}
	}
	for i, k := range list {
		list[i] = fmt.Sprintf("%d of %s", count[k], strings.ReplaceAll(k, "_", " "))
	}
	if len(list) == 0 {
		return ""
	}
	return ": " + strings.Join(list, ", ")
}

// lines returns the description as lines of a name and a value. Text from files is escaped.
func (d *description) lines() string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-11s %s\n", name, quote.Message(fmt.Sprintf(format, args...)))
	}
	line("family", "%s (%s), %s", d.Name, d.Family, d.Kind)
	if d.Layers > 0 {
		line("layers", "%d%s", d.Layers, d.kinds())
	}
	if y := d.Decoder; y != nil {
		line("decoder", "%d layers of %d heads of size %d, %s tokens",
			y.Layers, y.Heads, y.HeadSize, quote.Count(y.Vocabulary))
	}
	heads := fmt.Sprintf("%d of size %d", d.Heads, d.HeadSize)
	if d.KVHeads != d.Heads {
		heads += fmt.Sprintf(", %d of keys and values", d.KVHeads)
	}
	if d.Left != nil {
		heads += "; left in the layers: " + strings.Trim(fmt.Sprint(d.Left), "[]")
	}
	switch {
	case d.Layers == 0:
		line("width", "%d", d.Width)
	case d.Hidden > 0:
		line("heads", "%s", heads)
		line("width", "%d, %d in feed-forward networks", d.Width, d.Hidden)
	default:
		line("heads", "%s", heads)
		line("width", "%d, without feed-forward networks", d.Width)
	}
	if d.Positions > 0 {
		line("text", "up to %d tokens", d.Positions)
	} else {
		line("text", "of any length")
	}
	vocabulary := quote.Count(d.Vocabulary) + " tokens"
	if d.TokenTypes > 1 {
		vocabulary += fmt.Sprintf(", %d types of tokens", d.TokenTypes)
	}
	line("vocabulary", "%s", vocabulary)
	switch {
	case d.Late:
		line("head", "none: vectors of tokens, for late interaction")
	case d.Layers == 0:
		line("head", "none: a row of the table for each token")
	case d.Task == "":
		line("head", "none: hidden states only")
	case len(d.Labels) > 0:
		const most = 6
		labels := strings.Join(d.Labels[:min(most, len(d.Labels))], ", ")
		if n := len(d.Labels) - most; n > 0 {
			labels += fmt.Sprintf(" and %d more", n)
		}
		line("head", "%s: %s", d.Task, labels)
	default:
		line("head", "%s", d.Task)
	}
	if d.Routes != nil {
		line("routes", "%s", strings.Join(d.Routes, ", "))
	}
	if d.Pipeline != nil {
		line("pipeline", "%s", strings.Join(d.Pipeline, ", "))
		if d.Unpooled != "" {
			line("", "which cannot be used: %s", d.Unpooled)
		}
	}
	if d.Untokened != "" {
		line("tokenizer", "none: %s", d.Untokened)
	} else {
		line("tokenizer", "%s tokens", quote.Count(d.Tokens))
	}
	line("parameters", "%s", quote.Count(d.Parameters))
	line("file", "%s, %s", quote.Bytes(d.Bytes), strings.Join(d.Types, " and "))
	line("memory", "%s, as F32", quote.Bytes(d.Memory))
	line("loads", "yes: every setting is known, every tensor has its place and shape")
	return b.String()
}
