package models_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
)

// The logits of some tokens are those of all, to the bit, in each family and format; only a head whose products are rounded
// may have none.
func TestSomeLogits(t *testing.T) {
	dirs, err := filepath.Glob("testdata/decoders/*")
	if err != nil || len(dirs) < 30 {
		t.Fatalf("%d directories: %v", len(dirs), err)
	}
	seen := 0
	for _, dir := range append(dirs, "testdata/bert", "testdata/albert", "testdata/modernbert") {
		for _, o := range []models.Options{{Trainable: true}, {}, {Format: tensor.BFloat16Weights}, {Format: tensor.Int8}, {Format: tensor.BFloat16}} {
			m, err := models.Load(dir, o)
			if err != nil || m.Head() == nil || !slices.Contains([]models.Task{models.NextWord, models.MaskedWords}, m.Head().Task) {
				continue
			}
			some := m.Head().Some([]int{3, 0, 3})
			if some == nil {
				if o.Format != tensor.Int8 && o.Format != tensor.BFloat16 {
					t.Errorf("%s has no logits of some tokens in %s", dir, o.Format)
				}
				continue
			}
			h := m.Hidden(nil, models.Batch{IDs: [][]int{{1, 2, 3}}}, models.Run{})
			got, all := some.Forward(nil, h), m.Head().Logits(nil, h)
			if got.Dim(2) != 3 {
				t.Fatalf("%s: shape %v", dir, got.Shape())
			}
			for i := range 3 {
				for j, id := range []int{3, 0, 3} {
					if got.At(0, i, j) != all.At(0, i, id) {
						t.Errorf("%s %s: logit %d of token %d is %v, want %v", dir, o.Format, id, i, got.At(0, i, j), all.At(0, i, id))
					}
				}
			}
			seen++
		}
	}
	if seen < 60 {
		t.Errorf("%d heads were compared", seen)
	}
}
