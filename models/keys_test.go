package models_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/models"
)

// noEffect are the settings of files of pipelines whose values change no vector and no score, or that another package
// reads: the templates of chats are those of package chat, and the class of a tokenizer counts if it is a known one.
var noEffect = map[string][]string{
	"adapter_config.json": {"auto_mapping", "base_model_name_or_path", "corda_config", "ensure_weight_tying", "eva_config",
		"exclude_modules", "inference_mode", "layers_pattern", "layers_to_transform", "loftq_config", "lora_dropout", "lora_ga_config",
		"megatron_config", "megatron_core", "modules_to_save", "peft_version", "qalora_group_size", "revision", "runtime_config",
		"target_modules", "task_type", "alpha_pattern.another_key", "rank_pattern.another_key"}, // patterns of modules
	"artifact.metadata": {"checkpoint", "doc_token", "meta", "nbits", "query_token"},
	"config.json": {"apply_pca", "apply_zipf", "architectures", "embedding_dtype", "frozen", "hidden_dim", "max_length", "pooling", "seq_length",
		"sif_coefficient", "tokenizer_name", "vocabulary_quantization"},
	"config_sentence_transformers.json": {"__version__", "similarity_fn_name"},
	"generation_config.json":            {"_from_model_config", "output_attentions", "output_hidden_states", "transformers_version", "use_cache"},
	"router_config.json":                {"parameters.allow_empty_key"},
	"sentence_bert_config.json":         {"processing_kwargs.chat_template"},
	"tokenizer_config.json":             {"backend", "is_local", "local_files_only", "tokenizer_class"},
}

// loadAny loads a pipeline as what it is, by each of its routes, or merges an adapter.
func loadAny(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "adapter")); err == nil {
		return models.MergeAdapter(context.Background(), filepath.Join(dir, "base"), filepath.Join(dir, "adapter"), filepath.Join(dir, "out"))
	}
	if models.IsLate(dir) {
		_, err := models.LoadLateEmbedder(dir, models.Options{})
		return err
	}
	if _, err := models.LoadEmbedder(dir, models.Options{}); err == nil || !strings.Contains(err.Error(), "has no modules.json") &&
		!strings.Contains(err.Error(), "want a Transformer and a Pooling") && !strings.Contains(err.Error(), "LogitScore") {
		if _, routed := os.Stat(filepath.Join(dir, "router_config.json")); err == nil && routed == nil {
			_, err = models.LoadEmbedder(dir, models.Options{Route: "query"})
		}
		return err
	}
	m, err := models.Load(dir, models.Options{})
	if err == nil {
		_, err = models.NewClassifier(m)
	}
	return err
}

// eachKey calls f for each change of a JSON value, while the value has it: an object has one key more, or a key has a value
// of a type that no setting has.
func eachKey(all any, f func(key string)) {
	switch v := all.(type) {
	case []any:
		for _, x := range v {
			eachKey(x, f)
		}
	case map[string]any:
		const added = "another_key"
		v[added] = 1
		f(added)
		delete(v, added)
		for _, key := range slices.Sorted(maps.Keys(v)) {
			was := v[key]
			eachKey(was, func(inner string) { f(key + "." + inner) })
			v[key] = []any{map[string]any{"x": 1.5}}
			f(key)
			v[key] = was
		}
	}
}

// TestKeysOfPipelines: every key of every JSON file of a pipeline is read, known to have no effect, or refused.
func TestKeysOfPipelines(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: every key of the files of all pipelines")
	}
	data, err := os.ReadFile("testdata/pipelines.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct{ Cases []pipelineCase }
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	lists, err := filepath.Glob("testdata/*/modules.json")
	if err != nil {
		t.Fatal(err)
	}
	dirs := map[string]string{"late_colbert": copyDir(t, "testdata/late_colbert"), "lora": copyDir(t, "testdata/lora/llama")}
	for _, list := range lists {
		dirs[filepath.Base(filepath.Dir(list))] = copyDir(t, filepath.Dir(list))
	}
	for _, c := range golden.Cases {
		if c.Rank && c.Files["modules.json"] != nil || c.Name == "length of a call" {
			dirs[c.Name] = c.directory(t)
		}
	}
	seen := map[string]bool{} // most pipelines have keys of others
	for _, name := range slices.Sorted(maps.Keys(dirs)) {
		dir := dirs[name]
		if err := loadAny(dir); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			file := filepath.Base(path)
			if err != nil || filepath.Ext(path) != ".json" && file != "artifact.metadata" || file == "tokenizer.json" ||
				strings.Contains(path, "/out/") || strings.Contains(path, "/base/") || strings.HasSuffix(file, ".index.json") {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			var all any
			if err := json.Unmarshal(data, &all); err != nil {
				return err
			}
			if s, ok := all.(map[string]any); ok && file == "config.json" && s["model_type"] != nil && s["model_type"] != "model2vec" {
				return nil // TestAnySetting
			}
			of, _ := filepath.Rel(dir, filepath.Dir(path))
			eachKey(all, func(key string) {
				where := fmt.Sprint(models.IsLate(dir), strings.TrimLeft(of, "0123456789_"), file, key)
				known := slices.ContainsFunc(noEffect[file], func(k string) bool { return k == key || strings.HasPrefix(key, k+".") })
				if seen[where] || known {
					return
				}
				seen[where] = true
				text, err := json.Marshal(all)
				if err != nil {
					t.Fatal(err)
				}
				write(t, path, string(text))
				if err := loadAny(dir); err == nil {
					t.Errorf("%s: %s: any value of %s is accepted", name, filepath.Join(of, file), key)
				}
			})
			write(t, path, string(data))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) < 200 {
		t.Errorf("%d keys were changed, want those of all files", len(seen))
	}
}
