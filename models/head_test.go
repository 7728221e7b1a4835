package models

import (
	"maps"
	"slices"
	"testing"
)

// TestPadding compares the tokens that the head of a decoder leaves out with pad_token_id of transformers' configuration
// classes: null is none, and a file without it has that of its class.
func TestPadding(t *testing.T) {
	const absent = -2
	for _, c := range []struct {
		kind string
		pad  any
		want []int
	}{
		{"llama", 6, []int{6}}, {"llama", -1, []int{-1}}, {"llama", absent, nil}, {"gpt2", absent, nil}, {"mistral", absent, nil},
		{"mixtral", absent, nil}, {"qwen2", absent, nil}, {"qwen3", absent, nil}, {"qwen3_moe", absent, nil},
		{"starcoder2", absent, nil}, {"gpt_neox", absent, nil}, {"granite", absent, nil}, {"gemma", absent, []int{0}},
		{"gemma2", absent, []int{0}}, {"gemma3_text", absent, []int{0}}, {"olmo2", absent, []int{1}}, {"olmo3", absent, []int{1}},
		{"phi3", absent, []int{32000}}, {"smollm3", absent, []int{128004}}, {"gemma", nil, nil}, {"phi3", 7, []int{7}},
	} {
		config := maps.Clone(readPublished(t, c.kind)[0].Config)
		config["architectures"] = []string{"ForSequenceClassification"}
		if config["pad_token_id"] = c.pad; c.pad == absent {
			delete(config, "pad_token_id")
		}
		n, err := planSettings(t, config, []string{"score.weight"})
		if err != nil {
			t.Fatal(err)
		}
		if got := n.Head().Padding; !slices.Equal(got, c.want) {
			t.Errorf("%s with pad_token_id %v: %v, want %v", c.kind, c.pad, got, c.want)
		}
	}
}
