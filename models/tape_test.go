package models_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
)

// TestTapes runs every kind of model on a tape, which releases the intermediate results of layers. Logits and
// the states that a callback receives are the same as without a tape.
func TestTapes(t *testing.T) {
	var dirs []string
	for _, pattern := range []string{"testdata/*/config.json", "testdata/*/*/config.json"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) < 10 {
			t.Fatalf("%d models in %s, %v", len(found), pattern, err)
		}
		dirs = append(dirs, found...)
	}
	ran := 0
	for _, path := range dirs {
		dir := filepath.Dir(path)
		m, err := models.Load(dir, models.Options{Tokens: 64, Trainable: true})
		if err != nil {
			continue // refused on purpose
		}
		ran++
		x := models.Batch{IDs: [][]int{{5, 7, 3, 11, 13, 2, 9}, {4, 6, 8, 10, 12, 14, 15}}}
		logits := func(tape *tensor.Tape, told bool) (states []*tensor.Tensor, y []float32) {
			var r models.Run
			if told {
				r.States = func(_ int, x *tensor.Tensor) { states = append(states, x) }
			}
			h := m.Hidden(tape, x, r)
			return states, h.Data()
		}
		want, all := logits(nil, true)
		for _, told := range []bool{true, false} {
			tape := tensor.NewTape(tensor.Infer)
			for range 2 {
				tape.Reset()
				got, y := logits(tape, told)
				if !slices.Equal(y, all) {
					t.Errorf("%s: other states on a tape", dir)
				}
				for i, s := range got {
					if !slices.Equal(s.Data(), want[i].Data()) {
						t.Errorf("%s: the state of layer %d has changed", dir, i)
					}
				}
			}
		}
	}
	if ran < 40 {
		t.Errorf("%d models, want those of all families", ran)
	}
}
