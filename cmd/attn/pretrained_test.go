package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// Vectors come in the order of the lines, whatever batches they were computed in.
func TestEmbedKeepsTheOrder(t *testing.T) {
	const dir = "../../models/testdata/sentence_dense"
	words := strings.Fields("cat dog sat sleeps on the mat who ? run sun unheard-of")
	var texts []string
	for i := range 2*mostInBatch + 7 {
		var text []string
		for j := range i * 7 % 10 {
			text = append(text, words[(i+5*j)%len(words)])
		}
		texts = append(texts, strings.Join(text, " "))
	}
	path := filepath.Join(t.TempDir(), "texts")
	if err := os.WriteFile(path, []byte(strings.Join(texts, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(command(t, "embed", "--model", dir, path), "\n"), "\n")
	if len(lines) != len(texts) {
		t.Fatalf("%d lines, want %d", len(lines), len(texts))
	}
	e, err := models.LoadEmbedder(dir, models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	npy := filepath.Join(t.TempDir(), "v.npy")
	command(t, "embed", "--model", dir, "--npy", npy, path)
	file, err := os.Open(npy)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	array, err := tensor.ReadNPY(file)
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range texts {
		var got []float32
		if err := json.Unmarshal([]byte(lines[i]), &got); err != nil {
			t.Fatal(err)
		}
		want, err := e.Embed(text)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want.Data()) {
			t.Fatalf("line %d, %q: %v, want %v", i, text, got, want.Data())
		}
		if row := array.Data()[i*e.Width() : (i+1)*e.Width()]; !slices.Equal(row, got) {
			t.Fatalf("row %d of the array is %v, want %v", i, row, got)
		}
	}
}

// What attn run writes is what transformers computes.
func TestRunModel(t *testing.T) {
	const dir = "../../models/testdata/bert_words"
	g := tensortest.Open(t, dir+"/golden.safetensors")
	ids, lens := g.Ints("in.ids"), g.Ints("in.lens")
	mask := make([]int, len(ids))
	l := g.Shape("in.ids")[1]
	for i, n := range lens {
		for j := range n {
			mask[i*l+j] = 1
		}
	}
	in, out := filepath.Join(t.TempDir(), "in"), filepath.Join(t.TempDir(), "out")
	file := safetensors.File{Tensors: []safetensors.Tensor{
		safetensors.FromInts("input_ids", []int{len(lens), l}, ids),
		safetensors.FromInts("token_type_ids", []int{len(lens), l}, g.Ints("in.types")),
		safetensors.FromInts("attention_mask", []int{len(lens), l}, mask),
	}}
	if err := file.WriteFile(in); err != nil {
		t.Fatal(err)
	}
	command(t, "run", "--model", dir, "--in", in, "--out", out)
	got := tensortest.Open(t, out)
	for _, name := range []string{"hidden.0", "hidden.1", "hidden.2", "weights.0", "weights.1", "logits"} {
		g.Check("want."+name, got.Tensor(name))
	}
}

func TestPretrainedSource(t *testing.T) {
	m, err := models.Load("../../models/testdata/sentence_dense", models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := pretrainedSource{m: m}.Record(t.Context(), "the cats", "who ?")
	if err != nil {
		t.Fatal(err)
	}
	want := "[CLS] the cat ##s [SEP] who ? [SEP]"
	l := r.Layer(heads.Encoder, 1)
	if r.Source != "the cats" || r.Target != "who ?" || len(r.Layers) != 2 || strings.Join(l.Keys, " ") != want {
		t.Errorf("%q and %q in %d layers with keys %v, want %s", r.Source, r.Target, len(r.Layers), l.Keys, want)
	}
	if strings.Join(r.Special, " ") != "[CLS] [SEP]" {
		t.Errorf("special tokens %v", r.Special)
	}
	if problems := l.Check(); problems != nil {
		t.Errorf("weights: %v", problems)
	}
}
