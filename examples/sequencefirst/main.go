// Command sequencefirst runs a layer on a batch with the sequence as its first axis, the default of
// PyTorch's layers. The layer returns no weights; an observer draws the weights of every head
// into the directory given as an argument.
package main

import (
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/observe"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/viz"
)

func main() {
	log.SetFlags(0)
	dir := "."
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	if err := run(dir); err != nil {
		log.Fatal(err)
	}
}

func run(dir string) error {
	const length, batch, width, heads = 8, 2, 16, 4
	var seen *tensor.Tensor // [B H L L]
	rng := rand.New(rand.NewPCG(1, 2))
	// lesson: layer
	layer, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: width, Heads: heads, Layout: attn.SequenceFirst}, rng)
	if err != nil {
		return err
	}
	x := tensor.Randn(rng, length, batch, width) // [L B D]
	mask := mask.Causal()
	out := layer.Forward(nil, x, x, x, attn.Options{
		Mask:  mask,
		Layer: "first",
		Observers: []attn.Observer{observe.Weights(func(name string, weights *tensor.Tensor) {
			fmt.Printf("layer %q attends with weights %v\n", name, weights.Shape())
			seen = weights
		})},
	})
	// lesson end
	fmt.Println("output", out.Out.Shape(), "weights", seen.Shape())

	figure := viz.MaskedWeights(seen, mask)
	figure.Title = "A causal layer, sequence first: two sequences, four heads"
	return viz.WriteFile(filepath.Join(dir, "sequencefirst.svg"), figure)
}
