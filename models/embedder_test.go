package models_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/probe"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// TestEmbedder compares pipelines with the vectors of sentence-transformers.
func TestEmbedder(t *testing.T) {
	paths, err := filepath.Glob("testdata/*/golden_sentences*.safetensors")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(filepath.Dir(path))+strings.TrimPrefix(filepath.Base(path), "golden"), func(t *testing.T) {
			g := tensortest.Open(t, path)
			var texts []string
			if err := json.Unmarshal([]byte(g.Setting("texts")), &texts); err != nil {
				t.Fatal(err)
			}
			e, err := models.LoadEmbedder(filepath.Dir(path), models.Options{Route: g.Setting("route")})
			if err != nil {
				t.Fatal(err)
			}
			all, err := e.Embed(t.Context(), texts...)
			if err != nil {
				t.Fatal(err)
			}
			g.Check("want.vectors", all)
			if all.Dim(1) != e.Width() {
				t.Errorf("vectors of %d elements, want %d", all.Dim(1), e.Width())
			}
			for i, text := range texts {
				one, err := e.Embed(t.Context(), text)
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(one.Data(), all.Data()[i*e.Width():(i+1)*e.Width()]) {
					t.Errorf("text %d alone has another vector than in a batch", i)
				}
			}
		})
	}
}

// An embedder reads the encoder of a T5 alone, also from a file with a decoder.
func TestEncoderAlone(t *testing.T) {
	dir := copyDir(t, "testdata/seq2seq/t5")
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json"} {
		copyFile(t, "testdata/sentence_mean/"+name, filepath.Join(dir, name))
	}
	e, err := models.LoadEmbedder(dir, models.Options{Pooling: "mean"})
	if err != nil {
		t.Fatal(err)
	}
	m, err := models.Load(dir, models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	x := models.Batch{IDs: [][]int{{5, 7, 9, 2}, {4, 6}}}
	var states *tensor.Tensor
	m.Hidden(nil, x, models.Run{SourceStates: func(_ int, x *tensor.Tensor) { states = x }})
	if got, want := e.Forward(nil, x).Data(), e.Poolings[0].Forward(nil, states, x.Lens()).Data(); !slices.Equal(got, want) {
		t.Errorf("vectors %v, want %v", got, want)
	}
	if e.Model.Sizes().Decoder != nil || m.Sizes().Decoder == nil {
		t.Error("Load has no decoder, or LoadEmbedder has one")
	}
	for _, c := range []struct {
		from, want string
		change     map[string]any
	}{
		{"testdata/t5_sentence", "the file has no tensors of a decoder", map[string]any{"architectures": []string{"T5ForConditionalGeneration"}, "is_encoder_decoder": true}},
		{"testdata/t5_sentence", "is_decoder is true", map[string]any{"is_decoder": true}},
		{"testdata/t5_sentence", "", nil},
	} {
		if _, err := models.Load(copyWith(t, c.from, c.change), models.Options{}); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}

func TestPoolingGradients(t *testing.T) {
	for _, p := range models.Poolings() {
		x := tensor.New([]float32{3, 1, 7, 2, 5, 4, 1, 9, 2, 8, 6, 0, 3, 3, 8, 1, 2, 5, 4, 7}, 2, 5, 2)
		tensortest.GradCheck(t, p.Name, func(t *tensor.Tape, in []*tensor.Tensor) *tensor.Tensor {
			return p.Forward(t, in[0], []int{5, 3})
		}, []*tensor.Tensor{x})
	}
}

func TestRefusedPipelines(t *testing.T) {
	for _, c := range []struct{ dir, file, old, new, want string }{
		{"sentence_mean", "modules.json", "models.Pooling", "models.CNN", `DIR/modules.json: module 1 is "sentence_transformers.models.CNN", want `},
		{"sentence_mean", "modules.json", "sentence_transformers.models.Normalize", "mine.Normalize", `module 2 is "mine.Normalize", want`},
		{"sentence_mean", "modules.json", `"1_Pooling"`, `"../1_Pooling"`, `module 1 has path "../1_Pooling", want one within the directory`},
		{"sentence_mean", "modules.json", `[`, `{`, "DIR/modules.json: is not JSON at line 2, column 3: unexpected '{'"},
		{"sentence_mean", "1_Pooling/config.json", `"include_prompt"`, `"include_it"`, "DIR/1_Pooling/config.json: setting include_it = true is not known, and may change the result"},
		{"sentence_mean", "1_Pooling/config.json", `: 15`, `: 16`, "word_embedding_dimension is 16, but the model's hidden states have 15 elements"},
		{"sentence_lower", "tokenizer.json", `"lowercase": true`, `"lowercase": false`, "DIR/sentence_bert_config.json: do_lower_case is true, but the tokenizer keeps capital letters"},
		{"sentence_dense", "1_Pooling/config.json", `"mean"`, `"median"`, `pooling_mode has pooling "median", want one of cls, max, `},
		{"sentence_dense", "2_Dense/config.json", "activation.Tanh", "activation.Mish", `activation_function is "torch.nn.modules.activation.Mish", want one of `},
		{"sentence_dense", "2_Dense/config.json", "30", "29", "in_features is 29, but the vector before has 30 elements"},
		{"sentence_dense", "3_Dense/config.json", `"out_features": 7`, `"out_features": 8`, `DIR/3_Dense/model.safetensors: tensor "linear.weight" has shape [7 11], want [8 11]`},
		{"sparse_router", "config_sentence_transformers.json", `"SparseEncoder"`, `"SentenceTransformer"`, `model_type is "SentenceTransformer", want "SparseEncoder" or none`},
		{"sparse_router", "config_sentence_transformers.json", `"similarity_fn_name": null`, `"max_active_dims": 4`, `max_active_dims is 4, want none`},
		{"sparse_router", "modules.json", `]`, `, {"path": "x", "type": "sentence_transformers.models.Dense"}]`, `module 2 is "sentence_transformers.models.Dense", want no module behind SpladePooling`},
		{"sparse_router", "router_config.json", `: "document"`, `: "documents"`, `structure has no route "documents", want one of "document", "query"`},
		{"sparse_router", "modules.json", `"path": ""`, `"path": "../x"`, `module 0 has path "../x", want one within the directory`},
		{"sparse_router", "router_config.json", `: "document"`, `: null`, `structure has no route "", want one of "document", "query"`},
		{"sparse_router", "router_config.json", `"route_mappings": {}`, `"route_mappings": {"('query', None)": "document"}`, `parameters.route_mappings is {"('query', None)":"document"}, want {} or none`},
		{"sparse_router", "router_config.json", `"types"`, `"note": 1, "types"`, `setting note = 1 is not known`},
		{"sparse_router", "router_config.json", `"document_1_SpladePooling"
`, `"../1_SpladePooling"
`, `module 1 has path "../1_SpladePooling", want one within the directory`},
		{"sparse_router", "document_1_SpladePooling/config.json", `"max"`, `"mean"`, `pooling_strategy is "mean", want "max" or "sum" or none`},
		{"sparse_router", "document_1_SpladePooling/config.json", `"relu"`, `"gelu"`, `activation_function is "gelu", want "relu" or "log1p_relu" or none`},
		{"sparse_router", "document_1_SpladePooling/config.json", `null`, `26`, `embedding_dimension is 26, but the vocabulary has 27 tokens`},
		{"sparse_router", "document_1_SpladePooling/config.json", `{`, `{"note": 1,`, `setting note = 1 is not known`},
		{"sparse_router", "document_0_MLMTransformer/sentence_bert_config.json", `"fill-mask"`, `"feature-extraction"`, `transformer_task is "feature-extraction", want "fill-mask"`},
		{"static_model2vec", "config.json", `"normalize": true`, `"normalize": false`, `normalize is false, want true or none`},
		{"static_model2vec", "config.json", `"model2vec"`, `"bert"`, `model_type is "bert", want "model2vec" or none`},
		{"static_model2vec", "config.json", `{`, `{"note": 1,`, `setting note = 1 is not known`},
		{"static_table", "modules.json", `]`, `, {"path": "", "type": "sentence_transformers.models.Pooling"}]`, `module 1 is "sentence_transformers.models.Pooling", want Dense, Normalize, Dropout`},
		{"sentence_dense", "config_sentence_transformers.json", `_name": "query"`, `_name": "other"`, `default_prompt_name is "other", which is not among the prompts`},
		{"sentence_dense", "config_sentence_transformers.json", `"SentenceTransformer"`, `"SparseEncoder"`, `model_type is "SparseEncoder", want "SentenceTransformer" or none`},
	} {
		dir := copyDir(t, filepath.Join("testdata", c.dir))
		path := filepath.Join(dir, c.file)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Replace(string(data), c.old, c.new, 1)
		if text == string(data) {
			t.Errorf("%s has no %s", c.file, c.old)
		}
		write(t, path, text)
		_, err = models.LoadEmbedder(dir, models.Options{})
		if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), dir, "DIR"), c.want) {
			t.Errorf("%s: error %v, want %s", c.file, err, c.want)
		}
		if d, err := models.Describe(dir, models.Options{}); err == nil && strings.HasPrefix(c.dir, "sentence") && c.file == "modules.json" && (d.Unpooled == nil || !strings.Contains(d.Unpooled.Error(), strings.TrimPrefix(c.want, "DIR/modules.json: "))) {
			t.Errorf("%s: Describe finds %v, want %s", c.file, d.Unpooled, c.want)
		}
	}
	if _, err := models.LoadEmbedder("testdata/bert", models.Options{}); err == nil || !strings.Contains(err.Error(), "has no modules.json") {
		t.Errorf("a directory without a pipeline: %v", err)
	}
}

// Older pipelines have the transformer in a separate folder.
func TestTransformerInFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "0_Transformer"), os.DirFS("testdata/sentence_mean")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"modules.json", "1_Pooling"} {
		if err := os.Rename(filepath.Join(dir, "0_Transformer", name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, "modules.json"), `[
		{"path": "0_Transformer", "type": "sentence_transformers.models.Transformer"},
		{"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]`)
	if _, err := models.LoadEmbedder(dir, models.Options{}); err != nil {
		t.Error(err)
	}
	want := "is a pipeline whose transformer is in " + filepath.Join(dir, "0_Transformer")
	if _, err := models.Load(dir, models.Options{}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Load: error %v, want one that %s", err, want)
	}
}

// Invalid UTF-8 is an error in models of every kind, as in commands.
func TestInvalidText(t *testing.T) {
	e, err := models.LoadEmbedder("testdata/sentence_mean", models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	words := seq2seq.BuildVocabulary([]string{"a b"}, seq2seq.Words, 50)
	c := models.TranslatorConfig{Arch: models.Transformer, Score: "scaled", Width: 6, Heads: 1, Layers: 1, Hidden: 4}
	translator, err := models.NewTranslator(c, words, words, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func(text string) error{
		"Embed":           func(text string) error { _, err := e.Embed(t.Context(), "a", text); return err },
		"Embedder.Encode": func(text string) error { _, _, err := e.Encode(t.Context(), text); return err },
		"Model.Encode":    func(text string) error { _, err := e.Model.Encode(text, ""); return err },
		"pair":            func(text string) error { _, err := e.Model.Encode("a", text); return err },
		"translator":      func(text string) error { _, err := translator.Encode(text, ""); return err },
		"target":          func(text string) error { _, err := probe.TranslationExample(translator, "a", text); return err },
		"Model.Translate": func(text string) error { _, err := translator.Translate(t.Context(), []string{text}, 1); return err },
	} {
		if err := read("a b"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := read("a \xff"); err == nil || !strings.Contains(err.Error(), "invalid UTF-8") {
			t.Errorf("%s: error %v, want that the text is invalid UTF-8", name, err)
		}
	}
}

// A vector is cut only to the lengths for which config.json says that the model was trained, and then has length 1 if
// the pipeline normalizes.
func TestCut(t *testing.T) {
	for _, c := range []struct {
		pipeline, settings string
		n                  int
		want               string // error
	}{
		{"normalized", `"matryoshka_dimensions": [4, 8]`, 4, ""},
		{"normalized", `"matryoshka_dimensions": [4, 8], "is_matryoshka": true`, 15, ""},
		{"normalized", `"matryoshka_dimensions": [4, 8], "is_matryoshka": true`, 5, "is 5, want 15 or one of [4 8]"},
		{"normalized", `"is_matryoshka": true`, 7, ""},
		{"normalized", `"is_matryoshka": true`, 16, "is 16, want 1 to 15"},
		{"normalized", `"is_matryoshka": false, "matryoshka_dimensions": null`, 4,
			"is 4, want 15: config.json does not say that the model has Matryoshka representations"},
		{"normalized", `"matryoshka_dimensions": [4, 16]`, 0, "matryoshka_dimensions has 16, want 1 to 15"},
		{"normalized", `"matryoshka_dimensions": "all"`, 0, `matryoshka_dimensions is "all", want a list of lengths`},
		{"raw", `"is_matryoshka": true`, 4, ""},
		{"truncated", `"matryoshka_dimensions": [4, 8]`, 4, ""},
		{"truncated", `"matryoshka_dimensions": [4, 8]`, 8, "is 8, want 6 or one of [4]"},
	} {
		dir := copyDir(t, "testdata/sentence_mean")
		if c.pipeline == "truncated" {
			write(t, filepath.Join(dir, "config_sentence_transformers.json"), `{"truncate_dim": 6}`)
		}
		if c.pipeline == "raw" { // without Normalize
			write(t, filepath.Join(dir, "modules.json"), `[{"path": "", "type": "sentence_transformers.models.Transformer"},
				{"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]`)
		}
		config, err := os.ReadFile(filepath.Join(dir, "config.json"))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "config.json"), strings.Replace(string(config), "{", "{"+c.settings+",", 1))
		e, err := models.LoadEmbedder(dir, models.Options{})
		var cut func([]float32) []float32
		if err == nil {
			cut, err = e.Cut(c.n)
		}
		if c.want != "" || err != nil {
			if c.want == "" || err == nil || !strings.HasSuffix(err.Error(), c.want) {
				t.Errorf("%s: error %v, want %q", c.settings, err, c.want)
			}
			continue
		}
		y, err := e.Embed(t.Context(), "the cat sat.")
		if err != nil {
			t.Fatal(err)
		}
		got, sum, norm := cut(y.Data()), 0., 1.
		for _, x := range y.Data()[:c.n] {
			sum += float64(x) * float64(x)
		}
		if c.pipeline == "normalized" {
			norm = math.Sqrt(sum)
		}
		if len(got) != c.n {
			t.Fatalf("%s: %d elements, want %d", c.settings, len(got), c.n)
		}
		for i, x := range got {
			if want := float64(y.Data()[i]) / norm; math.Abs(float64(x)-want) > 1e-6 {
				t.Errorf("%s: element %d is %v, want %v", c.settings, i, x, want)
			}
		}
	}
}

// A vector of Nomic Embed 1.5 passes through a LayerNorm without weights, is cut and then normalized, as its model card
// says, unless the pipeline normalizes.
func TestCutNomic(t *testing.T) {
	m, err := models.Load("testdata/nomic_published", models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	x := models.Batch{IDs: [][]int{{2, 7, 9, 4, 11, 5}}}
	for _, layers := range [][]models.Layer{nil, {models.Normalize()}} {
		e := models.NewEmbedder(m, models.Poolings()[2:3], layers...)
		e.Dimensions = []int{5}
		y := e.Forward(nil, x).Data()
		cut, err := e.Cut(5)
		if err != nil {
			t.Fatal(err)
		}
		var mean, variance, length float64
		for _, v := range y {
			mean += float64(v) / float64(len(y))
		}
		for _, v := range y {
			variance += (float64(v) - mean) * (float64(v) - mean) / float64(len(y))
		}
		if layers != nil {
			mean, variance = 0, 1
		}
		for _, v := range y[:5] {
			length += (float64(v) - mean) * (float64(v) - mean) / (variance + 1e-5)
		}
		for i, got := range cut(y) {
			if want := (float64(y[i]) - mean) / math.Sqrt((variance+1e-5)*length); math.Abs(float64(got)-want) > 1e-6 {
				t.Errorf("%d layers: element %d is %v, want %v", len(layers), i, got, want)
			}
		}
	}
}
