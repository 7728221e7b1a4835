package models_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
	"github.com/attn-go/attn/tokenizer"
)

// TestLateEmbedder compares vectors and scores with those of sentence-transformers. A text has the same bits alone, in a
// batch, and while a tape records.
func TestLateEmbedder(t *testing.T) {
	paths, err := filepath.Glob("testdata/late_*/golden_late.safetensors")
	if err != nil || len(paths) < 6 {
		t.Fatalf("%d golden files: %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) {
			g := tensortest.Open(t, path)
			e, err := models.LoadLateEmbedder(filepath.Dir(path), models.Options{Trainable: true})
			if err != nil {
				t.Fatal(err)
			}
			sides := map[string][]*tensor.Tensor{}
			for name, side := range map[string]*models.LateTexts{"query": e.Queries, "document": e.Documents} {
				key := "documents"
				if name == "query" {
					key = "queries"
				}
				var texts []string
				if err := json.Unmarshal([]byte(g.Setting(key)), &texts); err != nil {
					t.Fatal(err)
				}
				all, err := side.Embed(t.Context(), texts...)
				if err != nil {
					t.Fatal(err)
				}
				sides[name] = all
				var encoded []*tokenizer.Encoding
				for i, text := range texts {
					g.Check(fmt.Sprintf("want.%s.%d", name, i), all[i])
					one, err := side.Embed(t.Context(), text)
					if err != nil {
						t.Fatal(err)
					}
					if !slices.Equal(one[0].Data(), all[i].Data()) || one[0].Dim(1) != e.Width() {
						t.Errorf("%s %d alone has other vectors than in a batch", name, i)
					}
					x, _, err := side.Encode(t.Context(), text)
					if err != nil {
						t.Fatal(err)
					}
					encoded = append(encoded, x)
				}
				tape := tensor.NewTape(tensor.Eval)
				for i, y := range side.Forward(tape, encoded...) {
					if !slices.Equal(y.Data(), all[i].Data()) {
						t.Errorf("%s %d has other vectors on a tape that records", name, i)
					}
				}
			}
			var scores []*tensor.Tensor
			for _, q := range sides["query"] {
				row, _ := e.Scores(nil, q, sides["document"]...)
				scores = append(scores, tensor.Reshape(nil, row, 1, -1))
			}
			g.Check("want.scores", tensor.Concat(nil, 0, scores...))
		})
	}
}

// The alignment of a query and a document names tokens that have vectors, and tokens that fill a query are not attended
// to if the files say so.
func TestLateTokens(t *testing.T) {
	e, err := models.LoadLateEmbedder("testdata/late_colbert", models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	q, cut, err := e.Queries.Encode(t.Context(), "Who sat?")
	if err != nil || cut {
		t.Fatal(cut, err)
	}
	if got, want := strings.Join(q.Tokens, " "), "[CLS] [unused0] who sat ? [SEP]"+strings.Repeat(" [MASK]", 7); got != want {
		t.Errorf("tokens %s, want %s", got, want)
	}
	if !q.Mask[5] || q.Mask[6] || len(e.Queries.Scored(q)) != 13 {
		t.Errorf("mask %v, %d vectors", q.Mask, len(e.Queries.Scored(q)))
	}
	d, cut, err := e.Documents.Encode(t.Context(), "a cat, a dog. "+strings.Repeat("a cat ", 20))
	if err != nil || !cut || len(d.IDs) != 17 || d.Tokens[1] != "[unused1]" {
		t.Errorf("%v, truncated: %v, error %v", d.Tokens, cut, err)
	}
	if got := e.Documents.Scored(d); !slices.Equal(got[:7], []int{0, 1, 2, 3, 5, 6, 8}) {
		t.Errorf("vectors of tokens %v", got)
	}
	if none, err := e.Documents.Embed(t.Context()); err != nil || len(none) != 0 {
		t.Errorf("no texts: %v, %v", none, err)
	}
	e.Documents.MostTokens = 1
	if _, _, err := e.Documents.Encode(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "MostTokens is 1, want more") {
		t.Errorf("error %v", err)
	}
	if _, err := e.Queries.Embed(t.Context(), "a", "\xff"); err == nil || !strings.Contains(err.Error(), "text 1: ") {
		t.Errorf("error %v", err)
	}
}

// Files that ask for something else than late interaction as it is computed are refused by name.
func TestRefusedLate(t *testing.T) {
	const (
		settings, length = "config_sentence_transformers.json", "sentence_bert_config.json"
		metadata, dense  = "artifact.metadata", "3_Dense/config.json"
		mask             = "4_MultiVectorMask/config.json"
	)
	for _, c := range []struct{ dir, file, old, new, want string }{
		{"late_colbert", metadata, `"nbits"`, `"bits"`, "DIR/artifact.metadata: setting bits = 2 is not known"},
		{"late_colbert", metadata, `"dim": 9`, `"dim": 8`, "dim is 8, want 9"},
		{"late_colbert", metadata, `"cosine"`, `"l2"`, `similarity is "l2", want "cosine"`},
		{"late_colbert", metadata, `"interaction": "colbert"`, `"interaction": "flipr"`, `interaction is "flipr"`},
		{"late_colbert", metadata, `"query_maxlen": 13`, `"query_maxlen": 30`, "queries have 30 tokens, want at most 29"},
		{"late_colbert", metadata, `{`, `[`, "DIR/artifact.metadata: is not JSON"},
		{"late_colbert", "config.json", colbert, "BertModel", `tensor "linear.weight" is not read`},
		{"late_colbert", "tokenizer_config.json", `"mask_token"`, `"padding_side": "left", "mask_token"`, "padding_side is left, want right"},
		{"late_pylate", settings, `"query_prefix"`, `"query_prefixes"`, "query_prefix is missing"},
		{"late_pylate", settings, `"MaxSim"`, `"euclidean"`, `similarity_fn_name is "euclidean", want maxsim or meanmaxsim`},
		{"late_pylate", settings, `"ColBERT"`, `"ColBERT", "note": 1`, "setting note = 1 is not known"},
		{"late_pylate", settings, `"ColBERT"`, `"SparseEncoder"`, `model_type is "SparseEncoder"`},
		{"late_pylate", "modules.json", `pylate.models.Dense.Dense`, `pylate.models.Dense.Sparse`, `module 1 is "pylate.models.Dense.Sparse", want a Transformer and then any of Dense`},
		{"late_pylate", "modules.json", `"1_Dense"`, `"../1"`, `module 1 has path "../1", want one within`},
		{"late_pylate", "modules.json", `sentence_transformers.models.Transformer`, `sentence_transformers.models.CLIPModel`, `module 0 is`},
		{"late_pylate_old", "modules.json", `pylate.models.Dense.Dense`, `sentence_transformers.models.Dense`, "is not a model of late interaction, want model_type"},
		{"late_pylate", "1_Dense/config.json", `"activation_function": "torch.nn.modules.linear.Identity"`, `"use_residual": false`, "activation_function is missing"},
		{"late_pylate", "1_Dense/config.json", `"bias"`, `"note": 1, "bias"`, "setting note = 1"},
		{"late_chain", length, `"strategy": "min"`, `"strategy": "most"`, `query_expansion.strategy is "most"`},
		{"late_chain", length, `"strategy": "min",`, ``, `query_expansion.strategy is missing`},
		{"late_chain", length, `"length": 9`, `"length": 12`, "query_length is 11, want at least the length of query_expansion, 12"},
		{"late_chain", length, `"token": "and"`, `"token": "or"`, `query_expansion has the token "or", want one of the vocabulary`},
		{"late_chain", length, `"attend": true`, `"attends": true`, "setting query_expansion.attends = true is not known"},
		{"late_chain", length, `"query_length"`, `"processing_kwargs": {"text": {"max_length": 9}}, "query_length"`, "processing_kwargs has max_length beside query_length"},
		{"late_chain", mask, `"keep_only_token_ids": null`, `"keep_only_token_ids": [3]`, "keep_only_token_ids is [3]"},
		{"late_chain", mask, `"document"`, `"passage"`, `skiplist_tasks has "passage", want query or document`},
		{"late_chain", mask, `"skiplist_words"`, `"skiplist"`, "setting skiplist = "},
		{"late_chain", dense, `"token_embeddings"`, `"sentence_embedding"`, `module_input_name is "sentence_embedding"`},
		{"late_chain", "5_Normalize/config.json", `"module_input_name"`, `"module_name"`, `module_input_name is missing, want "token_embeddings"`},
		{"late_chain", "modules.json", `mask.MultiVectorMask"`, `mask.TokenPooling"`, "TokenPooling"},
		{"late_chain", "modules.json", `modules.multi_vector_mask.MultiVectorMask`, `modules.Dropout`, "has no MultiVectorMask, want one for query_expansion"},
		{"sentence_mean", length, "7", "6", "is not a model of late interaction"},
	} {
		dir := copyDir(t, filepath.Join("testdata", c.dir))
		path := filepath.Join(dir, c.file)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Replace(string(data), c.old, c.new, 1)
		if text == string(data) {
			t.Errorf("%s of %s has no %s", c.file, c.dir, c.old)
		}
		write(t, path, text)
		_, err = models.LoadLateEmbedder(dir, models.Options{})
		if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), dir, "DIR"), c.want) {
			t.Errorf("%s: error %v, want %s", c.file, err, c.want)
		}
	}
	if _, err := models.LoadLateEmbedder("testdata/bert", models.Options{}); err == nil || !strings.Contains(err.Error(), "want modules.json, or a BERT of the class HF_ColBERT") {
		t.Errorf("error %v", err)
	}
	for _, dir := range []string{"testdata/late_colbert", "testdata/late_chain", "testdata/late_pylate_old"} {
		if _, err := models.LoadEmbedder(dir, models.Options{}); err == nil || !strings.Contains(err.Error(), "want LoadLateEmbedder, or attn rerank") {
			t.Errorf("%s: error %v", dir, err)
		}
		if d, err := models.Describe(dir, models.Options{}); err != nil || d.Unpooled != nil {
			t.Errorf("%s: %v, %v", dir, d, err)
		}
	}
	dir := copyDir(t, "testdata/late_chain")
	write(t, filepath.Join(dir, "modules.json"), "[]")
	if _, err := models.LoadLateEmbedder(dir, models.Options{}); err == nil || !strings.Contains(err.Error(), "is not a model of late interaction") {
		t.Errorf("error %v", err)
	}
}

const colbert = "HF_ColBERT"

// TestM3 compares the outputs of BGE-M3 with its formulas, in a batch and alone.
func TestM3(t *testing.T) {
	const dir = "testdata/m3"
	g := tensortest.Open(t, dir+"/golden_m3.safetensors")
	e, err := models.LoadEmbedder(dir, models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	if err := json.Unmarshal([]byte(g.Setting("documents")), &texts); err != nil {
		t.Fatal(err)
	}
	all, err := e.EmbedM3(t.Context(), texts...)
	if err != nil {
		t.Fatal(err)
	}
	late, err := models.LoadLateEmbedder(dir, models.Options{Pooling: "mean"})
	if err != nil || !models.IsLate(dir) {
		t.Fatal(err)
	}
	same, err := late.Documents.Embed(t.Context(), texts...)
	if err != nil {
		t.Fatal(err)
	}
	var dense []float32
	for i, m := range all {
		dense = append(dense, m.Dense...)
		g.Check(fmt.Sprintf("want.tokens.%d", i), m.Tokens)
		sparse := tensor.Zeros(e.Model.Sizes().Vocabulary)
		for j, id := range m.Sparse.Tokens {
			sparse.Data()[id] = m.Sparse.Weights[j]
		}
		g.Check(fmt.Sprintf("want.sparse.%d", i), sparse)
		one, err := e.EmbedM3(t.Context(), texts[i])
		if err != nil || !slices.Equal(one[0].Dense, m.Dense) || !slices.Equal(one[0].Sparse.Weights, m.Sparse.Weights) ||
			!slices.Equal(one[0].Tokens.Data(), m.Tokens.Data()) || !slices.Equal(same[i].Data(), m.Tokens.Data()) {
			t.Errorf("text %d has other outputs alone, error %v", i, err)
		}
	}
	g.Check("want.vectors", tensor.New(dense, len(texts), e.Width()))
	if s, _ := late.Scores(nil, same[0], same[0]); s.At(0) < 0.999 || s.At(0) > 1.001 || late.Width() != 8 {
		t.Errorf("a text compared with itself has the score %v, want 1", s.At(0))
	}
	plain, err := models.LoadEmbedder("testdata/sentence_mean", models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plain.EmbedM3(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "has no sparse_linear and colbert_linear, want those of BGE-M3") {
		t.Errorf("error %v", err)
	}
	bad := copyDir(t, dir)
	copyFile(t, "testdata/sentence_mean/model.safetensors", filepath.Join(bad, "colbert_linear.safetensors"))
	if _, err := models.LoadEmbedder(bad, models.Options{}); err == nil || !strings.Contains(err.Error(), "colbert_linear") {
		t.Errorf("error %v", err)
	}
}
