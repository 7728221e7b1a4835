package models_test

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
)

// A gate of 0 has the same effect as output weights of 0 for the head.
func TestGates(t *testing.T) {
	m, err := models.Load("testdata/bert", models.Options{Trainable: true})
	if err != nil {
		t.Fatal(err)
	}
	x := models.Batch{IDs: [][]int{{2, 17, 5, 3}, {2, 3}}}
	gated := m.Hidden(nil, x, models.Run{Gates: func(layer string) *tensor.Tensor {
		if layer == "encoder.1.self" {
			return tensor.New([]float32{1, 0, 1}, 3)
		}
		return nil
	}})
	self := m.Attention()[1]
	e := self.Config().HeadSize
	for row := range slices.Chunk(self.Out.Weight.Data(), self.Config().Width) {
		clear(row[e : 2*e])
	}
	if want := m.Hidden(nil, x, models.Run{}); !slices.Equal(gated.Data(), want.Data()) {
		t.Error("a gate of 0 is not a head that contributes 0")
	}
}

// Layers of ALBERT share their output map, so that the same heads of all can be zeros in a file.
func TestMaskedSharesMaps(t *testing.T) {
	m, err := models.Load("testdata/albert", models.Options{Trainable: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.WriteMasked(io.Discard, map[string][]int{"encoder.0.self": {0}, "encoder.1.self": {0}, "encoder.2.self": {0}}); err != nil {
		t.Error(err)
	}
	err = m.WriteMasked(io.Discard, map[string][]int{"encoder.0.self": {0}, "encoder.1.self": {0, 1, 2}, "encoder.2.self": {0}})
	if err == nil || !strings.Contains(err.Error(), "share their output map, want the same heads of both") {
		t.Errorf("got %v", err)
	}
}

func TestNewCacheWantsADecoder(t *testing.T) {
	m, err := models.Load("testdata/bert", models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := models.NewCache(m, 1, attn.CacheConfig{}); err == nil {
		t.Error("an encoder has a cache")
	}
}

func TestCheck(t *testing.T) {
	m, err := models.Load("testdata/bert", models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		x    models.Batch
		want string
	}{
		{models.Batch{}, "no sequences, want one or more"},
		{models.Batch{IDs: [][]int{{1}, {}}}, "no tokens, want one or more"},
		{models.Batch{IDs: [][]int{{1, 43}}}, "token id 43, want 0 to 42"},
		{models.Batch{IDs: [][]int{{-1}}}, "token id -1, want 0 to 42"},
		{models.Batch{IDs: [][]int{make([]int, 14)}}, "14 tokens, want at most 13"},
		{models.Batch{IDs: [][]int{{1}}, Types: [][]int{{2}}}, "token type 2, want 0 to 1"},
		{models.Batch{IDs: [][]int{{1, 2}}, Types: [][]int{{0}}}, "token types of 1 tokens, want 2"},
		{models.Batch{IDs: [][]int{{1, 2}}, Types: [][]int{}}, "token types of 0 sequences, want 1"},
	} {
		if err := m.Sizes().Check(c.x); err == nil || err.Error() != c.want {
			t.Errorf("%v: error %v, want %s", c.x, err, c.want)
		}
	}
}
