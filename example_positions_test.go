package attn_test

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// A decoder of Llama's kind: rotary positions, keys and values shared by groups of
// heads, step by step.
func ExampleRoPE() {
	rng := rand.New(rand.NewPCG(1, 2))
	rope, err := attn.NewRoPE(attn.RoPEConfig{Base: 500000, Scaling: attn.ScaleLlama3(8, 1, 4, 8192)})
	if err != nil {
		fmt.Println(err)
		return
	}
	layer, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: 64, Heads: 8, KVHeads: 2, Position: rope}, rng)
	if err != nil {
		fmt.Println(err)
		return
	}
	x := tensor.Randn(rng, 1, 5, 64)
	whole := layer.Forward(nil, x, x, x, attn.Options{Mask: attn.Causal()}).Out

	cache, err := layer.NewCache(1, attn.CacheConfig{}) // of keys that have been turned to their positions
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range 5 {
		y := layer.Extend(nil, tensor.Slice(nil, x, 1, i, i+1), cache, attn.Options{Mask: attn.Causal()})
		fmt.Print(y.Out.At(0, 0, 63) == whole.At(0, i, 63), " ")
	}
	// Output:
	// true true true true true
}

// The dot product of turned vectors depends on the distance of their positions alone.
func ExampleApplyPosition() {
	rope, _ := attn.NewRoPE(attn.RoPEConfig{})
	x := tensor.New([]float32{1, 2, 3, 4}, 1, 1, 4) // [B L E]
	at := func(p int) *tensor.Tensor { return attn.ApplyPosition(nil, rope, x, attn.PositionsFrom(p)) }
	fmt.Printf("%.3f %.3f %.3f\n", at(3).Data(), tensor.MatMulT(nil, at(3), at(5)).Item(), tensor.MatMulT(nil, at(1003), at(1005)).Item())
	// Output:
	// [-1.413 1.879 -2.829 4.058] 15.835 15.835
}

// Sequences that are padded on the left: what stands behind the padding is at the
// positions from 0 on.
func ExamplePositionIDs() {
	rng := rand.New(rand.NewPCG(1, 2))
	rope, _ := attn.NewRoPE(attn.RoPEConfig{})
	layer, _ := attn.NewMultiHead(attn.MultiHeadConfig{Width: 8, Heads: 2, Position: rope}, rng)
	x := tensor.Randn(rng, 2, 4, 8)
	at := attn.PositionIDs([][]int{{0, 1, 2, 3}, {0, 0, 0, 1}})
	padding := []int{0, 2}
	y := layer.Forward(nil, x, x, x, attn.Options{
		QueryPositions: at, KeyPositions: at,
		Mask: attn.AllowFunc(func(b, _, _, j int) bool { return j >= padding[b] }),
	})
	fmt.Println(y.Out.Shape())
	// Output:
	// [2 4 8]
}

// decay is a position of a user's: each element of a vector is multiplied by
// rate^position, as in RetNet, so that scores fade with the distance.
type decay struct{ rate float64 }

func (decay) Check(int) error { return nil }

func (d decay) Apply(dst, x []float32, p int) {
	by := float32(math.Pow(d.rate, float64(p)))
	for i, v := range x {
		dst[i] = by * v
	}
}

func (d decay) Back(dx, dy []float32, p int) { // the transpose of a diagonal map is itself
	by := float32(math.Pow(d.rate, float64(p)))
	for i, v := range dy {
		dx[i] += by * v
	}
}

func ExamplePosition() {
	one := tensor.Full(1, 1, 4, 1)
	q := attn.ApplyPosition(nil, decay{0.5}, one, attn.Positions{})
	k := attn.ApplyPosition(nil, decay{1 / 0.5}, one, attn.Positions{})
	fmt.Println(attn.Scores(nil, q, k, attn.Options{Score: attn.Dot()}))
	// Output:
	// [[[1 2 4 8] [0.5 1 2 4] [0.25 0.5 1 2] [0.125 0.25 0.5 1]]]
}

// A bias for each head instead of positions: the further away, the less.
func ExampleALiBi() {
	fmt.Println(attn.ALiBiSlopes(2))
	x := tensor.Zeros(1, 2, 3, 4)
	y := attn.Attend(nil, x, x, x, attn.Options{Changes: []attn.ScoreChange{attn.ALiBi()}, Mask: attn.Causal(), Weights: true})
	fmt.Println(tensor.Slice(nil, y.Weights, 2, 2, 3)) // of the last query
	// Output:
	// [0.0625 0.00390625]
	// [[[[0.3127 0.3329 0.3544]] [[0.332 0.3333 0.3346]]]]
}

// T5's bias is learnt: a number for each head and bucket of distances.
func ExampleT5Bias() {
	rng := rand.New(rand.NewPCG(1, 2))
	table := tensor.Randn(rng, 32, 8).Param()
	q := tensor.Randn(rng, 1, 8, 5, 4)
	tape := tensor.NewTape(tensor.Train)
	y := attn.Attend(tape, q, q, q, attn.Options{
		Score: attn.Dot(), Mask: attn.Causal(), // as T5's decoder
		Changes: []attn.ScoreChange{attn.T5Bias(table, attn.T5Config{Causal: true})},
	})
	tape.Backward(tensor.Sum(tape, tensor.Square(tape, y.Out)), nil)
	fmt.Println("distances 0 to 5 of head 0 learn:")
	for bucket := range 6 {
		fmt.Print(table.Grad().At(bucket, 0) != 0, " ")
	}
	// Output:
	// distances 0 to 5 of head 0 learn:
	// true true true true true false
}

// Shaw's relative positions: a learnt vector for each distance from −2 to 2.
func ExampleShawBias() {
	rng := rand.New(rand.NewPCG(1, 2))
	r := tensor.Randn(rng, 5, 8).Param()
	x := tensor.Randn(rng, 2, 3, 7, 8)
	y := attn.Attend(nil, x, x, x, attn.Options{Changes: []attn.ScoreChange{attn.ShawBias(r)}})
	fmt.Println(y.Out.Shape())
	// Output:
	// [2 3 7 8]
}

// Transformer-XL: sinusoids of the distances are mapped to a vector for each head, and two
// learnt vectors of each head take the place of the query's.
func ExampleTransformerXLBias() {
	const heads, size, most, width = 2, 4, 6, 8 // distances from −6 to 6
	rng := rand.New(rand.NewPCG(1, 2))
	project := nn.NewLinear(width, heads*size, false, rng)
	u, v := tensor.Randn(rng, heads, size).Param(), tensor.Randn(rng, heads, size).Param()

	// Row n is for a key at distance n−6 from the query: the model's sinusoids count
	// from the key to the query, from 6 down to −6.
	positions := tensor.Zeros(2*most+1, width)
	for n := range 2*most + 1 {
		copy(positions.Data()[n*width:], nn.Sinusoids(nil, most-n, 1, width).Data())
	}
	tape := tensor.NewTape(tensor.Train)
	r := tensor.Reshape(tape, project.Forward(tape, positions), 2*most+1, heads, size)
	r = tensor.Transpose(tape, r, 1, 0, 2) // [H 2K+1 E]

	x := tensor.Randn(rng, 1, heads, 5, size)
	y := attn.Attend(tape, x, x, x, attn.Options{Changes: attn.TransformerXLBias(r, u, v), Mask: attn.Causal()})
	tape.Backward(tensor.Sum(tape, tensor.Square(tape, y.Out)), nil)
	fmt.Println(project.Weight.Grad().Shape(), u.Grad().Shape(), v.Grad().Shape())
	// Output:
	// [8 8] [2 4] [2 4]
}

// towards is a user-defined bias: learnt[h] for keys in the first half of the row, and
// nothing for the others.
type towards struct{ learnt *tensor.Tensor } // [H]

func (r towards) Check(s attn.Sizes) error {
	if got := r.learnt.Len(); got != s.H {
		return &tensor.ShapeError{Arg: "bias towards the first half", Got: r.learnt.Shape(), Want: fmt.Sprintf("[H=%d]", s.H)}
	}
	return nil
}

func (r towards) Param(t *tensor.Tape, x attn.Inputs) *tensor.Tensor {
	return tensor.Reshape(t, r.learnt, 1, x.H, 1)
}

func (towards) Adds() bool { return true }

func (r towards) Apply(at attn.Row, param, scores []float32) {
	for j := range scores {
		if at.Key+j < 2 {
			scores[j] += param[0]
		}
	}
}

func (r towards) Back(at attn.Row, _, dparam, _, _, grad []float32) {
	for j, g := range grad {
		if at.Key+j < 2 {
			dparam[0] += g
		}
	}
}

// A score change with a learnt number for each head, and the gradient of these.
func ExampleScoreChange_learnt() {
	rule := towards{tensor.New([]float32{float32(math.Log(3)), 0}, 2).Param()}
	q, k := tensor.Zeros(1, 2, 1, 3), tensor.Zeros(1, 2, 4, 3)
	v := tensor.New([]float32{1, 2, 3, 4, 1, 2, 3, 4}, 1, 2, 4, 1)
	tape := tensor.NewTape(tensor.Train)
	y := attn.Attend(tape, q, k, v, attn.Options{Changes: []attn.ScoreChange{rule}, Weights: true})
	tape.Backward(tensor.Sum(tape, y.Out), nil)
	fmt.Println(y.Weights)
	fmt.Println(rule.learnt.Grad())
	// Output:
	// [[[[0.375 0.375 0.125 0.125]] [[0.25 0.25 0.25 0.25]]]]
	// [-0.375 -0.5]
}
