package onnx_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/onnx"
)

// testModels are the directories of the tiny models of package models.
var testModels = filepath.Join("..", "models", "testdata")

// trainable loads a model.
func trainable(t *testing.T, dir string) *models.Model {
	t.Helper()
	m, err := models.Load(dir, models.Options{Trainable: true})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// encoderBatch returns texts of random tokens, among them that of padding, and the inputs of an encoder, whose padding
// has random tokens too.
func encoderBatch(m *models.Model, lens []int) (x models.Batch, in arrays) {
	rng, z, longest := rand.New(rand.NewPCG(3, 4)), m.Sizes(), slices.Max(lens)
	var ids, types, mask []int
	for _, n := range lens {
		for i := range longest {
			ids, types, mask = append(ids, rng.IntN(z.Vocabulary)), append(types, rng.IntN(max(z.Types, 1))), append(mask, min(max(n-i, 0), 1))
		}
		at := len(ids) - longest
		x.IDs, x.Types = append(x.IDs, ids[at:][:n]), append(x.Types, types[at:][:n])
	}
	in = arrays{"input_ids": whole(ids, len(lens), longest), "attention_mask": whole(mask, len(lens), longest)}
	if z.Types > 1 {
		in["token_type_ids"] = whole(types, len(lens), longest)
	} else {
		x.Types = nil
	}
	return x, in
}

// encoderLens are the lengths of texts. Those of MPNet are longer, since its biases depend on distances.
func encoderLens(m *models.Model) []int {
	if m.Family.Type == "mpnet" {
		return []int{3, m.Sizes().Positions, 1, 9}
	}
	return []int{3, min(13, m.Sizes().Positions), 1, 9}
}

// checkEncoder compares the outputs of an ONNX model with those of a network, which are arbitrary at padding.
func checkEncoder(t *testing.T, exported *onnx.Model, in, want arrays) {
	t.Helper()
	var file strings.Builder
	if err := exported.Write(&file); err != nil {
		t.Fatal(err)
	}
	read, err := Read([]byte(file.String()))
	if err != nil {
		t.Fatal(err)
	}
	got, err := read.Run(in)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Fatalf("%d outputs, want %d", len(got), len(want))
	}
	for name, w := range want {
		if got[name] == nil || len(got[name].Data) != len(w.Data) {
			t.Fatalf("no output %q of shape %v", name, w.Shape)
		}
		if mask := in["attention_mask"]; len(w.Shape) > 1 && slices.Equal(w.Shape[:2], mask.Shape) {
			size := len(w.Data) / len(mask.Data)
			for i, seen := range mask.Data {
				if seen == 0 {
					copy(w.Data[i*size:][:size], got[name].Data[i*size:][:size])
				}
			}
		}
	}
	Check(t, exported, in, want)
}

// Every encoder that package models can load gives the same hidden states and logits, whatever its padding contains.
func TestONNXEncoders(t *testing.T) {
	dirs, err := filepath.Glob(filepath.Join(testModels, "*", "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, path := range dirs {
		if d, err := models.Describe(filepath.Dir(path), models.Options{}); err == nil && d.Sizes.Layers == 0 { // a table
			if _, err = models.Load(filepath.Dir(path), models.Options{Trainable: true}); err == nil || !strings.Contains(err.Error(), "begins with a "+d.Family.Name) {
				t.Errorf("%s is loaded with %v, want an error: it has no layers to export", path, err)
			}
			continue
		}
		m := trainable(t, filepath.Dir(path))
		_, err := m.ONNX(0)
		if errors.As(err, new(*models.FormatError)) {
			continue
		}
		found[m.Family.Name] = true
		x, in := encoderBatch(m, encoderLens(m))
		hidden := m.Hidden(nil, x, models.Run{})
		want := arrays{"last_hidden_state": array(hidden)}
		if h := m.Head(); h != nil {
			want["logits"] = array(h.Of(nil, hidden, x))
		}
		t.Run(filepath.Base(m.Dir), func(t *testing.T) {
			eachOpset(t, func(t *testing.T, opset int) {
				exported, err := m.ONNX(opset)
				if err != nil {
					t.Fatal(err)
				}
				checkEncoder(t, exported, in, want)
			})
		})
	}
	for _, name := range exportable(t) {
		if !found[name] {
			t.Errorf("no model of %s, which errors say can be exported", name)
		}
		delete(found, name)
	}
	if len(found) > 0 {
		t.Errorf("%v can be exported, but errors do not say so", found)
	}
}

// exportable returns the families that the error for another one names.
func exportable(t *testing.T) []string {
	t.Helper()
	_, err := trainable(t, filepath.Join(testModels, "llama_text")).ONNX(0)
	_, list, _ := strings.Cut(fmt.Sprint(err), "want ")
	list, ok := strings.CutSuffix(list, " or a translator of attn train")
	names := strings.Split(list, ", ")
	if !ok || len(names) < 8 {
		t.Fatalf("error %v, want one that names 8 families or more", err)
	}
	return names
}

// The positions of RoBERTa depend on the tokens before a token, whatever the padding is and wherever it is.
func TestONNXEncoderPaddedFirst(t *testing.T) {
	m := trainable(t, filepath.Join(testModels, "roberta"))
	x, in := encoderBatch(m, []int{7})
	const padding = 3
	for _, a := range in {
		a.Data, a.Shape = slices.Concat(make([]float64, padding), a.Data), []int{1, padding + 7}
	}
	hidden := array(m.Hidden(nil, x, models.Run{}))
	hidden.Data, hidden.Shape = slices.Concat(make([]float64, padding*hidden.Shape[2]), hidden.Data), []int{1, padding + 7, hidden.Shape[2]}
	exported, err := m.ONNX(0)
	if err != nil {
		t.Fatal(err)
	}
	checkEncoder(t, exported, in, arrays{"last_hidden_state": hidden})
}

// A pipeline gives the same vectors, with every pooling.
func TestONNXEmbedders(t *testing.T) {
	dirs, err := filepath.Glob(filepath.Join(testModels, "sentence_*", models.PipelineFile))
	if err != nil || len(dirs) < 4 {
		t.Fatalf("%d pipelines, want 4 or more: %v", len(dirs), err)
	}
	cut := filepath.Join(t.TempDir(), "truncated")
	err = os.CopyFS(cut, os.DirFS(filepath.Join(testModels, "sentence_mean")))
	if err == nil {
		err = os.WriteFile(filepath.Join(cut, "config_sentence_transformers.json"), []byte(`{"truncate_dim": 6}`), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	dirs = append(dirs, filepath.Join(cut, models.PipelineFile))
	var all []*models.Embedder
	for _, path := range dirs {
		e, err := models.LoadEmbedder(filepath.Dir(path), models.Options{Trainable: true})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	all = append(all, models.NewEmbedder(trainable(t, filepath.Join(testModels, "modernbert")), models.Poolings(), models.Normalize()))
	for _, e := range all {
		x, in := encoderBatch(e.Model, encoderLens(e.Model))
		want := arrays{"last_hidden_state": array(e.Model.Hidden(nil, x, models.Run{})), "sentence_embedding": array(e.Forward(nil, x))}
		t.Run(filepath.Base(e.Model.Dir), func(t *testing.T) {
			eachOpset(t, func(t *testing.T, opset int) {
				exported, err := e.ONNX(opset)
				if err != nil {
					t.Fatal(err)
				}
				checkEncoder(t, exported, in, want)
			})
		})
	}
}

// A table that also maps states to tokens is stored once.
func TestONNXEncoderTied(t *testing.T) {
	m := trainable(t, filepath.Join(testModels, "bert_words"))
	exported, err := m.ONNX(0)
	if err != nil {
		t.Fatal(err)
	}
	var file strings.Builder
	if err := exported.Write(&file); err != nil {
		t.Fatal(err)
	}
	read, err := Read([]byte(file.String()))
	if err != nil {
		t.Fatal(err)
	}
	z, tables := m.Sizes(), 0
	for _, w := range read.Graph.Weights {
		if len(w.Data) == z.Vocabulary*z.Width {
			tables++
		}
	}
	if tables != 1 {
		t.Errorf("%d tables of %d tokens, want 1", tables, z.Vocabulary)
	}
}

// What cannot be exported is refused in a line that says what can be.
func TestONNXRefusesModels(t *testing.T) {
	for dir, name := range map[string]string{"llama_text": "Llama", "gemma3_embed": "Gemma 3", "deberta_v3": "DeBERTa", "seq2seq/t5": "T5", "decoders/qwen3": "Qwen3"} {
		m := trainable(t, filepath.Join(testModels, filepath.FromSlash(dir)))
		_, err := m.ONNX(0)
		var format *models.FormatError
		if !errors.As(err, &format) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", dir, err)
			continue
		}
		if want := fmt.Sprintf("want %s or a translator of attn train", strings.Join(exportable(t), ", ")); !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %s", dir, err, want)
		}
		e := models.NewEmbedder(m, models.Poolings())
		if _, err := e.ONNX(0); !errors.As(err, &format) {
			t.Errorf("embedder of %s: error %v", dir, err)
		}
	}
	packed, err := models.Load(filepath.Join(testModels, "bert"), models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := packed.ONNX(0); err == nil || !strings.Contains(err.Error(), "Trainable: true") {
		t.Errorf("packed weights: error %v", err)
	}
	if _, err := trainable(t, filepath.Join(testModels, "bert")).ONNX(18); err == nil || !strings.Contains(err.Error(), "opset 18") {
		t.Errorf("opset 18: error %v", err)
	}
	e := models.NewEmbedder(trainable(t, filepath.Join(testModels, "bert")), models.Poolings(), ownNorm{})
	if _, err := e.ONNX(0); err == nil || !strings.Contains(err.Error(), "a layer of type onnx_test.ownNorm") {
		t.Errorf("a custom layer: error %v", err)
	}
	e = models.NewEmbedder(e.Model, []models.Pooling{{Name: "mine"}})
	if _, err := e.ONNX(0); err == nil || !strings.Contains(err.Error(), `a pooling called "mine", want one of Poolings`) {
		t.Errorf("a custom pooling: error %v", err)
	}
	dir := filepath.Join(t.TempDir(), "model")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(testModels, "sentence_dense"))); err != nil {
		t.Fatal(err)
	}
	settings := `{"embedding_dimension": 15, "pooling_mode": ["lasttoken", "mean"], "include_prompt": false}`
	if err := os.WriteFile(filepath.Join(dir, "1_Pooling", "config.json"), []byte(settings), 0o644); err != nil {
		t.Fatal(err)
	}
	if e, err = models.LoadEmbedder(dir, models.Options{Trainable: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.ONNX(0); err == nil || !strings.Contains(err.Error(), "excludes prompts") {
		t.Errorf("a prompt outside the pooling: error %v", err)
	}
}
