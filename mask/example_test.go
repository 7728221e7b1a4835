package mask_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
)

// The queries are the last two of five positions: the last query attends to every key.
func ExampleCausal() {
	fmt.Print(mask.Causal().Draw(attn.Sizes{Lq: 2, Lk: 5}))
	// Output:
	// 1 1 1 1 ·
	// 1 1 1 1 1
}

// Queries that are not at the end of the keys: here they are at the first positions.
func ExampleCausalAt() {
	fmt.Print(mask.CausalAt(0).Draw(attn.Sizes{Lq: 2, Lk: 5}))
	// Output:
	// 1 · · · ·
	// 1 1 · · ·
}

// A causal sliding window of three positions.
func ExampleWindow() {
	fmt.Print(mask.Window(2, 0).Draw(attn.Sizes{Lq: 5, Lk: 5}))
	// Output:
	// 1 · · · ·
	// 1 1 · · ·
	// 1 1 1 · ·
	// · 1 1 1 ·
	// · · 1 1 1
}

// Two sequences whose queries are at different positions.
func ExampleWindowAt() {
	fmt.Print(mask.WindowAt(1, 1, 0, 3).Draw(attn.Sizes{B: 2, Lq: 2, Lk: 6}))
	// Output:
	// 1 1 · · · ·
	// 1 1 1 · · ·
	//
	// · · 1 1 1 ·
	// · · · 1 1 1
}

func ExampleWindowWithSinks() {
	fmt.Print(mask.WindowWithSinks(1, 0, 2).Draw(attn.Sizes{Lq: 6, Lk: 6}))
	// Output:
	// 1 · · · · ·
	// 1 1 · · · ·
	// 1 1 1 · · ·
	// 1 1 1 1 · ·
	// 1 1 · 1 1 ·
	// 1 1 · · 1 1
}

// A prompt of three tokens is read bidirectionally, the tokens after it causally.
func ExamplePrefix() {
	fmt.Print(mask.Prefix(3).Draw(attn.Sizes{Lq: 5, Lk: 5}))
	// Output:
	// 1 1 1 · ·
	// 1 1 1 · ·
	// 1 1 1 · ·
	// 1 1 1 1 ·
	// 1 1 1 1 1
}

func ExampleLengths() {
	fmt.Print(mask.Lengths(2, 4).Draw(attn.Sizes{B: 2, Lq: 1, Lk: 4}))
	// Output:
	// 1 1 · ·
	//
	// 1 1 1 1
}

func ExampleLengthsOfQueries() {
	fmt.Print(mask.LengthsOfQueries([][]int{{1, 3, 2}}).Draw(attn.Sizes{Lq: 3, Lk: 4}))
	// Output:
	// 1 · · ·
	// 1 1 1 ·
	// 1 1 · ·
}

// Padded queries attend to nothing and get zeros.
func ExampleQueryLengths() {
	fmt.Print(attn.And(mask.QueryLengths(2), mask.Lengths(3)).Draw(attn.Sizes{Lq: 3, Lk: 4}))
	// Output:
	// 1 1 1 ·
	// 1 1 1 ·
	// · · · ·
}

// Documents of two and three tokens are packed into a sequence of six positions; each is causal.
func ExampleDocuments() {
	packed := attn.And(mask.Documents([]int{2, 5}), mask.Causal())
	fmt.Print(packed.Draw(attn.Sizes{Lq: 6, Lk: 6}))
	// Output:
	// 1 · · · · ·
	// 1 1 · · · ·
	// · · 1 · · ·
	// · · 1 1 · ·
	// · · 1 1 1 ·
	// · · · · · ·
}

func ExampleBlocks() {
	fmt.Print(mask.Blocks(2, 1, 0).Draw(attn.Sizes{Lq: 6, Lk: 6}))
	// Output:
	// 1 1 · · · ·
	// 1 1 · · · ·
	// 1 1 1 1 · ·
	// 1 1 1 1 · ·
	// · · 1 1 1 1
	// · · 1 1 1 1
}

func ExampleStrided() {
	fmt.Print(mask.Strided(3).Draw(attn.Sizes{Lq: 3, Lk: 8}))
	// Output:
	// · · 1 1 1 1 · ·
	// 1 · · 1 1 1 1 ·
	// · 1 · · 1 1 1 1
}

// A mask of one row applies to all sequences, heads and queries.
func ExampleAllow() {
	fmt.Print(mask.Allow([]bool{true, false, true}, 3).Draw(attn.Sizes{Lq: 2, Lk: 3}))
	// Output:
	// 1 · 1
	// 1 · 1
}

// Code in sequence-first layout has masks [Lq Lk B].
func ExampleAllowSequenceFirst() {
	seen := []bool{true, true, true, false, false, true} // keys 0, 1 and 2, each for two sequences
	fmt.Print(mask.AllowSequenceFirst(seen, 1, 3, 2).Draw(attn.Sizes{B: 2, Lq: 1, Lk: 3}))
	// Output:
	// 1 1 ·
	//
	// 1 · 1
}

func ExampleAllowFunc() {
	diagonal := mask.AllowFunc(func(_, _, i, j int) bool { return i != j })
	fmt.Print(diagonal.Draw(attn.Sizes{Lq: 3, Lk: 3}))
	// Output:
	// · 1 1
	// 1 · 1
	// 1 1 ·
}

func ExampleAllowTensor() {
	scores := tensor.Zeros(2, 2, 4)                                  // [B Lq Lk]
	keys := tensor.New([]float32{1, 1, 0, 0, 1, 1, 1, 0}, 2, 1, 4)   // [B 1 Lk], padding is 0
	past := tensor.New([]float32{1, 0, 0, 0, 1, 1, 0, 0}, 2, 4)      // [Lq Lk]
	both := attn.And(mask.AllowTensor(keys), mask.AllowTensor(past)) // what both masks allow
	fmt.Println(attn.MaskedSoftmax(nil, scores, mask.AllowTensor(keys)))
	fmt.Println(attn.MaskedSoftmax(nil, scores, both))
	// Output:
	// [[[0.5 0.5 0 0] [0.5 0.5 0 0]] [[0.3333 0.3333 0.3333 0] [0.3333 0.3333 0.3333 0]]]
	// [[[1 0 0 0] [0.5 0.5 0 0]] [[1 0 0 0] [0.5 0.5 0 0]]]
}

// The indexer of DeepSeek-V3.2 has separate small heads. Its score of a key is the sum over the heads of their weight
// times the positive part of a dot product. Each query then attends to the best keys up to its own.
func ExampleTopK() {
	rng := rand.New(rand.NewPCG(1, 1))
	const b, heads, l, size = 1, 2, 6, 4
	q, k := tensor.Randn(rng, b, heads, l, size), tensor.Randn(rng, b, 1, l, size)
	weights := tensor.Randn(rng, b, heads, l, 1)
	products := tensor.ReLU(nil, attn.Scores(nil, q, k, attn.Options{Score: score.Dot()})) // [B H L L]
	scores := tensor.SumAxis(nil, tensor.Mul(nil, products, tensor.BroadcastTo(nil, weights, b, heads, l, l)), 1)

	best := mask.TopK(3, tensor.Reshape(nil, scores, b, 1, l, l), mask.Causal())
	x := tensor.Randn(rng, b, 8, l, 16) // of the layer itself
	fmt.Println(attn.Attend(nil, x, x, x, attn.Options{Mask: best}).Out.Shape())
	fmt.Print(best.Draw(attn.Sizes{B: 1, H: 1, Lq: l, Lk: l}))
	// Output:
	// [1 8 6 16]
	// 1 · · · · ·
	// 1 1 · · · ·
	// 1 1 1 · · ·
	// 1 1 · 1 · ·
	// · · 1 1 1 ·
	// · · · 1 1 1
}
