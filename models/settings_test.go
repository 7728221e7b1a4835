package models_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/observe"
	"github.com/attn-go/attn/tensor"
)

// An attention factor of 0 makes all rotated vectors zero, as in transformers: each query attends to all its keys
// equally. Without the setting, the factor is that of the paper.
func TestAttentionFactorZero(t *testing.T) {
	for _, c := range []struct {
		dir, part string
		factor    any
	}{
		{"llama_yarn", "rope_parameters", 0}, {"llama_yarn", "rope_parameters", 0.0}, {"llama_longrope", "rope_scaling", 0.0},
	} {
		data, err := os.ReadFile(filepath.Join("testdata/decoders", c.dir, "config.json"))
		if err != nil {
			t.Fatal(err)
		}
		part := decoded(t, data)[c.part].(object)
		part["attention_factor"] = c.factor
		m, err := models.Load(edit(t, "decoders/"+c.dir, object{c.part: part}), models.Options{})
		if err != nil {
			t.Fatal(err)
		}
		m.Hidden(nil, models.Batch{IDs: [][]int{{3, 1, 4, 1}}}, models.Run{Observers: []attn.Observer{observe.Weights(func(layer string, w *tensor.Tensor) {
			for i := range 4 {
				for j := range i + 1 {
					if got, want := w.At(0, 0, i, j), 1/float32(i+1); got < want-1e-6 || got > want+1e-6 {
						t.Errorf("%s, %s: weight of query %d and key %d is %v, want %v", c.dir, layer, i, j, got, want)
					}
				}
			}
		})}})
	}
}

// A T5 whose buckets do not cover every distance accepts only texts in which transformers, too, finds a bucket for
// each distance.
func TestT5Lengths(t *testing.T) {
	for _, c := range []struct{ most, source, target int }{{13, 0, 0}, {4, 0, 4}, {3, 0, 6}, {2, 2, 10}, {1, 6, 23}} {
		m, err := models.Load(edit(t, "seq2seq/t5", object{"relative_attention_max_distance": c.most}), models.Options{})
		if err != nil {
			t.Fatal(err)
		}
		z := m.Sizes()
		if z.Positions != c.source || z.Decoder.Positions != c.target {
			t.Errorf("distance %d: texts of %d and %d tokens, want %d and %d", c.most, z.Positions, z.Decoder.Positions, c.source, c.target)
		}
		if c.source == 0 {
			continue
		}
		ids := make([]int, c.source+1)
		if err := z.Check(models.Batch{IDs: [][]int{ids}}); err == nil || !strings.Contains(err.Error(), "tokens, want at most") {
			t.Errorf("distance %d, %d tokens: error %v, want that there are too many", c.most, len(ids), err)
		}
	}
	refusals := []struct {
		change object
		want   string
	}{
		{object{"relative_attention_num_buckets": 3}, "config.json: relative_attention_num_buckets is 3, want at least 4"},
		{object{"relative_attention_max_distance": 0}, "config.json: relative_attention_max_distance is 0, want 1 to 16777216"},
	}
	for _, c := range refusals {
		if got := refused(t, edit(t, "seq2seq/t5", c.change)); !strings.Contains(got, c.want) {
			t.Errorf("%v: %s, want %s", c.change, got, c.want)
		}
	}
}

// A limit of 0 tokens differs from none, and a list of no poolings from a missing one.
func TestPipelineZeros(t *testing.T) {
	for _, c := range []struct{ file, text, want string }{
		{"tokenizer_config.json", `{"model_max_length": 0}`, "tokenizer_config.json: model_max_length is 0, want at least 1, or null"},
		{"tokenizer_config.json", `{"model_max_length": "512"}`, `tokenizer_config.json: model_max_length is "512", want a number`},
		{"1_Pooling/config.json", `{"pooling_mode": []}`, "config.json: pooling_mode is [], want the name of a pooling"},
		{"sentence_bert_config.json", `{"max_seq_length": 1}`, "sentence_bert_config.json: max_seq_length is 1, want room for 2 special tokens"},
		{"tokenizer_config.json", `{"model_max_length": null}`, ""},
		{"tokenizer_config.json", `{}`, ""},
	} {
		dir := copyDir(t, "testdata/sentence_mean")
		write(t, filepath.Join(dir, c.file), c.text)
		_, err := models.LoadEmbedder(dir, models.Options{})
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", c.text, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %s", c.text, err, c.want)
		}
	}
}

// A setting that is allowed is ignored, also when the model is loaded again. Others are errors.
func TestAllowedSettings(t *testing.T) {
	dir := edit(t, "bert", map[string]any{"note": 3, "other": []int{1}})
	o := models.Options{Trainable: true, Allowed: []string{"other", "note"}}
	m, err := models.Load(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := models.Describe(dir, o); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(m.Allowed(), o.Allowed) {
		t.Errorf("allowed %q, want %q", m.Allowed(), o.Allowed)
	}
	for want, names := range map[string][]string{
		`setting other = [1] is not known for model_type bert, and may change the result: want only settings that are known, or --allow-setting other if it does not`: {"note"},
		`has no unknown setting "hidden_size" that could be allowed`: {"note", "other", "hidden_size"},
		`has no unknown setting "absent" that could be allowed`:      {"note", "other", "absent"},
	} {
		o.Allowed = names
		if _, err := models.Load(dir, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", names, err, want)
		}
	}
	nested := edit(t, "gemma2_text", map[string]any{"rope_parameters": map[string]any{"rope_type": "linear", "factor": 2, "note": 1}})
	if _, err := models.Load(nested, models.Options{Allowed: []string{"rope_parameters.note"}}); err != nil {
		t.Error(err)
	}
}
