package models_test

import (
	"encoding/json"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/statedict"
	"github.com/attn-go/attn/tensor"
)

// bare is a network without positions or norms: embeddings and one attention layer.
type bare struct {
	words *nn.Embedding
	self  *attn.MultiHead
	sizes models.Sizes
}

func newBare(b *models.Builder) models.Network {
	s := b.Config
	z := models.Sizes{Layers: 1, Heads: s.Size("heads"), Width: s.Size("width"), Vocabulary: s.Size("vocabulary")}
	return &bare{
		words: b.Embedding("words", z.Vocabulary, z.Width),
		self: b.MultiHead(
			attn.MultiHeadConfig{Name: "encoder.0.self", Width: z.Width, Heads: z.Heads},
			models.Maps{QKV: "self.qkv", Out: "self.out"},
		),
		sizes: z,
	}
}

func (n *bare) Hidden(t *tensor.Tape, x models.Batch, r models.Run) *tensor.Tensor {
	h := n.words.Forward(t, x.IDs[0], 1, len(x.IDs[0])) // one text at a time
	return n.self.Forward(t, h, h, h, attn.Options{Observers: r.Observers}).Out
}

func (n *bare) Attention() []*attn.MultiHead { return []*attn.MultiHead{n.self} }
func (n *bare) Sizes() models.Sizes          { return n.sizes }
func (n *bare) Head() *models.TaskHead       { return nil }
func (n *bare) FinalNorm() models.Layer      { return nil }

// A custom family is an entry of the table.
func ExampleFamily() {
	dir, err := os.MkdirTemp("", "bare")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	config, err := json.Marshal(map[string]any{"model_type": "bare", "heads": 2, "width": 6, "vocabulary": 5})
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), config, 0o644); err != nil {
		log.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	weights := nn.Vars{
		{Name: "words.weight", Tensor: tensor.Randn(rng, 5, 6)},
		{Name: "self.qkv.weight", Tensor: tensor.Randn(rng, 18, 6)},
		{Name: "self.out.weight", Tensor: tensor.Randn(rng, 6, 6)},
	}
	if err := statedict.Save(filepath.Join(dir, "model.safetensors"), weights, statedict.SaveOptions{}); err != nil {
		log.Fatal(err)
	}

	mine := models.Family{Type: "bare", Name: "bare attention", New: newBare}
	m, err := models.Load(dir, models.Options{Families: append(models.Families(), mine), Trainable: true})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Hidden(nil, models.Batch{IDs: [][]int{{3, 1, 4}}}, models.Run{}).Shape())
	for name := range m.Params() {
		fmt.Println(name)
	}
	// Output:
	// [1 3 6]
	// words.weight
	// self.qkv.weight.0
	// self.qkv.weight.1
	// self.qkv.weight.2
	// self.out.weight
}
