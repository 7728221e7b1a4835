package models_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/statedict"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// TestGradients checks that gradients flow to every parameter that the logits depend on, and compares some of
// them with finite differences.
func TestGradients(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: differences for every family")
	}
	for _, name := range []string{"bert_text", "distilbert_tokens", "roberta_text", "mpnet_text", "deberta_text", "deberta_words", "gte_text", "nomic_words"} {
		dir := filepath.Join("testdata", name)
		m, err := models.Load(dir, models.Options{Trainable: true})
		if err != nil {
			t.Fatal(err)
		}
		g := openGolden(t, dir)
		logits := func(tape *tensor.Tape) *tensor.Tensor {
			return m.Head().Of(tape, m.Hidden(tape, g.x, models.Run{}), g.x)
		}
		tape := tensor.NewTape(tensor.Eval)
		tape.Backward(tensor.Sum(tape, tensor.Square(tape, logits(tape))), nil)
		n := 0
		for param, p := range m.Params() {
			if p.Grad() == nil {
				t.Errorf("%s: no gradient reaches %s", name, param)
			}
			if n++; n%5 != 1 {
				continue
			}
			tensortest.GradCheck(t, name+": "+param, func(tape *tensor.Tape, _ []*tensor.Tensor) *tensor.Tensor {
				y := logits(tape)
				if !m.Head().Task.PerToken() {
					return y
				}
				return tensor.Slice(tape, y, 1, 0, 4) // after the shorter text there is padding
			}, []*tensor.Tensor{p})
		}
		if n == 0 {
			t.Errorf("%s has no parameters", name)
		}
	}
}

// TestSave saves models under the tensor names of their files and loads them again.
func TestSave(t *testing.T) {
	for _, dir := range fewer(cases(t)) {
		m, err := models.Load(dir, models.Options{Trainable: true})
		if err != nil {
			t.Fatal(err)
		}
		to := copyDir(t, dir)
		for _, pattern := range []string{"*.safetensors", "*.index.json"} {
			removeAll(t, filepath.Join(to, pattern))
		}
		if err := statedict.Save(filepath.Join(to, "model.safetensors"), m, statedict.SaveOptions{Names: models.StateDict}); err != nil {
			t.Fatal(err)
		}
		again, err := models.Load(to, models.Options{Trainable: true})
		if err != nil {
			t.Error(err)
			continue
		}
		if got, want := fmt.Sprint(values(again)), fmt.Sprint(values(m)); got != want {
			t.Errorf("%s: what was saved reads as something else", dir)
		}
	}
}

func values(m nn.Module) map[string][]float32 {
	all := map[string][]float32{}
	for name, p := range m.Params() {
		all[name] = p.Data()
	}
	return all
}
