package models

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/attn-go/attn/internal/quote/hostile"
	"github.com/attn-go/attn/internal/strictjson"
)

func TestConfigValidate(t *testing.T) {
	good := TranslatorConfig{Arch: Transformer, Score: "scaled", Width: 12, Heads: 3, Layers: 2, Hidden: 8, Dropout: 0.1, SourceVocab: 9, TargetVocab: 7}
	gru := good
	gru.Arch, gru.Hidden, gru.Heads = GRU, 0, 0
	for _, c := range append(toyConfigs(), good, gru) {
		c.SourceVocab, c.TargetVocab = 9, 7
		if err := c.Validate(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
	nan := float32(math.NaN())
	for _, c := range []struct {
		want   string // in the error
		from   TranslatorConfig
		change func(*TranslatorConfig)
	}{
		{`arch "rnn", want transformer or gru`, good, func(c *TranslatorConfig) { c.Arch = "rnn" }},
		{`arch ""`, good, func(c *TranslatorConfig) { c.Arch = "" }},
		{`score "softmax", want one of scaled, dot, additive, bilinear, scaled-bilinear, gaussian, cosine`, good, func(c *TranslatorConfig) { c.Score = "softmax" }},
		{"width 0, want an even number", good, func(c *TranslatorConfig) { c.Width = 0 }},
		{"width -2, want an even number", good, func(c *TranslatorConfig) { c.Width = -2 }},
		{"width 15, want an even number", good, func(c *TranslatorConfig) { c.Width, c.Heads = 15, 5 }},
		{"width 65538, want an even number", good, func(c *TranslatorConfig) { c.Width = 65538 }},
		{"width 14 is not divisible by 3 heads", good, func(c *TranslatorConfig) { c.Width = 14 }},
		{"heads 0, want at least 1", good, func(c *TranslatorConfig) { c.Heads = 0 }},
		{"heads -1, want at least 1", gru, func(c *TranslatorConfig) { c.Heads = -1 }},
		{"layers 0, want 1 to", good, func(c *TranslatorConfig) { c.Layers = 0 }},
		{"layers 1025, want 1 to 1024", gru, func(c *TranslatorConfig) { c.Layers = 1025 }},
		{"hidden 0, want 1 to", good, func(c *TranslatorConfig) { c.Hidden = 0 }},
		{"hidden 1048577, want 1 to", good, func(c *TranslatorConfig) { c.Hidden = 1<<20 + 1 }},
		{"hidden 8, but a gru has no such layers", gru, func(c *TranslatorConfig) { c.Hidden = 8 }},
		{"dropout 1 is outside [0, 1)", good, func(c *TranslatorConfig) { c.Dropout = 1 }},
		{"dropout -0.1 is outside", good, func(c *TranslatorConfig) { c.Dropout = -0.1 }},
		{"dropout NaN is outside", good, func(c *TranslatorConfig) { c.Dropout = nan }},
		{"vocabularies of 3 and 7 entries", good, func(c *TranslatorConfig) { c.SourceVocab = 3 }},
		{"vocabularies of 9 and 1048577 entries", good, func(c *TranslatorConfig) { c.TargetVocab = 1<<20 + 1 }},
		{"parameters, want at most", good, func(c *TranslatorConfig) { c.Width, c.Layers = 6000, 10 }},
		{"parameters, want at most", gru, func(c *TranslatorConfig) { c.Width = 60000 }},
		{"parameters, want at most", good, func(c *TranslatorConfig) { c.Width, c.SourceVocab = 3072, 1<<20 }},
	} {
		c.change(&c.from)
		if err := c.from.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %s", c.from, err, c.want)
		}
	}
}

// An error about an arbitrary config.json is one line without control characters.
func TestHostileConfig(t *testing.T) {
	config, err := json.Marshal(TranslatorConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{hostile.Text, hostile.Long} {
		for changed := range hostile.Files(config, text) {
			var c TranslatorConfig
			err := strictjson.Unmarshal(changed, &c)
			if err == nil {
				err = c.Validate()
			}
			if err == nil {
				continue
			}
			if bad := hostile.Check(err.Error()); bad != nil {
				t.Error(bad)
			}
		}
	}
}
