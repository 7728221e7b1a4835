package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/npy"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tensor/tensortest"
)

// Vectors are written in the order of the lines, for any batch size.
func TestEmbedKeepsTheOrder(t *testing.T) {
	const dir = "../../models/testdata/sentence_dense"
	words := strings.Fields("cat dog sat sleeps on the mat who ? run sun unheard-of")
	var texts []string
	for i := range 2*64 + 7 { // two batches and a part
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
	saved := filepath.Join(t.TempDir(), "v.npy")
	command(t, "embed", "--model", dir, "--npy", saved, path)
	file, err := os.Open(saved)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	array, err := npy.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range texts {
		var got []float32
		if err := json.Unmarshal([]byte(lines[i]), &got); err != nil {
			t.Fatal(err)
		}
		want, err := e.Embed(t.Context(), text)
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

// attn run writes the same values as transformers computes.
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

// The same for encoder–decoders, with targets of unequal lengths.
func TestRunEncoderDecoder(t *testing.T) {
	for _, name := range []string{"m2m100", "marian", "marian_two_vocabularies", "t5", "t5_1.1"} {
		dir := "../../models/testdata/seq2seq/" + name
		g := tensortest.Open(t, dir+"/golden.safetensors")
		tokens := func(prefix, ids, lens string) []safetensors.Tensor {
			shape := g.Shape(ids)
			masked := make([]int, shape[0]*shape[1])
			for i, n := range g.Ints(lens) {
				for j := range n {
					masked[i*shape[1]+j] = 1
				}
			}
			return []safetensors.Tensor{safetensors.FromInts(prefix+"input_ids", shape, g.Ints(ids)), safetensors.FromInts(prefix+"attention_mask", shape, masked)}
		}
		file := safetensors.File{Tensors: append(tokens("", "in.ids", "in.lens"), tokens("decoder_", "in.targets", "in.target_lens")...)}
		in, out := filepath.Join(t.TempDir(), "in"), filepath.Join(t.TempDir(), "out")
		if err := file.WriteFile(in); err != nil {
			t.Fatal(err)
		}
		command(t, "run", "--model", dir, "--in", in, "--out", out)
		got := tensortest.Open(t, out)
		wrote, err := safetensors.Read(out)
		if err != nil {
			t.Fatal(err)
		}
		checked := 0
		for want, written := range map[string]string{"source": "hidden", "hidden": "decoder_hidden", "encoder": "weights", "decoder": "decoder", "cross": "cross"} {
			for i := 0; g.Has(fmt.Sprintf("want.%s.%d", want, i)); i++ {
				g.Check(fmt.Sprintf("want.%s.%d", want, i), got.Tensor(fmt.Sprintf("%s.%d", written, i)))
				checked++
			}
		}
		g.Check("want.logits", got.Tensor("logits"))
		if n := len(wrote.Tensors); n != checked+3 { // input_ids, decoder_input_ids and logits
			t.Errorf("%s: %d tensors, of which %d are compared", name, n, checked)
		}
		// One sequence of flags, and the token with which each target begins.
		command(t, "run", "--model", dir, "--ids", "4,5,6", "--out", out)
		start := tensortest.Open(t, out)
		command(t, "run", "--model", dir, "--ids", "4,5,6", "--decoder-ids", fmt.Sprint(start.Ints("decoder_input_ids")[0])+",3", "--out", out)
		both := tensortest.Open(t, out)
		if a, b := start.Tensor("logits").Data(), both.Tensor("logits").Data(); !slices.Equal(a, b[:len(a)]) || len(b) != 2*len(a) {
			t.Errorf("%s: logits of the start token depend on what follows", name)
		}
	}
}
