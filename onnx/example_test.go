package onnx_test

import (
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/onnx"
)

func ExampleFromMultiHead() {
	rng := rand.New(rand.NewPCG(1, 2))
	layer, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: 64, Heads: 4}, rng)
	if err != nil {
		log.Fatal(err)
	}
	m, err := onnx.FromMultiHead(layer, onnx.Options{Lengths: true})
	if err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "onnx")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	err = m.Save(filepath.Join(dir, "layer.onnx")) // inputs query, key, value and lengths; output out
	fmt.Println(m.Opset(), err)
	// Output: 23 <nil>
}

// A model of several layers that classifies tokens into five classes.
func ExampleGraph() {
	rng := rand.New(rand.NewPCG(1, 2))
	table := nn.NewEmbedding(1000, 64, 1, rng)
	encoder, err := attn.NewEncoderLayer(attn.EncoderConfig{Width: 64, Heads: 4}, rng)
	if err != nil {
		log.Fatal(err)
	}
	head := nn.NewLinear(64, 5, true, rng)

	m, err := onnx.Build("tagger", 17, func(g *onnx.Graph) {
		batch, length := onnx.Named("batch"), onnx.Named("length")
		ids := g.Input("ids", onnx.Int64, batch, length)
		lengths := g.Input("lengths", onnx.Int64, batch)

		n := g.Length(ids, 1)
		x := g.In("table").Embedding(table, ids)
		x = g.Add(x, g.Sinusoids(g.Count(g.Int(0), n), 64))
		x = g.In("encoder").EncoderLayer(encoder, x, onnx.Attention{Mask: g.ValidLens(lengths, n)})
		g.Output("classes", g.In("head").Linear(head, x), onnx.Float32, batch, length, onnx.Sized(5))
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Opset())
	// Output: 17
}
