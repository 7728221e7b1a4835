package models_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/safetensors"
)

// merged merges a base and an adapter, and returns the directory.
func merged(t *testing.T, base, adapter string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	if err := models.MergeAdapter(t.Context(), base, adapter, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// Merged tensors are those of peft in float64, rounded once to the type of the base, and the others have the same bits.
func TestMergeAdapter(t *testing.T) {
	bases, err := filepath.Glob("testdata/lora/*/base")
	if err != nil || len(bases) != 5 {
		t.Fatalf("%d cases (%v), want 5", len(bases), err)
	}
	for _, base := range bases {
		dir := filepath.Dir(base)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			out := merged(t, base, filepath.Join(dir, "adapter"))
			if _, err := models.Load(out, models.Options{}); err != nil {
				t.Fatal(err)
			}
			before, got := openTensors(t, base), openTensors(t, out)
			want, err := safetensors.Read(filepath.Join(dir, "merged.safetensors"))
			if err != nil {
				t.Fatal(err)
			}
			if len(want.Tensors) != len(got.Tensors()) || len(got.Tensors()) != len(before.Tensors()) {
				t.Fatalf("%d tensors, want the %d of the base and the %d of peft", len(got.Tensors()), len(before.Tensors()), len(want.Tensors))
			}
			changed := 0
			for _, w := range want.Tensors {
				exact, err := w.Float64s()
				if err != nil {
					t.Fatal(err)
				}
				old, new := tensorOf(t, before, w.Name), tensorOf(t, got, w.Name)
				if old.DType != new.DType || !slices.Equal(old.Shape, new.Shape) {
					t.Fatalf("%s: %s %v, want %s %v", w.Name, new.DType, new.Shape, old.DType, old.Shape)
				}
				if !bytes.Equal(old.Data, new.Data) {
					changed++
				}
				values, err := new.Float32s()
				if err != nil {
					t.Fatal(err)
				}
				for i, v := range exact {
					// Five products of numbers about 1, times at most 4.
					if new.DType == safetensors.F32 && !(math.Abs(float64(values[i])-v) <= 2e-6) {
						t.Fatalf("%s: element %d is %v, want %v", w.Name, i, values[i], v)
					}
					nearest, err := safetensors.AppendFloat32s(nil, new.DType, []float32{float32(v)})
					if new.DType == safetensors.BF16 && (err != nil || !bytes.Equal(new.Data[2*i:][:2], nearest)) {
						t.Fatalf("%s: element %d is %v, want the nearest to %v", w.Name, i, values[i], v)
					}
				}
			}
			if changed == 0 || changed == len(want.Tensors) {
				t.Errorf("%d of %d tensors have changed", changed, len(want.Tensors))
			}
		})
	}
}

func openTensors(t *testing.T, dir string) *safetensors.Reader {
	t.Helper()
	r, err := safetensors.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func tensorOf(t *testing.T, r *safetensors.Reader, name string) *safetensors.Tensor {
	t.Helper()
	x, err := r.Tensor(name)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// copyLoRA returns writable copies of a base and its adapter. edit changes the tensors of the adapter.
func copyLoRA(t *testing.T, name string, settings map[string]any, edit func(f *safetensors.File)) (base, adapter string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/lora/"+name)); err != nil {
		t.Fatal(err)
	}
	base, adapter = filepath.Join(dir, "base"), filepath.Join(dir, "adapter")
	setJSON(t, filepath.Join(adapter, "adapter_config.json"), settings)
	if edit != nil {
		path := filepath.Join(adapter, "adapter_model.safetensors")
		f, err := safetensors.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		edit(f)
		if err := f.WriteFile(path); err != nil {
			t.Fatal(err)
		}
	}
	return base, adapter
}

func setJSON(t *testing.T, path string, settings map[string]any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := decoded(t, data)
	for key, value := range settings {
		all[key] = value
	}
	if data, err = json.Marshal(all); err != nil {
		t.Fatal(err)
	}
	write(t, path, string(data))
}

// An adapter that is not understood is refused, and nothing is written.
func TestMergeAdapterRefuses(t *testing.T) {
	rename := func(from, to string) func(*safetensors.File) {
		return func(f *safetensors.File) {
			for i := range f.Tensors {
				f.Tensors[i].Name = strings.Replace(f.Tensors[i].Name, from, to, 1)
			}
		}
	}
	add := func(name string, shape ...int) func(*safetensors.File) {
		return func(f *safetensors.File) {
			n := 1
			for _, d := range shape {
				n *= d
			}
			f.Tensors = append(f.Tensors, safetensors.FromFloat32s("base_model.model."+name, shape, make([]float32, n)))
		}
	}
	type settings = map[string]any
	for _, c := range []struct {
		name string
		set  settings
		edit func(*safetensors.File)
		want string
	}{
		{"llama", settings{"peft_type": "VERA"}, nil, `peft_type is "VERA", want "LORA" or none`},
		{"llama", settings{"use_dora": true}, nil, `use_dora is true, want false or none`},
		{"llama", settings{"lora_bias": true}, nil, `lora_bias is true, want false or none`},
		{"llama", settings{"bias": "lora_only"}, nil, `bias is "lora_only", want "none" or none`},
		{"llama", settings{"layer_replication": [][]int{{0, 2}}}, nil, `layer_replication is [[0,2]], want none`},
		{"llama", settings{"init_lora_weights": "pissa"}, nil, `init_lora_weights is "pissa", want true or false or`},
		{"llama", settings{"kasa_config": 1}, nil, `setting kasa_config = 1 is not known`},
		{"llama", settings{"r": 3}, nil, `has shape [4 16] and its lora_B [16 4], want rank 3`},
		{"llama", settings{"rank_pattern": settings{"v_proj": 2}}, nil, `has shape [4 16] and its lora_B [8 4], want rank 2`},
		{"llama", settings{"alpha_pattern": settings{"v_proj": 2, "self_attn.v_proj": 3}}, nil, `alpha_pattern has an invalid pattern or number, or different numbers for "model.layers.0.self_attn.v_proj"`},
		{"llama", settings{"alpha_pattern": settings{"(?=v)": 2}}, nil, `alpha_pattern has an invalid pattern or number`},
		{"llama", settings{"rank_pattern": settings{"v_proj": 0}}, nil, `rank_pattern has an invalid pattern or number`},
		{"llama", settings{"fan_in_fan_out": true}, nil, `fan_in_fan_out is true, want false or none`},
		{"gpt2", settings{"fan_in_fan_out": false}, nil, `fan_in_fan_out is false, want true or none`},
		{"llama", nil, rename("lora_B.weight", "lora_B.bias"), `lora_A.weight" matches no tensor of the base`},
		{"llama", nil, rename("lora_A.weight", "lora_magnitude_vector"), `lora_magnitude_vector" matches no tensor`},
		{"llama", nil, rename("base_model.model.", ""), `tensor "model.layers.0.self_attn.q_proj.lora_A.weight" matches no tensor`},
		{"llama", nil, rename("layers.1", "layers.7"), `.layers.7.self_attn.`},
		{"llama", nil, add("model.norm.bias", 16), `tensor "base_model.model.model.norm.bias" matches no tensor of the base, which must have`},
		{"llama", nil, add("model.embed_tokens.lora_embedding_A", 4, 20), `lora_embedding_A" matches no tensor`},
		{"llama", nil, add("model.layers.0.self_attn.q_proj.weight", 16, 16), `is the second for "model.layers.0.self_attn.q_proj.weight"`},
		{"llama", nil, add("model.embed_tokens.weight", 22, 16), `which has shape [20 16], want [22 16]`},
		{"gpt2", nil, add("transformer.wte.weight", 20, 16), `is for "transformer.wte.weight", which may be tied; want tie_word_embeddings = false`},
	} {
		base, adapter := copyLoRA(t, c.name, c.set, c.edit)
		out := filepath.Join(t.TempDir(), "out")
		err := models.MergeAdapter(t.Context(), base, adapter, out)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %s", c.set, err, c.want)
		}
		if !errors.As(err, new(*models.FormatError)) && !errors.As(err, new(*safetensors.FormatError)) {
			t.Errorf("error %v of type %T, want a FormatError", err, err)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%s: the directory exists", c.want)
		}
	}
}

// The base may be saved by another class of the same model, with one word more or less in front of the names.
func TestMergeAdapterIntoBareModel(t *testing.T) {
	want := openTensors(t, merged(t, "testdata/lora/saved/base", "testdata/lora/saved/adapter"))
	for _, prefix := range []string{"", "outer.bert."} {
		base, adapter := copyLoRA(t, "saved", nil, nil)
		path := filepath.Join(base, "model.safetensors")
		f, err := safetensors.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range f.Tensors {
			f.Tensors[i].Name = strings.Replace(x.Name, "bert.", prefix, 1)
		}
		if err := f.WriteFile(path); err != nil {
			t.Fatal(err)
		}
		got := openTensors(t, merged(t, base, adapter))
		for _, x := range want.Tensors() {
			y := tensorOf(t, got, strings.Replace(x.Name, "bert.", prefix, 1))
			if !bytes.Equal(tensorOf(t, want, x.Name).Data, y.Data) {
				t.Errorf("%s differs from %s", y.Name, x.Name)
			}
		}
	}
}

// The tokenizer and the chat template are those of the adapter if it has them, and other weights are not copied.
func TestMergeAdapterCopiesFiles(t *testing.T) {
	base, adapter := copyLoRA(t, "llama", nil, nil)
	texts := func(dir string, names ...string) {
		for _, name := range names {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, name), `{"from": "`+filepath.Base(dir)+`"}`)
		}
	}
	files := func(out string) (list []string) {
		t.Helper()
		entries, err := os.ReadDir(out)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			data, err := os.ReadFile(filepath.Join(out, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			switch text := string(data); {
			case strings.Contains(text, `"adapter"`):
				list = append(list, e.Name()+" of the adapter")
			default:
				list = append(list, e.Name())
			}
		}
		return list
	}
	texts(base, "tokenizer.json", "vocab.json", "tokenizer_config.json", "chat_template.jinja", "pytorch_model.bin", "x.index.json", "model.gguf", ".hidden.json", "README.md")
	texts(adapter, "trainer_state.json", "README.md")
	check := func(want ...string) {
		t.Helper()
		if got := files(merged(t, base, adapter)); !slices.Equal(got, want) {
			t.Errorf("files %q, want %q", got, want)
		}
	}
	check("chat_template.jinja", "config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "vocab.json")
	texts(adapter, "chat_template.jinja")
	check("chat_template.jinja of the adapter", "config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "vocab.json")
	if err := os.Remove(filepath.Join(adapter, "chat_template.jinja")); err != nil {
		t.Fatal(err)
	}
	texts(adapter, "tokenizer.json", "tokenizer_config.json")
	check("config.json", "generation_config.json", "model.safetensors", "tokenizer.json of the adapter", "tokenizer_config.json of the adapter")
}

// Weights that attn has saved have hashes of config.json and tokenizer, which a merged model does not inherit.
func TestMergeAdapterIntoSavedModel(t *testing.T) {
	base, adapter := copyLoRA(t, "llama", nil, nil)
	copyFile(t, "testdata/sentence_mean/tokenizer.json", filepath.Join(base, "tokenizer.json"))
	m, err := models.Load(base, models.Options{Trainable: true})
	if err != nil {
		t.Fatal(err)
	}
	saved := filepath.Join(t.TempDir(), "saved")
	if err := m.Save(saved); err != nil {
		t.Fatal(err)
	}
	for range 2 { // with the base's tokenizer and the adapter's
		out := merged(t, saved, adapter)
		if about := openTensors(t, out).Metadata(); len(about) != 1 || about["format"] != "pt" {
			t.Errorf("metadata %q, want the format", about)
		}
		if _, err := models.Load(out, models.Options{}); err != nil {
			t.Error(err)
		}
		data, err := os.ReadFile(filepath.Join(base, "tokenizer.json"))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(adapter, "tokenizer.json"), string(data)+"\n")
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	write(t, to, string(data))
}

// After an interruption, no file is left.
func TestMergeAdapterStops(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	out := filepath.Join(t.TempDir(), "out")
	err := models.MergeAdapter(ctx, "testdata/lora/llama/base", "testdata/lora/llama/adapter", out)
	if entries, _ := os.ReadDir(out); !errors.Is(err, context.Canceled) || len(entries) > 0 {
		t.Errorf("%v and %d files, want %v and none", err, len(entries), context.Canceled)
	}
}

// An adapter is not a model, not even beside one: transformers loads the base that the adapter names then.
func TestAdapterIsNoModel(t *testing.T) {
	base, adapter := copyLoRA(t, "llama", nil, nil)
	const want = `is a LoRA adapter of "owner/llama", not a model; to merge them: attn merge --base owner/llama --adapter `
	if _, err := models.LoadEmbedder(adapter, models.Options{}); err == nil || !strings.Contains(err.Error(), want+adapter+" --out DIR") {
		t.Error(err)
	}
	for _, dir := range []string{adapter, base} {
		copyFile(t, filepath.Join(adapter, "adapter_config.json"), filepath.Join(dir, "adapter_config.json"))
		if got := refused(t, dir); !strings.Contains(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
	setJSON(t, filepath.Join(adapter, "adapter_config.json"), map[string]any{"base_model_name_or_path": nil})
	if got := refused(t, adapter); !strings.Contains(got, `attn merge --base BASE --adapter `) {
		t.Error(got)
	}
	setJSON(t, filepath.Join(adapter, "adapter_config.json"), map[string]any{"peft_type": "VERA", "base_model_name_or_path": "owner/llama"})
	if got := refused(t, adapter); !strings.Contains(got, `is a VERA adapter of "owner/llama", not a model`) {
		t.Error(got)
	}
}
