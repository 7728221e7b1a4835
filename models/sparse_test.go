package models_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/safetensors"
)

func TestSparseVector(t *testing.T) {
	for _, c := range []struct {
		tokens  []int
		weights []float32
		want    string
	}{
		{[]int{7, 2, 7, 2, 5}, []float32{1, 0.5, 3, 0.25, 0}, `{"indices":[2,7],"values":[0.5,3]}`},
		{[]int{4, 4}, []float32{-1, -2}, `{"indices":[4],"values":[-1]}`},
		{nil, []float32{0, 2, 0, -1}, `{"indices":[1,3],"values":[2,-1]}`},
		{nil, nil, `{"indices":[],"values":[]}`},
	} {
		if got, err := json.Marshal(models.NewSparseVector(c.tokens, c.weights)); err != nil || string(got) != c.want {
			t.Errorf("%v %v: %s, error %v, want %s", c.tokens, c.weights, got, err, c.want)
		}
	}
	v := models.NewSparseVector([]int{1, 3, 8}, []float32{2, 5, 7})
	w := models.NewSparseVector([]int{0, 3, 4, 8, 9}, []float32{1, 0.5, 9, -1, 1})
	if got := v.Dot(w); got != 2.5-7 || w.Dot(v) != got {
		t.Errorf("the product is %v, want %v", got, 2.5-7)
	}
}

// EmbedSparse has the elements of Embed that are not zero, and each route has its vectors and files.
func TestEmbedSparse(t *testing.T) {
	for route, file := range map[string]string{"": "document_0_MLMTransformer/config.json", "query": "query_0_SparseStaticEmbedding/model.safetensors"} {
		e, err := models.LoadEmbedder("testdata/sparse_router", models.Options{Route: route})
		if err != nil {
			t.Fatal(err)
		}
		texts := []string{"the cat", "", "who runs in the sun ?"}
		dense, err := e.Embed(t.Context(), texts...)
		if err != nil {
			t.Fatal(err)
		}
		all, err := e.EmbedSparse(t.Context(), texts...)
		if err != nil || !e.Sparse() {
			t.Fatalf("sparse %t, error %v", e.Sparse(), err)
		}
		for i, v := range all {
			if want := models.NewSparseVector(nil, dense.Data()[i*e.Width():(i+1)*e.Width()]); !reflect.DeepEqual(v, want) {
				t.Errorf("route %q, text %d: %v, want %v", route, i, v, want)
			}
		}
		for _, name := range []string{file, "router_config.json", "document_1_SpladePooling/config.json", "modules.json"} {
			if files := e.Files(); !slices.Contains(files, filepath.Join("testdata/sparse_router", name)) {
				t.Errorf("route %q has the files %s, want %s", route, files, name)
			}
		}
	}
	e, err := models.LoadEmbedder("testdata/sparse_router/document_0_MLMTransformer", models.Options{Pooling: "splade"})
	if err != nil || !e.Sparse() {
		t.Errorf("--pooling splade: error %v", err)
	}
	for _, c := range []struct {
		dir  string
		o    models.Options
		want string
	}{
		{"bert_text", models.Options{Pooling: "splade"}, "has no head for masked words"},
		{"sentence_mean", models.Options{Route: "query"}, `has no Router, want no route; got "query"`},
		{"sparse_router", models.Options{Route: "query", Trainable: true}, "is a SparseStaticEmbedding, which has no attention"},
	} {
		dir := copyDir(t, filepath.Join("testdata", c.dir))
		copyFile(t, "testdata/sentence_mean/tokenizer.json", filepath.Join(dir, "tokenizer.json"))
		if _, err := models.LoadEmbedder(dir, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %s", c.dir, err, c.want)
		}
	}
	trained, err := models.LoadEmbedder("testdata/sparse_router", models.Options{Trainable: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := trained.ONNX(23); err == nil || !strings.Contains(err.Error(), "is a sparse encoder, which cannot be exported") {
		t.Errorf("ONNX: error %v", err)
	}
	if _, err := models.Load("testdata/static_table", models.Options{}); err == nil || !strings.Contains(err.Error(), "begins with a StaticEmbedding, not with a Transformer; LoadEmbedder") {
		t.Errorf("Load: error %v", err)
	}
}

// Tables of other shapes, types and names are refused.
func TestRefusedTables(t *testing.T) {
	row := []float32{1, 2, 3, 4, 5, 6}
	for _, c := range []struct {
		tensors []safetensors.Tensor
		want    string
	}{
		{[]safetensors.Tensor{safetensors.FromFloat32s("table", []int{2, 3}, row)}, `tensor "embedding.weight" is missing; tensor "table" is not read`},
		{[]safetensors.Tensor{safetensors.FromFloat32s("embedding.weight", []int{6}, row)}, "has shape [6], want a row for each token"},
		{[]safetensors.Tensor{safetensors.FromFloat32s("embedding.weight", []int{0, 3}, nil)}, "has shape [0 3], want a row for each token"},
		{[]safetensors.Tensor{safetensors.FromInts("embedding.weight", []int{2, 3}, []int{1, 2, 3, 4, 5, 6})}, "embedding.weight"},
		{[]safetensors.Tensor{safetensors.FromFloat32s("embedding.weight", []int{2, 3}, row), safetensors.FromInts("mapping", []int{1}, []int{0})}, `tensor "mapping" is not read`},
		{[]safetensors.Tensor{safetensors.FromFloat32s("embeddings", []int{2, 3}, row), safetensors.FromInts("mapping", []int{4}, []int{0, 1, 2, 0})}, "tensor mapping: row 2, want 0 to 1"},
		{[]safetensors.Tensor{safetensors.FromFloat32s("embeddings", []int{2, 3}, row), safetensors.FromFloat32s("mapping", []int{2}, row[:2])}, "mapping"},
		{[]safetensors.Tensor{safetensors.FromFloat32s("embeddings", []int{2, 3}, row), safetensors.FromFloat32s("weights", []int{3}, row[:3])}, `tensor "weights" has shape [3], want [2]`},
	} {
		dir := copyDir(t, "testdata/static_table")
		if err := (&safetensors.File{Tensors: c.tensors}).WriteFile(filepath.Join(dir, "model.safetensors")); err != nil {
			t.Fatal(err)
		}
		if _, err := models.LoadEmbedder(dir, models.Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
	// Tokens outside the table.
	dir := copyDir(t, "testdata/static_table")
	if err := (&safetensors.File{Tensors: []safetensors.Tensor{safetensors.FromFloat32s("embedding.weight", []int{2, 3}, row)}}).WriteFile(filepath.Join(dir, "model.safetensors")); err != nil {
		t.Fatal(err)
	}
	e, err := models.LoadEmbedder(dir, models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Embed(t.Context(), "the cat"); err == nil || !strings.Contains(err.Error(), "the text has token id ") {
		t.Errorf("error %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "tokenizer.json")); err != nil {
		t.Fatal(err)
	}
	if _, err := models.LoadEmbedder(dir, models.Options{}); err == nil || !strings.Contains(err.Error(), "tokenizer.json") {
		t.Errorf("error %v", err)
	}
}
