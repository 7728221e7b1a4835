// Command lengths runs multi-head attention on a batch of two sequences. The second one is padded:
// no query attends to padding, whatever its values are. It draws every head of both into the
// directory given as an argument.
package main

import (
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
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
	const batch, length, width, heads = 2, 7, 12, 3
	rng := rand.New(rand.NewPCG(1, 2))
	layer, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: width, Heads: heads}, rng)
	if err != nil {
		return err
	}
	x := tensor.Randn(rng, batch, length, width) // [B L D]
	// lesson: lengths
	lens := []int{length, 4}
	for i := lens[1]; i < length; i++ { // padding may contain anything
		x.Data()[(length+i)*width] = float32(math.NaN())
	}
	mask := attn.And(mask.Lengths(lens...), mask.QueryLengths(lens...))
	out := layer.Forward(nil, x, x, x, attn.Options{Mask: mask, Weights: true})
	// lesson end

	onPadding := float32(0)
	for h := range heads {
		for j := lens[1]; j < length; j++ {
			onPadding += out.Weights.At(1, h, 0, j)
		}
	}
	fmt.Printf("weights %v, on padding %g\n", out.Weights.Shape(), onPadding)

	figure := viz.MaskedWeights(out.Weights, mask)
	figure.Title, figure.Scale = "Multi-head attention with valid lengths 7 and 4", viz.Largest
	return viz.WriteFile(filepath.Join(dir, "lengths.svg"), figure)
}
