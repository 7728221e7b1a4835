package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/models"
)

type modelsCommand struct {
	Dir  string `arg:"" help:"Directory of a pretrained model." placeholder:"DIR"`
	JSON bool   `name:"json" help:"Write a JSON object."`
}

func (modelsCommand) Help() string {
	return `Examples:

  attn models bert-base-uncased
  attn models --json all-MiniLM-L6-v2

attn reads config.json and the headers of the weights. It checks that it supports every
setting, and that every tensor is expected and has the right shape: if the command succeeds,
the model can be loaded. Families: ` + strings.Join(models.Families().Types(), ", ") + `.`
}

// described is the object of --json.
type described struct {
	Family     string   `json:"family"`
	Name       string   `json:"name"`
	Kind       string   `json:"kind"`
	Layers     int      `json:"layers"`
	Heads      int      `json:"heads"`
	KVHeads    int      `json:"kv_heads"`
	HeadSize   int      `json:"head_size"`
	Left       []int    `json:"heads_left,omitempty"` // of each layer, if some have lost any
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
	Unpooled   string   `json:"pipeline_error,omitempty"`
	// Decoder is that behind an encoder, whose sizes the others then are.
	Decoder *decoderSizes `json:"decoder,omitempty"`
}

// decoderSizes are those of a decoder behind an encoder.
type decoderSizes struct {
	Layers     int `json:"layers"`
	Heads      int `json:"heads"`
	HeadSize   int `json:"head_size"`
	Hidden     int `json:"hidden"`
	Vocabulary int `json:"vocabulary"`
}

func (cmd *modelsCommand) Run(c console) error {
	d, err := load(c, models.Describe, cmd.Dir, models.Options{})
	if err != nil {
		return err
	}
	z := d.Sizes
	all := described{
		Family: d.Family.Type, Name: d.Family.Name, Kind: z.Kind.String(), Layers: z.Layers, Heads: z.Heads, KVHeads: z.KVHeads,
		HeadSize: z.HeadSize, Left: d.Heads, Width: z.Width, Hidden: z.Hidden, Vocabulary: z.Vocabulary, TokenTypes: z.Types, Positions: z.Positions,
		Task: string(d.Task), Labels: d.Labels, Parameters: d.Parameters, Bytes: d.Bytes, Memory: d.Memory, Tokens: d.Tokens, Pipeline: d.Pipeline,
	}
	if y := z.Decoder; y != nil {
		all.Kind, all.Decoder = "encoder and decoder", &decoderSizes{y.Layers, y.Heads, y.HeadSize, y.Hidden, y.Vocabulary}
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
	if cmd.JSON {
		enc := json.NewEncoder(c.out)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(all)
	}
	_, err = fmt.Fprint(c.out, all.screen())
	return err
}

// screen is what people read.
func (d *described) screen() string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-11s %s\n", name, quote.Message(fmt.Sprintf(format, args...)))
	}
	line("family", "%s (%s), %s", d.Name, d.Family, d.Kind)
	line("layers", "%d", d.Layers)
	if d.Decoder != nil {
		line("decoder", "%d layers of %d heads of size %d, %s tokens", d.Decoder.Layers, d.Decoder.Heads, d.Decoder.HeadSize, quote.Count(d.Decoder.Vocabulary))
	}
	heads := fmt.Sprintf("%d of size %d", d.Heads, d.HeadSize)
	if d.KVHeads != d.Heads {
		heads += fmt.Sprintf(", %d of keys and values", d.KVHeads)
	}
	if d.Left != nil {
		heads += "; left in the layers: " + strings.Trim(fmt.Sprint(d.Left), "[]")
	}
	line("heads", "%s", heads)
	line("width", "%d, %d in feed-forward networks", d.Width, d.Hidden)
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
