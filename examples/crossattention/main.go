// Command crossattention runs README's program: cross-attention with grouped-query heads, forward and backward.
package main

import (
	"fmt"
	"log"
	"math/rand/v2"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/tensor"
)

func main() {
	rng := rand.New(rand.NewPCG(1, 2))
	// Grouped-query: 8 query heads share 2 heads of keys and values.
	c := attn.MultiHeadConfig{Width: 128, Heads: 8, KVHeads: 2, Dropout: 0.1}
	layer, err := attn.NewMultiHead(c, rng)
	if err != nil {
		log.Fatal(err)
	}
	x := tensor.Randn(rng, 2, 5, 128)    // queries: two sequences of 5 vectors
	text := tensor.Randn(rng, 2, 6, 128) // keys and values: 3 and 6 vectors, padded to 6

	tape := tensor.NewTape(tensor.Train)
	tape.Seed(1, 0) // dropout depends on the run's seed and the step
	y := layer.Forward(tape, x, text, text, attn.Options{Mask: mask.Lengths(3, 6), Weights: true})
	tape.Backward(tensor.Mean(tape, tensor.Square(tape, y.Out)), nil)
	fmt.Println(y.Out.Shape(), y.Weights.Shape(), layer.K.Weight.Grad().Shape())
	// [2 5 128] [2 8 5 6] [32 128]
}
