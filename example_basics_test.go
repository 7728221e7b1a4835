package attn_test

import (
	"fmt"
	"log"
	"math/rand/v2"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/tensor"
)

// Two queries over three keys, under a causal mask: the first query attends to the first
// two keys, the second to all of them.
func ExampleAttend() {
	q := tensor.New([]float32{1, 0, 0, 1}, 1, 2, 2)       // [B Lq E]
	k := tensor.New([]float32{1, 0, 0, 1, 1, 1}, 1, 3, 2) // [B Lk E]
	v := tensor.New([]float32{10, 20, 30}, 1, 3, 1)       // [B Lk V]
	y := attn.Attend(nil, q, k, v, attn.Options{Mask: mask.Causal(), Weights: true})
	fmt.Printf("%.2f\n%.2f\n", y.Weights.Data(), y.Out.Data())
	// Output:
	// [0.67 0.33 0.00 0.20 0.40 0.40]
	// [13.30 22.03]
}

// Self-attention with 8 heads in training: after Backward, all parameters have gradients.
func ExampleMultiHead() {
	rng := rand.New(rand.NewPCG(1, 2))
	layer, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: 32, Heads: 8, Bias: attn.AllProjections}, rng)
	if err != nil {
		log.Fatal(err)
	}
	x := tensor.Randn(rng, 2, 5, 32) // [B L D]
	tape := tensor.NewTape(tensor.Train)
	y := layer.Forward(tape, x, x, x, attn.Options{Mask: mask.Lengths(5, 3), Weights: true})
	tape.Backward(tensor.Mean(tape, tensor.Square(tape, y.Out)), nil)
	fmt.Println(y.Out.Shape(), y.Weights.Shape())
	for name, p := range layer.Params() {
		fmt.Println(name, p.Grad().Shape())
	}
	// Output:
	// [2 5 32] [2 8 5 5]
	// q.weight [32 32]
	// q.bias [32]
	// k.weight [32 32]
	// k.bias [32]
	// v.weight [32 32]
	// v.bias [32]
	// out.weight [32 32]
	// out.bias [32]
}

// Grouped-query attention (GQA): eight query heads share two key and value heads.
func ExampleMultiHeadConfig_groupedQuery() {
	rng := rand.New(rand.NewPCG(1, 2))
	layer, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: 64, Heads: 8, KVHeads: 2}, rng)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(layer.Q.Weight.Shape(), layer.K.Weight.Shape(), layer.V.Weight.Shape())

	_, err = attn.NewMultiHead(attn.MultiHeadConfig{Width: 64, Heads: 8, KVHeads: 3}, rng)
	fmt.Println(err)
	// Output:
	// [64 64] [16 64] [16 64]
	// attn: NewMultiHead: 8 heads are not divisible by 3 key/value heads
}

// Keys and values of an encoder are projected once and attended to at every step of a
// decoder.
func ExampleMultiHead_Project() {
	rng := rand.New(rand.NewPCG(1, 2))
	cross, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: 16, Heads: 4}, rng)
	if err != nil {
		log.Fatal(err)
	}
	encoded := tensor.Randn(rng, 1, 9, 16)
	kv := cross.Project(nil, encoded, encoded)
	for range 2 {
		y := cross.Query(nil, tensor.Randn(rng, 1, 1, 16), kv, attn.Options{})
		fmt.Println(kv.Len(), y.Out.Shape())
	}
	// Output:
	// 9 [1 1 16]
	// 9 [1 1 16]
}

// A decoder with a KV cache computes the same as a causal mask over the whole sequence.
func ExampleMultiHead_Extend() {
	rng := rand.New(rand.NewPCG(1, 2))
	layer, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: 16, Heads: 4}, rng)
	if err != nil {
		log.Fatal(err)
	}
	cache, err := layer.NewCache(1, attn.CacheConfig{})
	if err != nil {
		log.Fatal(err)
	}
	x := tensor.Randn(rng, 1, 3, 16)
	whole := layer.Forward(nil, x, x, x, attn.Options{Mask: mask.Causal()}).Out
	for i := range 3 {
		token := tensor.New(x.Data()[i*16:][:16], 1, 1, 16)
		y := layer.Extend(nil, token, cache, attn.Options{Mask: mask.Causal()}).Out
		fmt.Println(cache.Len(0), y.Data()[0] == whole.Data()[i*16])
	}
	// Output:
	// 1 true
	// 2 true
	// 3 true
}

// A rolling cache keeps a window of the last keys and the first ones (attention sinks),
// here without a layer.
func ExampleCache_Attend() {
	cache, err := attn.NewCache(attn.CacheConfig{
		Batch: 1, Heads: 2, KeySize: 8, Window: 1023, Sinks: 4, Storage: tensor.Int8,
	})
	if err != nil {
		log.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var bytes [2]int
	for half := range bytes {
		for range 20 {
			part := tensor.Randn(rng, 1, 2, 128, 8) // [B G L E]
			cache.Append(part, part, nil)
		}
		bytes[half] = cache.Bytes()
	}
	q := tensor.Randn(rng, 1, 4, 1, 8) // [B H Lq E]: four query heads on two key heads
	y := cache.Attend(nil, q, attn.Options{})
	fmt.Println(cache.Lens(), y.Out.Shape(), "grown:", bytes[1] > bytes[0])
	// Output:
	// [5120] [1 4 1 8] grown: false
}

// A gate of 0 removes a head. The gradients of the gates show how much the loss depends on each
// head.
func ExampleOptions_gates() {
	rng := rand.New(rand.NewPCG(1, 2))
	layer, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: 16, Heads: 4}, rng)
	if err != nil {
		log.Fatal(err)
	}
	x := tensor.Randn(rng, 1, 5, 16)
	gates := tensor.New([]float32{1, 0, 1, 1}, 4)
	gated := layer.Forward(nil, x, x, x, attn.Options{Gates: gates}).Out
	small, err := layer.Keep([]int{0, 2, 3})
	if err != nil {
		log.Fatal(err)
	}
	kept := small.Forward(nil, x, x, x, attn.Options{}).Out
	fmt.Printf("%.4f %.4f\n", gated.Data()[0], kept.Data()[0])

	tape := tensor.NewTape(tensor.Train)
	gates = gates.Param()
	y := layer.Forward(tape, x, x, x, attn.Options{Gates: gates})
	tape.Backward(tensor.Sum(tape, tensor.Square(tape, y.Out)), nil)
	fmt.Println(gates.Grad().Shape())
	// Output:
	// -0.0664 -0.0664
	// [4]
}

// Keep removes heads from a layer: its maps become smaller.
func ExampleMultiHead_Keep() {
	layer, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: 16, Heads: 4}, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		log.Fatal(err)
	}
	small, err := layer.Keep([]int{0, 3})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(layer.Q.Weight.Shape(), small.Q.Weight.Shape(), small.Out.Weight.Shape())
	// Output: [16 16] [8 16] [16 8]
}
