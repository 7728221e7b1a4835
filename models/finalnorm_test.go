package models

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// The final norm of the state after layer i is the output of a model that ends there. The last state has passed it.
func TestFinalNorm(t *testing.T) {
	dirs, err := filepath.Glob("testdata/decoders/*")
	if err != nil || len(dirs) < 20 {
		t.Fatalf("%d decoders (%v)", len(dirs), err)
	}
	normed := map[string]bool{}
	for _, dir := range append(dirs, "testdata/bert", "testdata/modernbert", "testdata/roberta") {
		m, err := Load(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		whole := m.Network.(*stack)
		normed[m.Family.Type] = m.FinalNorm() != nil
		if normed[m.Family.Type] != (m.Sizes().Causal || m.Family.Type == "modernbert") {
			t.Errorf("%s: the final norm is %v", dir, m.FinalNorm())
		}
		x := Batch{IDs: [][]int{{3, 5, 4, 7, 3}}}
		var states []*tensor.Tensor
		hidden := m.Hidden(nil, x, Run{States: func(_ int, x *tensor.Tensor) { states = append(states, x.Clone()) }})
		last := len(states) - 1
		if last != m.Sizes().Layers || !slices.Equal(states[last].Data(), hidden.Data()) {
			t.Errorf("%s: the last of %d states is not the output", dir, last+1)
		}
		for i := 1; i < last; i++ {
			short := *whole
			short.blocks = whole.blocks[:i]
			tensortest.Near(t, dir, optional(nil, m.FinalNorm(), states[i]), short.Hidden(nil, x, Run{}))
		}
	}
	for dir, want := range map[string]bool{"t5": true, "marian": false} {
		m, err := Load("testdata/seq2seq/"+dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if e := m.Network.(*encoderDecoder); m.FinalNorm() != e.target.norm || (m.FinalNorm() != nil) != want {
			t.Errorf("%s: the final norm is %v", dir, m.FinalNorm())
		}
	}
}
