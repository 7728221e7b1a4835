package models_test

import (
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
)

// A batch that passes through the layers in parts has the same bits as the whole batch, on any number of
// processors. A callback for the states prevents parts.
func TestParts(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: every model on several numbers of threads")
	}
	dirs, err := filepath.Glob("testdata/*/config.json")
	more, _ := filepath.Glob("testdata/*/*/config.json")
	if err != nil || len(dirs) < 10 {
		t.Fatalf("%d models, %v", len(dirs), err)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	ran := 0
	for _, path := range append(dirs, more...) {
		dir := filepath.Dir(path)
		m, err := models.Load(dir, models.Options{Tokens: 64})
		if err != nil {
			continue // refused on purpose
		}
		ran++
		most := 11
		if n := m.Sizes().Positions; n > 0 {
			most = min(most, n)
		}
		var x models.Batch
		for i := range 67 {
			ids := make([]int, 1+i*7%most)
			for j := range ids {
				ids[j] = (i*13 + j*5) % m.Sizes().Vocabulary
			}
			x.IDs = append(x.IDs, ids)
			if m.Sizes().Types > 1 {
				types := make([]int, len(ids))
				types[len(ids)-1] = i % 2
				x.Types = append(x.Types, types)
			}
			if m.Sizes().Decoder != nil {
				x.Targets = append(x.Targets, ids[:1+i%len(ids)])
			}
		}
		whole := m.Hidden(nil, x, models.Run{States: func(int, *tensor.Tensor) {}, SourceStates: func(int, *tensor.Tensor) {}})
		read := x.IDs
		if x.Targets != nil {
			read = x.Targets
		}
		length, width := whole.Dim(1), whole.Dim(2)
		tape := tensor.NewTape(tensor.Infer)
		for _, procs := range []int{1, 3} {
			runtime.GOMAXPROCS(procs)
			tape.Reset()
			got := m.Hidden(tape, x, models.Run{})
			if !slices.Equal(got.Shape(), whole.Shape()) {
				t.Fatalf("%s: shape %v, want %v", dir, got.Shape(), whole.Shape())
			}
			for i, ids := range read {
				at, n := i*length*width, len(ids)*width
				if !slices.Equal(got.Data()[at:at+n], whole.Data()[at:at+n]) {
					t.Fatalf("%s: other states of sequence %d on %d processors", dir, i, procs)
				}
			}
		}
	}
	if ran < 40 {
		t.Errorf("%d models, want those of all families", ran)
	}
}
