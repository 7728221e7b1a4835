package models_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/onnx"
	"github.com/attn-go/attn/optim"
	"github.com/attn-go/attn/probe"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/statedict"
	"github.com/attn-go/attn/tensor"
)

// TestDefaultIsPacked: without options, the matrices of a model are packed for inference, and the results have the bits
// of parameters.
func TestDefaultIsPacked(t *testing.T) {
	packed, err := models.LoadEmbedder("testdata/sentence_mean", models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	trainable, err := models.LoadEmbedder("testdata/sentence_mean", models.Options{Trainable: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range packed.Model.Attention() {
		for _, m := range []*nn.Linear{l.Q, l.K, l.V, l.Out} {
			if m.Weight != nil || m.Packed == nil || m.Packed.Format() != tensor.Float32 {
				t.Fatalf("%s has a map that is not packed in float32", l.Config().Name)
			}
		}
	}
	var got [2]*tensor.Tensor
	for i, e := range []*models.Embedder{packed, trainable} {
		if got[i], err = e.Embed(t.Context(), "the cat sat on the mat.", "who?"); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(got[0].Data(), got[1].Data()) {
		t.Error("vectors by packed weights differ from those by parameters")
	}
}

// TestPackedRefuses: whatever needs parameters returns or panics with an error that says how to load them.
func TestPackedRefuses(t *testing.T) {
	e, err := models.LoadEmbedder("testdata/sentence_mean", models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, layer := e.Model, e.Model.Attention()[0]
	x, err := m.Tokens("the cat")
	if err != nil {
		t.Fatal(err)
	}
	trainable, err := models.LoadEmbedder("testdata/sentence_mean", models.Options{Trainable: true})
	if err != nil {
		t.Fatal(err)
	}
	cat, _, err := e.Encode(t.Context(), "cat")
	if err != nil {
		t.Fatal(err)
	}
	pairs := []probe.SimilarPair{{First: cat, Second: cat, Cosine: 1}}
	whole, err := probe.NewSimilarity(trainable, pairs)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "model.safetensors")
	for name, f := range map[string]func() error{
		"save a model":        func() error { return statedict.Save(file, m, statedict.SaveOptions{}) },
		"save as in the file": func() error { return statedict.Save(file, m, statedict.SaveOptions{Names: models.StateDict}) },
		"save an embedder":    func() error { return statedict.Save(file, e, statedict.SaveOptions{}) },
		"save a layer":        func() error { return statedict.Save(file, layer, statedict.SaveOptions{}) },
		"save for PyTorch":    func() error { return statedict.Save(file, layer, statedict.SaveOptions{Names: nn.TorchNames}) },
		"export":              func() error { _, err := onnx.FromMultiHead(layer, onnx.Options{}); return err },
		"optimise":            func() error { return tensor.Catch(func() { optim.NewAdamW(m) }) },
		"count":               func() error { return tensor.Catch(func() { nn.Count(e) }) },
		"differentiate":       func() error { return tensor.Catch(func() { e.Forward(tensor.NewTape(tensor.Eval), x) }) },
		"probe":               func() error { _, err := probe.New(m, nil); return err },
		"probe of pairs":      func() error { _, err := probe.NewSimilarity(e, pairs); return err },
		"probe of another":    func() error { _, err := whole.Of(m); return err },
		"cut heads":           func() error { _, err := layer.Keep([]int{0}); return err },
		"norms of weights": func() error {
			o := prune.ImportanceOptions{Methods: []prune.Method{prune.WeightNorm}}
			_, err := prune.Importance(t.Context(), packedSubject{whole, m}, o)
			return err
		},
	} {
		err := f()
		if s := fmt.Sprint(err); err == nil || !strings.Contains(s, "packed") || !strings.Contains(s, "models.Options{Trainable: true}") {
			t.Errorf("%s: error %v, want one that says how to load parameters", name, err)
		}
	}
	want := "models: Options.Format is int8, want float32 for Options.Trainable"
	if _, err := models.Load("testdata/bert", models.Options{Format: tensor.Int8, Trainable: true}); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if _, err := models.Load("testdata/bert", models.Options{Format: tensor.Float32, Trainable: true}); err != nil {
		t.Error(err)
	}
}

// packedSubject is a custom subject whose layers have packed weights.
type packedSubject struct {
	*probe.Probe
	m *models.Model
}

func (s packedSubject) Layers() []attn.LayerHeads { return prune.Layers(s.m.Attention()) }
