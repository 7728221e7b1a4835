package models_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tokenizer"
)

// pipelineCase is a directory with changed files, of an embedder or of a cross-encoder.
type pipelineCase struct {
	Name, Base string
	Files      map[string]json.RawMessage
	Rank       bool
	Want       [][]float64
	Budget     float64 // error of sentence-transformers in float32, for numbers that are not near 1
}

// directory returns the changed directory.
func (c pipelineCase) directory(t *testing.T) string {
	t.Helper()
	dir := copyDir(t, filepath.Join("testdata", c.Base))
	if c.Rank {
		for _, name := range []string{"tokenizer.json", "tokenizer_config.json"} {
			copyFile(t, "testdata/sentence_mean/"+name, filepath.Join(dir, name))
		}
	}
	for name, text := range c.Files {
		path := filepath.Join(dir, name)
		if string(text) != "null" {
			write(t, path, string(text))
		} else if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Every file of a pipeline has the effect that it has in sentence-transformers.
func TestPipelineFiles(t *testing.T) {
	var golden struct {
		Texts []string
		Pairs [][]string
		Cases []pipelineCase
	}
	data, err := os.ReadFile("testdata/pipelines.json")
	if err == nil {
		err = json.Unmarshal(data, &golden)
	}
	if err != nil || len(golden.Cases) < 28 {
		t.Fatalf("%d cases, error %v", len(golden.Cases), err)
	}
	for _, c := range golden.Cases {
		dir := c.directory(t)
		var got *tensor.Tensor
		if c.Rank {
			m, err := models.Load(dir, models.Options{})
			if err != nil {
				t.Fatalf("%s: %v", c.Name, err)
			}
			classifier, err := models.NewClassifier(m)
			if err != nil {
				t.Fatalf("%s: %v", c.Name, err)
			}
			var pairs []*tokenizer.Encoding
			for _, pair := range golden.Pairs {
				x, _, err := classifier.Encode(t.Context(), pair...)
				if err != nil {
					t.Fatalf("%s: %v", c.Name, err)
				}
				pairs = append(pairs, x)
			}
			got = classifier.Logits(tensor.NewTape(tensor.Infer), models.BatchOf(pairs...))
		} else {
			e, err := models.LoadEmbedder(dir, models.Options{})
			if err != nil {
				t.Fatalf("%s: %v", c.Name, err)
			}
			if got, err = e.Embed(t.Context(), golden.Texts...); err != nil {
				t.Fatalf("%s: %v", c.Name, err)
			}
		}
		for i, row := range c.Want {
			for j, want := range row {
				if x := float64(got.At(i, j)); math.Abs(x-want) > max(2e-6, 2*c.Budget) {
					t.Errorf("%s: number %d of text %d is %v, want %v", c.Name, j, i, x, want)
				}
			}
		}
	}
}

// A setting of any file of a pipeline that is not known, or that asks for what attn does not compute, is an error of
// loading that names it; one that changes nothing is not.
func TestPipelineSettings(t *testing.T) {
	const (
		cross   = `{"path": "", "type": "sentence_transformers.base.modules.transformer.Transformer"}`
		plain   = `"transformer_task": "sequence-classification", "module_output_name": "scores"`
		cut     = "config_sentence_transformers.json"
		length  = "sentence_bert_config.json"
		modules = "modules.json"
	)
	rank := func(files ...string) pipelineCase {
		c := pipelineCase{Base: "bert_rank", Rank: true, Files: map[string]json.RawMessage{modules: json.RawMessage("[" + cross + "]")}}
		for i := 0; i < len(files); i += 2 {
			c.Files[files[i]] = json.RawMessage(files[i+1])
		}
		return c
	}
	embed := func(file, text string) pipelineCase {
		return pipelineCase{Base: "sentence_mean", Files: map[string]json.RawMessage{file: json.RawMessage(text)}}
	}
	for _, c := range []struct {
		pipelineCase
		want string
	}{
		{embed(length, `{"max_seq_length": 7, "note": 1}`), "sentence_bert_config.json: setting note = 1 is not known"},
		{embed("sentence_xlnet_config.json", `{"note": 1}`), ""}, // not read beside the newer one
		{embed(length, `{"modality_config": {"message": {"method": "forward", "method_output_name": "last_hidden_state"}}}`), "modality_config.message is"},
		{embed(length, `{"modality_config": {"text": {"method": "get_text_features", "method_output_name": "x"}}}`), `modality_config.text.method is "get_text_features", want "forward"`},
		{embed(length, `{"processing_kwargs": {"text": {"truncation": false}}}`), "processing_kwargs.text.truncation is false, want true"},
		{embed(length, `{"processing_kwargs": {"text": {"truncation": "only_second"}}}`), `processing_kwargs.text.truncation is "only_second"`},
		{embed(length, `{"processing_kwargs": {"common": {"add_special_tokens": false}}}`), "processing_kwargs.common.add_special_tokens is false"},
		{embed(length, `{"processing_kwargs": {"text": {"stride": 2}}}`), "processing_kwargs.text.stride = 2 is not known"},
		{embed(length, `{"processing_kwargs": {"texts": {"max_length": 2}}}`), "processing_kwargs.texts"},
		{embed(length, `{"processing_kwargs": {"text": {"max_length": 0}}}`), "processing_kwargs.text.max_length is 0, want 1 to"},
		{embed(length, `{"processing_kwargs": {"text": {"padding": "max_length", "pad_to_multiple_of": 8}, "image": {"x": 1}}}`), ""},
		{embed(length, `{"query_length": 32}`), "query_length is 32, want none"},
		{embed(length, `{"tokenizer_args": {"model_max_length": 5}}`), `tokenizer_args is {"model_max_length":5}, want {} or none`},
		{embed(length, `{"tokenizer_args": {}, "model_kwargs": {}, "unpad_inputs": false, "query_length": null}`), ""},
		{embed(cut, `{"truncate_dim": 0}`), "config_sentence_transformers.json: truncate_dim is 0, want 1 to"},
		{rank(cut, `{"model_type": "CrossEncoder", "truncate_dim": 8}`, length, `{`+plain+`}`), "config_sentence_transformers.json: setting truncate_dim = 8 is not known"},
		{embed(cut, `{"truncate_dim": null, "requirements": {"transformers": ">=4"}, "similarity_fn_name": "dot"}`), ""},
		{embed(modules, `[`+cross+`, {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling", "note": 1}]`), `modules.json: unknown field "note"`},
		{embed(modules, `[`+cross+`, {"idx": 1, "name": "1", "kwargs": ["task"], "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]`), ""},
		{embed("1_Pooling/config.json", `{"pooling_mode": "weightedmean", "include_prompt": false}`), "include_prompt is false, want true for the pooling weightedmean"},
		{embed("tokenizer_config.json", `{"note": 1}`), "tokenizer_config.json: setting tokenizer_config.json:note = 1 is not known, and may change the result: want only settings that are known, or --allow-setting tokenizer_config.json:note if it does not"},
		{embed("tokenizer_config.json", `{"split_special_tokens": true}`), "tokenizer_config.json: split_special_tokens is true, want false"},
		{embed("tokenizer_config.json", `{"truncation_side": "middle"}`), `tokenizer_config.json: truncation_side is "middle", want left or right`},
		{embed("tokenizer_config.json", `{"fix_mistral_regex": true}`), "fix_mistral_regex is true, want false"},
		{embed("tokenizer_config.json", `{"added_tokens_decoder": {"x": {"content": "y"}}}`), `added_tokens_decoder of tokenizer_config.json has the id "x"`},
		{embed("tokenizer_config.json", `{"added_tokens_decoder": {"99": {"content": "y"}}}`), `added token "y" has id 99, want 27`},
		{embed("tokenizer_config.json", `{"image_token": "[SEP]", "vocab_file": null, "_commit": "1", "errors": "replace", "max_length": 5, "stride": 0, "padding_side": "left"}`), ""},
		{embed("special_tokens_map.json", `{"note": 1}`), `special_tokens_map.json: has the unknown setting "note"`},
		{embed("special_tokens_map.json", `{"mask_token": {"content": "[MASK]", "lstrip": true}, "additional_special_tokens": []}`), ""},
		{embed("added_tokens.json", `{"x": "y"}`), "added_tokens.json: "},
		{embed("generation_config.json", `{"note": 1}`), "generation_config.json: setting generation_config.json:note = 1 is not known"},
		{embed("generation_config.json", `{"eos_token_id": 1, "temperature": 0.6, "top_p": 0.95, "_from_model_config": true}`), ""},
		{embed("tokenizer.json", `{`), "tokenizer.json: "},

		{rank(length, `{`+plain+`, "note": 1}`), "sentence_bert_config.json: setting note = 1 is not known"},
		{rank(length, `{"transformer_task": "fill-mask"}`), `transformer_task is "fill-mask", want "sequence-classification"`},
		{rank(length, `{`+plain+`, "max_seq_length": 2}`), ""},
		{rank(length, `{`+plain+`, "max_seq_length": 1}`), "max_seq_length is 1, want room for 2 special tokens"},
		{rank(cut, `{"model_type": "SentenceTransformer"}`), `model_type is "SentenceTransformer", want "CrossEncoder" or none`},
		{rank(cut, `{"model_type": "CrossEncoder", "default_prompt_name": "q"}`), `default_prompt_name is "q", which is not among the prompts`},
		{rank(cut, `{"model_type": "CrossEncoder", "activation_fn": "torch.nn.modules.activation.ReLU"}`), "activation_fn is"},
		{rank(cut, `{"model_type": "CrossEncoder", "activation_fn": "torch.nn.modules.linear.Identity", "keep_in_fp32_modules": []}`), ""},
		{rank(modules, `[`+cross+`, {"path": "1_Dense", "type": "sentence_transformers.base.modules.dense.Dense"}]`), "modules.json: has other modules, want a Transformer and, for a decoder, a LogitScore"},
		{rank(modules, `[`+cross+`, {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]`, length, `{"note": 1}`), ""}, // of an embedder
		{rank("tokenizer.json", `{`), "tokenizer.json: "},
	} {
		dir := c.directory(t)
		var err error
		if c.Rank {
			var m *models.Model
			if m, err = models.Load(dir, models.Options{}); err == nil {
				_, err = models.NewClassifier(m)
			}
		} else {
			_, err = models.LoadEmbedder(dir, models.Options{})
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, want %s", c.Files, err, c.want)
		}
	}
	dir := embed("tokenizer_config.json", `{"note": 1, "other": 2}`).directory(t)
	if _, err := models.LoadEmbedder(dir, models.Options{Allowed: []string{"tokenizer_config.json:note", "tokenizer_config.json:other"}}); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{
		"tokenizer_config.json:no": `tokenizer_config.json: has no unknown setting "tokenizer_config.json:no" that could be allowed`,
		"note":                     `config.json: has no unknown setting "note" that could be allowed`,
	} {
		if _, err := models.LoadEmbedder(dir, models.Options{Allowed: []string{name}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("allowed %s: error %v, want %s", name, err, want)
		}
	}
}

// The outputs of a model with problem_type regression are values, not classes with probabilities.
func TestRegression(t *testing.T) {
	for problem, want := range map[string]string{"regression": "", "ranking": `problem_type is "ranking", want regression, `} {
		c, err := classifier(t, "bert_rank", map[string]any{"problem_type": problem})
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %s", err, want)
			}
		} else if err != nil {
			t.Error(err)
		} else if p := c.Probabilities([]float32{0.5}); p != nil {
			t.Errorf("probabilities %v, want none", p)
		}
	}
}

// A directory without modules.json is an embedder with Options.Pooling, and errors say how to get what is missing.
func TestLoadEmbedderAdvice(t *testing.T) {
	dir := copyDir(t, "testdata/sentence_mean")
	if err := os.Remove(filepath.Join(dir, "modules.json")); err != nil {
		t.Fatal(err)
	}
	e, err := models.LoadEmbedder(dir, models.Options{Pooling: "cls"})
	if err != nil {
		t.Fatal(err)
	}
	if y, err := e.Embed(t.Context(), "the cat"); err != nil || e.Poolings[0].Name != "cls" || y.Dim(1) != 15 {
		t.Errorf("vectors of %d elements, error %v", y.Dim(1), err)
	}
	const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
	changed := func(file string) string {
		dir := copyDir(t, "testdata/sentence_mean")
		write(t, filepath.Join(dir, file), pointer)
		return dir
	}
	for _, c := range []struct{ dir, pooling, want string }{
		{dir, "", "want modules.json, or a pooling: Options.Pooling, or --pooling of attn embed, such as mean"},
		{dir, "median", `Options.Pooling is pooling "median", want one of cls, max, `},
		{"testdata/seq2seq/marian", "mean", "Marian is an encoder-decoder, whose states depend on its output"},
		{"bert-base-uncased", "", "no such file or directory; models.Find finds a model in the cache of the Hub, and attn fetch bert-base-uncased downloads one"},
		{"sentence-transformers/all-MiniLM-L6-v2", "mean", "attn fetch sentence-transformers/all-MiniLM-L6-v2 downloads one"},
		{t.TempDir() + "/none", "", "attn fetch NAME downloads one"},
		{changed("config.json"), "", "config.json: is a Git LFS pointer, not the file itself: run git lfs pull, or download the model with attn fetch"},
		{changed("modules.json"), "", "modules.json: is a Git LFS pointer"},
		{changed("tokenizer.json"), "", "tokenizer.json: is a Git LFS pointer"},
		{changed("1_Pooling/config.json"), "", "config.json: is a Git LFS pointer"},
		{changed("model.safetensors"), "", "model.safetensors: is a Git LFS pointer, not the file itself: run git lfs pull"},
	} {
		if _, err := models.LoadEmbedder(c.dir, models.Options{Pooling: c.pooling}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %s", c.dir, err, c.want)
		}
	}
}
