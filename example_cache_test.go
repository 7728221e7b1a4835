package attn_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/tensor"
)

// A decoder reads prompts of different lengths in one batch, generates token by token, and then
// continues one prompt in several ways, as a beam search does.
func ExampleCache() {
	rng := rand.New(rand.NewPCG(1, 2))
	layer, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: 16, Heads: 4, KVHeads: 2}, rng)
	if err != nil {
		panic(err)
	}
	cache, err := layer.NewCache(2, attn.CacheConfig{Storage: tensor.BFloat16})
	if err != nil {
		panic(err)
	}
	prompts := tensor.Randn(rng, 2, 7, 16) // 7 and 4 tokens, and 3 of padding
	layer.Extend(nil, prompts, cache, attn.Options{Mask: mask.Causal(), QueryLens: []int{7, 4}})
	fmt.Println("prompts:", cache.Lens())

	token := tensor.Randn(rng, 2, 1, 16)
	layer.Extend(nil, token, cache, attn.Options{Mask: mask.Causal()})
	fmt.Println("a step later:", cache.Lens())

	beam := cache.Select([]int{1, 1, 1}) // nothing is copied
	y := layer.Extend(nil, tensor.Randn(rng, 3, 1, 16), beam, attn.Options{Mask: mask.Causal()})
	fmt.Println("three continuations of the second:", beam.Lens(), y.Out.Shape())
	beam.Truncate(4)
	fmt.Println("its prompt:", beam.Lens(), "the others:", cache.Lens())
	// Output:
	// prompts: [7 4]
	// a step later: [8 5]
	// three continuations of the second: [6 6 6] [3 1 16]
	// its prompt: [4 4 4] the others: [8 5]
}
