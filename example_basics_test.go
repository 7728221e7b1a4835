package attn_test

import (
	"fmt"
	"log"
	"math"
	"math/rand/v2"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/position"
	"github.com/attn-go/attn/score"
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

// Multi-head attention one operation at a time, and the shapes: five heads, 2 × 4 queries, 2 × 6 keys, of which 3 and 2
// are valid. All inputs are 1, so all valid keys of a sequence get the same weight.
func ExampleMultiHead_shapes() {
	rng := rand.New(rand.NewPCG(1, 2))
	layer, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: 100, Heads: 5}, rng)
	if err != nil {
		log.Fatal(err)
	}
	x, y := tensor.Full(1, 2, 4, 100), tensor.Full(1, 2, 6, 100) // [B Lq D], [B Lk D]
	split := func(a *tensor.Tensor) *tensor.Tensor {             // [B L D] to [B H L E]
		a = tensor.Reshape(nil, a, 2, a.Dim(1), 5, 20)
		return tensor.Transpose(nil, a, 0, 2, 1, 3)
	}
	q := split(layer.Q.Forward(nil, x))
	k, v := split(layer.K.Forward(nil, y)), split(layer.V.Forward(nil, y))
	o := attn.Options{Mask: mask.Lengths(3, 2), Weights: true}
	heads := attn.Attend(nil, q, k, v, o)
	joined := tensor.Reshape(nil, tensor.Transpose(nil, heads.Out, 0, 2, 1, 3), 2, 4, 100)
	out := layer.Out.Forward(nil, joined)

	fmt.Println("queries", q.Shape(), "keys", k.Shape())
	fmt.Println("weights", heads.Weights.Shape(), "heads", heads.Out.Shape(), "out", out.Shape())
	for b := range 2 {
		fmt.Printf("%.3f\n", tensor.Index(nil, heads.Weights, b, 0, 0).Data())
	}
	whole := layer.Forward(nil, x, y, y, o).Out // the same in one call
	fmt.Printf("%.3f, in one call %.3f\n", out.At(1, 3, 99), whole.At(1, 3, 99))
	// Output:
	// queries [2 5 4 20] keys [2 5 6 20]
	// weights [2 5 4 6] heads [2 5 4 20] out [2 4 100]
	// [0.333 0.333 0.333 0.000 0.000 0.000]
	// [0.500 0.500 0.000 0.000 0.000 0.000]
	// -1.193, in one call -1.193
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

// QK-norm: queries and keys of each head are normalised after the projection, with trained gains,
// and then moved to their positions, as in Qwen 3.
func ExampleMultiHeadConfig_queryNorm() {
	rng := rand.New(rand.NewPCG(1, 2))
	rope, _ := position.NewRoPE(position.RoPEConfig{Base: 1e6})
	layer, err := attn.NewMultiHead(attn.MultiHeadConfig{
		Width: 32, Heads: 4, KVHeads: 2, Position: rope,
		QueryNorm: nn.NewRMSNorm(8), KeyNorm: nn.NewRMSNorm(8),
	}, rng)
	if err != nil {
		fmt.Println(err)
		return
	}
	for name, p := range layer.Params() {
		fmt.Print(name, p.Shape(), " ")
	}
	// Output:
	// q.weight[32 32] k.weight[16 32] v.weight[16 32] out.weight[32 32] q_norm.weight[8] k_norm.weight[8]
}

// Trained sinks, one per head, as in gpt-oss.
func ExampleMultiHeadConfig_sinks() {
	layer, _ := attn.NewMultiHead(attn.MultiHeadConfig{Width: 12, Heads: 3, Sinks: true}, rand.New(rand.NewPCG(1, 2)))
	x := tensor.Zeros(1, 4, 12)
	y := layer.Forward(nil, x, x, x, attn.Options{Weights: true})
	fmt.Println(layer.Sinks, y.Weights.At(0, 0, 0, 0))
	// Output:
	// [0 0 0] 0.2
}

// A key and value that every query attends to, even if the mask hides all others, like
// add_bias_kv and add_zero_attn of PyTorch.
func ExampleMultiHeadConfig_biasKV() {
	layer, _ := attn.NewMultiHead(attn.MultiHeadConfig{Width: 12, Heads: 3, BiasKV: true, ZeroKV: true}, rand.New(rand.NewPCG(1, 2)))
	x := tensor.Zeros(1, 4, 12)
	y := layer.Forward(nil, x, x, x, attn.Options{Mask: mask.Lengths(2), Weights: true})
	fmt.Println(layer.BiasK.Shape(), y.Weights.Shape(), y.Weights.At(0, 0, 0, 0)) // one of four equal parts
	// Output:
	// [1 1 12] [1 3 4 4] 0.25
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
		Batch: 1, Heads: 2, KeySize: 8, Window: 1023, Sinks: 4, Format: tensor.Int8,
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

// A decoder reads prompts of different lengths in one batch, generates token by token, and then
// continues one prompt in several ways, as a beam search does.
func ExampleCache() {
	rng := rand.New(rand.NewPCG(1, 2))
	layer, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: 16, Heads: 4, KVHeads: 2}, rng)
	if err != nil {
		panic(err)
	}
	cache, err := layer.NewCache(2, attn.CacheConfig{Format: tensor.BFloat16})
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

// A sink takes weight away from the keys, so a head can contribute little or nothing.
func ExampleOptions_sinks() {
	q, k := tensor.Zeros(1, 2, 1, 4), tensor.Zeros(1, 2, 3, 4)
	sinks := tensor.New([]float32{0, float32(math.Log(7))}, 2) // of two heads
	y := attn.Attend(nil, q, k, k, attn.Options{Sinks: sinks, Weights: true})
	fmt.Println(y.Weights)
	// Output:
	// [[[[0.25 0.25 0.25]] [[0.1 0.1 0.1]]]]
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

func ExampleScores() {
	q := tensor.New([]float32{1, 0, 0, 1}, 1, 2, 2)
	k := tensor.New([]float32{2, 4, 6, 8}, 1, 2, 2)
	fmt.Println(attn.Scores(nil, q, k, attn.Options{Score: score.Dot()}).Data())
	fmt.Println(attn.Scores(nil, q, k, attn.Options{Score: score.Dot(), Bias: tensor.New([]float32{10, 20}, 2), Mask: mask.Causal()}).Data())
	// Output:
	// [2 6 4 8]
	// [12 -Inf 14 28]
}

// Gemma 2 bounds its scores to ±50.
func ExampleSoftCap() {
	q, k := tensor.New([]float32{1000}, 1, 1, 1), tensor.New([]float32{1, -1, 0.01}, 1, 3, 1)
	y := attn.Attend(nil, q, k, k, attn.Options{Score: score.Dot(), SoftCap: 50, LogSumExp: true})
	fmt.Println(y.LogSumExp) // the largest score
	// Output:
	// [[50]]
}

// Two queries and three keys; the first query attends to two keys, the second to none. Tutorials
// that mask with −10¹⁰ give the second query uniform weights.
func ExampleMask() {
	masked := tensor.New([]float32{
		1, 1, 0,
		0, 0, 0,
	}, 2, 3)
	q, k, v := tensor.Zeros(1, 2, 5), tensor.Full(1, 1, 3, 5), tensor.New([]float32{3, 6, 9}, 1, 3, 1)
	y := attn.Attend(nil, q, k, v, attn.Options{Mask: mask.AllowTensor(masked), Weights: true})
	fmt.Println("mask:", y.Weights, "out:", y.Out)

	bias := tensor.Scale(nil, tensor.Shift(nil, masked, -1), 1e10) // 0, and −10¹⁰ where the mask is 0
	y = attn.Attend(nil, q, k, v, attn.Options{Bias: bias, Weights: true})
	fmt.Println("bias:", y.Weights, "out:", y.Out)
	// Output:
	// mask: [[[0.5 0.5 0] [0 0 0]]] out: [[[4.5] [0]]]
	// bias: [[[0.5 0.5 0] [0.3333 0.3333 0.3333]]] out: [[[4.5] [6]]]
}

func ExampleAnd() {
	m := attn.And(mask.Causal(), mask.Lengths(3), mask.Window(2, 0))
	fmt.Print(m.Draw(attn.Sizes{B: 1, Lq: 4, Lk: 4}))
	// Output:
	// 1 · · ·
	// 1 1 · ·
	// 1 1 1 ·
	// · 1 1 ·
}

func ExampleMask_Draw() {
	// Five queries and two keys: the first three queries are before all keys.
	fmt.Print(mask.Causal().Draw(attn.Sizes{Lq: 5, Lk: 2}))
	// Output:
	// · ·
	// · ·
	// · ·
	// 1 ·
	// 1 1
}

// Two sequences with two queries and four keys each; the first two and three keys are valid.
func ExampleMaskedSoftmax() {
	scores := tensor.Zeros(2, 2, 4)
	fmt.Println(attn.MaskedSoftmax(nil, scores, mask.Lengths(2, 3)))
	fmt.Println(attn.MaskedSoftmax(nil, scores, mask.LengthsOfQueries([][]int{{1, 3}, {2, 4}})))
	// Output:
	// [[[0.5 0.5 0 0] [0.5 0.5 0 0]] [[0.3333 0.3333 0.3333 0] [0.3333 0.3333 0.3333 0]]]
	// [[[1 0 0 0] [0.3333 0.3333 0.3333 0]] [[0.5 0.5 0 0] [0.25 0.25 0.25 0.25]]]
}

// The dot product of rotated vectors depends only on the distance of their positions.
func ExampleApplyPosition() {
	rope, _ := position.NewRoPE(position.RoPEConfig{})
	x := tensor.New([]float32{1, 2, 3, 4}, 1, 1, 4) // [B L E]
	at := func(p int) *tensor.Tensor {
		return attn.ApplyPosition(nil, rope, x, attn.Query, attn.Positions{Offsets: []int{p}})
	}
	fmt.Printf("%.3f %.3f %.3f\n", at(3).Data(), tensor.MatMulT(nil, at(3), at(5)).Item(), tensor.MatMulT(nil, at(1003), at(1005)).Item())
	// Output:
	// [-1.413 1.879 -2.829 4.058] 15.835 15.835
}

// Sequences with padding on the left: the positions after the padding start at 0.
func ExamplePositions() {
	rng := rand.New(rand.NewPCG(1, 2))
	rope, _ := position.NewRoPE(position.RoPEConfig{})
	layer, _ := attn.NewMultiHead(attn.MultiHeadConfig{Width: 8, Heads: 2, Position: rope}, rng)
	x := tensor.Randn(rng, 2, 4, 8)
	at := attn.Positions{IDs: [][]int{{0, 1, 2, 3}, {0, 0, 0, 1}}}
	padding := []int{0, 2}
	y := layer.Forward(nil, x, x, x, attn.Options{
		QueryPositions: at, KeyPositions: at,
		Mask: mask.AllowFunc(func(b, _, _, j int) bool { return j >= padding[b] }),
	})
	fmt.Println(y.Out.Shape())
	// Output:
	// [2 4 8]
}

// threeKeys returns a query and three keys, with weights of 0.25, 0.5 and 0.25.
func threeKeys() (q, k, v *tensor.Tensor) {
	q = tensor.New([]float32{1}, 1, 1, 1, 1)
	k = tensor.New([]float32{0, float32(math.Ln2), 0}, 1, 1, 3, 1)
	return q, k, tensor.New([]float32{1, 2, 5}, 1, 1, 3, 1)
}

// Attention to keys that are split between two machines: each attends to its keys, and the parts
// are merged.
func ExampleMerge() {
	q, k, v := threeKeys()
	o := attn.Options{Score: score.Dot(), LogSumExp: true, Weights: true}
	part := func(lo, hi int) attn.Output {
		return attn.Attend(nil, q, tensor.Slice(nil, k, 2, lo, hi), tensor.Slice(nil, v, 2, lo, hi), o)
	}
	y := attn.Merge(nil, part(0, 1), part(1, 3))
	fmt.Println(y.Out, y.Weights, attn.Attend(nil, q, k, v, o).Out)
	// Output:
	// [[[[2.5]]]] [[[[0.25 0.5 0.25]]]] [[[[2.5]]]]
}

// Attention to all keys is the average of attention to both halves, weighted by their sums of
// exponentials. Keys may therefore be distributed over machines, or be processed block by block.
func ExampleOutput_logSumExp() {
	q, k, v := threeKeys()
	part := func(lo, hi int) attn.Output {
		return attn.Attend(nil, q, tensor.Slice(nil, k, 2, lo, hi), tensor.Slice(nil, v, 2, lo, hi), attn.Options{Score: score.Dot(), LogSumExp: true})
	}
	a, b := part(0, 1), part(1, 3)
	share := 1 / (1 + math.Exp(float64(b.LogSumExp.Item()-a.LogSumExp.Item()))) // of the first part

	whole := attn.Attend(nil, q, k, v, attn.Options{Score: score.Dot(), LogSumExp: true})
	fmt.Printf("%.4f = %.4f\n", share*float64(a.Out.Item())+(1-share)*float64(b.Out.Item()), whole.Out.Item())
	fmt.Printf("log-sum-exp %.4f\n", whole.LogSumExp.Item())
	// Output:
	// 2.5000 = 2.5000
	// log-sum-exp 1.3863
}

// Edits silence a head, or put in its place what it computed for other inputs: what the output then loses is what the head
// caused.
func ExampleEdits() {
	rng := rand.New(rand.NewPCG(1, 2))
	layer, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: 8, Heads: 2}, rng)
	if err != nil {
		log.Fatal(err)
	}
	x, y := tensor.Randn(rng, 1, 3, 8), tensor.Randn(rng, 1, 3, 8)
	var other *tensor.Tensor // [B H L V]
	layer.Forward(nil, y, y, y, attn.Options{Edits: attn.Edits{Outputs: func(_ *tensor.Tape, z *tensor.Tensor) *tensor.Tensor {
		other = z.Clone()
		return z
	}}})
	patch := attn.Edits{Outputs: func(t *tensor.Tape, z *tensor.Tensor) *tensor.Tensor {
		return tensor.Concat(t, 1, tensor.Slice(t, z, 1, 0, 1), tensor.Slice(t, other, 1, 1, 2)) // head 1 of the other inputs
	}}
	before := layer.Forward(nil, x, x, x, attn.Options{}).Out
	after := layer.Forward(nil, x, x, x, attn.Options{Edits: patch}).Out
	fmt.Printf("%.2f\n", tensor.Sub(nil, after, before).At(0, 2, 0))
	// Output:
	// 0.38
}
