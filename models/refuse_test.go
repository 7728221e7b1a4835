package models_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/safetensors"
)

// edit returns a copy of a directory with changed values in config.json; nil removes a key.
func edit(t *testing.T, dir string, change map[string]any) string {
	t.Helper()
	dir = copyDir(t, filepath.Join("testdata", dir))
	path := filepath.Join(dir, "config.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	config := decoded(t, data)
	for key, value := range change {
		if config[key] = value; value == nil {
			delete(config, key)
		}
	}
	if data, err = json.Marshal(config); err != nil {
		t.Fatal(err)
	}
	write(t, path, string(data))
	return dir
}

// decoded returns the object in a JSON file.
func decoded(t *testing.T, data []byte) (object map[string]any) {
	t.Helper()
	if err := json.Unmarshal(data, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// refused returns the error of loading a directory. The test fails if the error does not concern a bad file,
// or if much memory was allocated first.
func refused(t *testing.T, dir string) string {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := models.Load(dir, models.Options{})
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 8<<20 {
		t.Errorf("%d bytes were allocated for a model that is refused", n)
	}
	_, described := models.Describe(dir, models.Options{})
	if err == nil || described == nil || err.Error() != described.Error() {
		t.Fatalf("Load: %v, Describe: %v, want the same error", err, described)
	}
	if !errors.As(err, new(*models.FormatError)) && !errors.As(err, new(*safetensors.FormatError)) {
		t.Errorf("error %v of type %T, want a FormatError", err, err)
	}
	text := strings.ReplaceAll(err.Error(), dir, "DIR")
	if strings.Contains(text, "\n") {
		t.Errorf("error of several lines: %s", text)
	}
	return text
}

func TestRefusedSettings(t *testing.T) {
	for _, c := range []struct {
		dir    string
		change map[string]any
		want   string
	}{
		{"bert", map[string]any{"model_type": "pegasus"}, `models: DIR/config.json: model_type "pegasus" is not known, want one of `},
		{"bert", map[string]any{"model_type": "qwen2x"}, `model_type "qwen2x" is not known (the nearest is qwen2), want one of `},
		{"bert", map[string]any{"model_type": nil}, "has no model_type, want one of "},
		{"bert", map[string]any{"hidden_size": nil}, "config.json: hidden_size is missing, want a positive number"},
		{"bert", map[string]any{"hidden_size": "15"}, `config.json: hidden_size is "15", want a positive number`},
		{"bert", map[string]any{"hidden_size": 0}, "hidden_size is 0, want 1 to 16777216"},
		{"bert", map[string]any{"hidden_size": 15.5}, "hidden_size is 15.5, want a positive number"},
		{"bert", map[string]any{"hidden_size": int64(1 << 40)}, "hidden_size is 1099511627776, want 1 to 16777216"},
		{"bert", map[string]any{"hidden_size": 18}, `model.safetensors: tensors "embeddings.word_embeddings.weight" has shape [43 15], want [43 18], `},
		{"bert", map[string]any{"vocab_size": 1 << 24}, `tensor "embeddings.word_embeddings.weight" has shape [43 15], want [16777216 15]`},
		{"bert", map[string]any{"num_hidden_layers": 1 << 20}, "num_hidden_layers is 1048576, but the file has 39 tensors"},
		{"bert", map[string]any{"num_hidden_layers": 3}, `tensors "encoder.layer.2.attention.self.query.weight", `},
		{"bert", map[string]any{"num_hidden_layers": 1}, `"encoder.layer.1.attention.output.LayerNorm.bias", `},
		{"bert", map[string]any{"num_attention_heads": 4}, "DIR/config.json: num_attention_heads is 4, want a divisor of hidden_size, which is 15"},
		{"bert", map[string]any{"num_attention_heads": 1 << 24}, "num_attention_heads is 16777216, want a divisor of hidden_size, which is 15"},
		{"bert", map[string]any{"max_position_embeddings": 12}, `"embeddings.position_embeddings.weight" has shape [13 15], want [12 15]`},
		{"bert", map[string]any{"hidden_act": "mish"}, `hidden_act is "mish", want one of gelu, `},
		{"bert", map[string]any{"layer_norm_eps": "small"}, `layer_norm_eps is "small", want a number`},
		{"bert", map[string]any{"layer_norm_eps": -1}, "layer_norm_eps is -1, want 0 to 1"},
		{"bert", map[string]any{"position_embedding_type": "relative_key"}, `position_embedding_type is "relative_key", want "absolute" or none`},
		{"bert", map[string]any{"is_decoder": true}, "is_decoder is true, want false or none"},
		{"bert", map[string]any{"pruned_heads": map[string]any{"0": []int{1, 3}}}, "pruned_heads of layer 0 is [1 3], want numbers from 0 to 2, each once"},
		{"bert", map[string]any{"pruned_heads": map[string]any{"1": []int{1, 0, 1}}}, "pruned_heads of layer 1 is [1 0 1], want numbers from 0 to 2, each once"},
		{"bert", map[string]any{"pruned_heads": map[string]any{"2": []int{1}}}, `pruned_heads has layer "2", want one of 0, 1`},
		{"bert", map[string]any{"pruned_heads": map[string]any{"0": 1}}, `pruned_heads is {"0":1}, want an object of lists of heads, by layer`},
		{"bert", map[string]any{"pruned_heads": map[string]any{"0": []int{1}}}, `model.safetensors: tensors "encoder.layer.0.attention.self.query.weight" has shape [15 15], want [10 15]`},
		{"mpnet", map[string]any{"pruned_heads": map[string]any{"0": []int{1}}}, `pruned_heads is {"0":[1]}, want {} or none`},
		{"decoders/llama3", map[string]any{"pruned_heads": map[string]any{"0": []int{1, 2}}}, "pruned_heads of layer 0 is [1 2], want whole groups of 2 heads that share keys and values"},
		{"decoders/olmo2", map[string]any{"pruned_heads": map[string]any{"0": []int{0, 1}}}, `pruned_heads is {"0":[0,1]}, want {} or none`},
		{"decoders/olmo_hybrid", map[string]any{"pruned_heads": map[string]any{"3": []int{0, 1}}}, `pruned_heads has layer "3", want one of 0, 1, 2`},
		{"decoders/qwen3_5", map[string]any{"pruned_heads": map[string]any{"0": []int{0, 1, 2, 3}}}, "pruned_heads of layer 0 is [0 1 2 3], want fewer than its 4 heads"},
		{"decoders/qwen3_5", map[string]any{"pruned_heads": map[string]any{"1": []int{1}}}, "pruned_heads of layer 1 is [1], want whole groups of 2 heads that share keys and values"},
		{"decoders/llama3", map[string]any{"pruned_heads": map[string]any{"0": []int{3, 2, 1}}}, "pruned_heads of layer 0 is [3 2 1], want whole groups of 2 heads that share keys and values"},
		{"bert", map[string]any{"rotary_value": true}, "config.json: setting rotary_value = true is not known for model_type bert"},
		{"bert", map[string]any{"a": 1, "b": 2, "c": 3}, "setting a = 1 (and 2 more) is not known"},
		{"bert_text", map[string]any{"architectures": nil}, `architectures is [], but the file has the head of a class …ForSequenceClassification or …ForTokenClassification`},
		{"bert_text", map[string]any{"architectures": []string{"BertForMultipleChoice"}}, `architectures is ["BertForMultipleChoice"], but`},
		{"bert_text", map[string]any{"id2label": map[string]string{"0": "a", "2": "b"}}, "id2label has 2 names, but none for 1"},
		{"bert_text", map[string]any{"id2label": map[string]string{"0": "a"}}, `"classifier.weight" has shape [3 15], want [1 15]`},
		{"bert_untied", map[string]any{"tie_word_embeddings": true}, `tensor "cls.predictions.decoder.weight" differs from "bert.embeddings.word_embeddings.weight" at element 0`},
		{"bert_words", map[string]any{"tie_word_embeddings": false}, `tensor "cls.predictions.decoder.weight" is missing`},
		{"roberta", map[string]any{"pad_token_id": 12}, "pad_token_id is 12, want 0 to max_position_embeddings − 2, which is 11"},
		{"roberta", map[string]any{"pad_token_id": -1}, "pad_token_id is -1, want 0"},
		{"mpnet", map[string]any{"relative_attention_num_buckets": 16}, "relative_attention_num_buckets is 16, want 32 or none"},
		{"deberta", map[string]any{"pos_att_type": []string{"c2p", "p2p"}}, `pos_att_type is ["c2p","p2p"], want "c2p" or "p2c" or "c2p|p2c" or`},
		{"deberta", map[string]any{"pos_att_type": 1}, `pos_att_type is 1, want "c2p" or`},
		{"deberta", map[string]any{"share_att_key": true}, `"encoder.layer.0.attention.self.pos_key_proj.weight"`},
		{"deberta", map[string]any{"relative_attention": false}, `"encoder.layer.0.attention.self.pos_key_proj.bias", `},
		{"deberta", map[string]any{"position_buckets": 1}, "position_buckets is 1, want 2 to 2·max_relative_positions − 3, which is 23"},
		{"deberta", map[string]any{"position_buckets": 24}, "position_buckets is 24, want 2 to 2·max_relative_positions − 3, which is 23"},
		{"deberta", map[string]any{"position_buckets": 23}, `"encoder.rel_embeddings.weight" has shape [26 15], want [46 15]`},
		{"deberta", map[string]any{"max_relative_positions": 12}, `"encoder.rel_embeddings.weight" has shape [26 15], want [24 15]`},
		{"deberta", map[string]any{"norm_rel_ebd": "layer_norm"}, `"encoder.LayerNorm.weight", `},
		{"deberta", map[string]any{"norm_rel_ebd": "rms_norm"}, `norm_rel_ebd is "rms_norm", want "none" or "layer_norm" or none`},
		{"deberta", map[string]any{"conv_kernel_size": 3}, "conv_kernel_size is 3, want 0 or none"},
		{"deberta", map[string]any{"attention_head_size": 4}, "attention_head_size is 4, want 5 or none"},
		{"deberta", map[string]any{"pooler_hidden_size": 12}, "pooler_hidden_size is 12, want 15 or none"},
		{"deberta", map[string]any{"pooler_hidden_act": "mish"}, `pooler_hidden_act is "mish", want one of gelu, `},
		{"deberta", map[string]any{"embedding_size": 9}, `"embeddings.word_embeddings.weight" has shape [43 15], want [43 9]`},
		{"deberta", map[string]any{"type_vocab_size": 2}, `"embeddings.token_type_embeddings.weight"`},
		{"deberta_v3", map[string]any{"position_biased_input": true}, `"deberta.embeddings.position_embeddings.weight"`},
		{"deberta_v3", map[string]any{"legacy": true}, "legacy is true, want false or none"},
		{"deberta_words", map[string]any{"legacy": false}, "legacy is false, want true or none"},
		{"deberta_text", map[string]any{"architectures": []string{"DebertaV2ForMultipleChoice"}}, `architectures is ["DebertaV2ForMultipleChoice"], but`},
		{"deberta", map[string]any{"pruned_heads": map[string]any{"0": []int{1}}}, `pruned_heads is {"0":[1]}, want {} or none`},
	} {
		dir := edit(t, c.dir, c.change)
		if c.dir == "bert_untied" { // which only the numbers can tell
			_, err := models.Load(dir, models.Options{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s with %v: error %v, want %s", c.dir, c.change, err, c.want)
			}
			continue
		}
		if got := refused(t, dir); !strings.Contains(got, c.want) {
			t.Errorf("%s with %v:\n%s\nwant\n%s", c.dir, c.change, got, c.want)
		}
	}
}

// Notes of tools, and settings of null, change nothing.
func TestHarmlessSettings(t *testing.T) {
	dir := edit(t, "bert", map[string]any{"unsloth_fixed": true, "_model_name_or_path": "x", "quantum": nil})
	if _, err := models.Load(dir, models.Options{}); err != nil {
		t.Error(err)
	}
}

func TestRefusedFiles(t *testing.T) {
	weights, err := os.ReadFile("testdata/bert/model.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	remove := func(names ...string) func(dir string) {
		return func(dir string) {
			for _, name := range names {
				if err := os.Remove(filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, c := range []struct {
		name, dir string
		change    func(dir string)
		want      string
	}{
		{"pickle", "bert", func(dir string) {
			remove("model.safetensors")(dir)
			write(t, filepath.Join(dir, "pytorch_model.bin"), "\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.")
		}, "safetensors: DIR/pytorch_model.bin: is a pickle, as of torch.save before PyTorch 1.6, which is not read"},
		{"TensorFlow", "bert", func(dir string) {
			remove("model.safetensors")(dir)
			write(t, filepath.Join(dir, "tf_model.h5"), "HDF")
		}, "models: DIR: has its weights in tf_model.h5 (TensorFlow), want model.safetensors; in Python, "},
		{"no weights", "bert", remove("model.safetensors"), "models: DIR: has no model.safetensors, model.safetensors.index.json or pytorch_model.bin"},
		{"missing shard", "bert_shards", remove("model-00002-of-00004.safetensors"), "model-00002-of-00004.safetensors"},
		{"truncated", "bert", func(dir string) { write(t, filepath.Join(dir, "model.safetensors"), string(weights[:len(weights)-7])) }, "safetensors: DIR/model.safetensors: "},
		{"no JSON", "bert", func(dir string) { write(t, filepath.Join(dir, "config.json"), "{") }, "models: DIR/config.json: ends in the middle of its JSON"},
		{"list", "bert", func(dir string) { write(t, filepath.Join(dir, "config.json"), "[1]") }, "models: DIR/config.json: has an array where an object is wanted"},
		{"integers", "bert", func(dir string) {
			write(t, filepath.Join(dir, "model.safetensors"), strings.Replace(string(weights), `"F16"`, `"I16"`, 1))
		}, "want F16, BF16, F32 or F64"},
		{"pooler in vain", "bert_text", func(dir string) {
			f, err := safetensors.Read(filepath.Join(dir, "model.safetensors"))
			if err != nil {
				t.Fatal(err)
			}
			var kept []safetensors.Tensor
			for _, x := range f.Tensors {
				if !strings.Contains(x.Name, "pooler") {
					kept = append(kept, x)
				}
			}
			f.Tensors = kept
			if err := f.WriteFile(filepath.Join(dir, "model.safetensors")); err != nil {
				t.Fatal(err)
			}
		}, "the head for classes of a text needs a pooler, and the file has none"},
	} {
		dir := copyDir(t, filepath.Join("testdata", c.dir))
		c.change(dir)
		if c.name == "missing shard" { // which is an error of the system
			if _, err := models.Load(dir, models.Options{}); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: error %v, want that %s does not exist", c.name, err, c.want)
			}
			continue
		}
		if got := refused(t, dir); !strings.Contains(got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
	empty := t.TempDir()
	const why = "models: DIR: has no config.json, so it is not the directory of a model; want a model in Hugging Face's format"
	if got := refused(t, empty); !strings.HasPrefix(strings.ReplaceAll(got, empty, "DIR"), why) {
		t.Errorf("an empty directory: %s, want %s", got, why)
	}
}
