package position_test

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/position"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
)

// A decoder like Llama: rotary positions, and keys and values shared by groups of heads, step by
// step.
func ExampleRoPE() {
	rng := rand.New(rand.NewPCG(1, 2))
	rope, err := position.NewRoPE(position.RoPEConfig{Base: 500000, Scaling: position.ScaleLlama3(8, 1, 4, 8192)})
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
	whole := layer.Forward(nil, x, x, x, attn.Options{Mask: mask.Causal()}).Out

	cache, err := layer.NewCache(1, attn.CacheConfig{}) // keys are stored rotated
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range 5 {
		y := layer.Extend(nil, tensor.Slice(nil, x, 1, i, i+1), cache, attn.Options{Mask: mask.Causal()})
		fmt.Print(y.Out.At(0, 0, 63) == whole.At(0, i, 63), " ")
	}
	// Output:
	// true true true true true
}

// A bias per head instead of position embeddings: distant keys get smaller scores.
func ExampleALiBi() {
	fmt.Println(position.ALiBiSlopes(2))
	x := tensor.Zeros(1, 2, 3, 4)
	y := attn.Attend(nil, x, x, x, attn.Options{
		Changes: []attn.ScoreChange{position.ALiBi()}, Mask: mask.Causal(), Weights: true,
	})
	fmt.Println(tensor.Slice(nil, y.Weights, 2, 2, 3)) // of the last query
	// Output:
	// [0.0625 0.00390625]
	// [[[[0.3127 0.3329 0.3544]] [[0.332 0.3333 0.3346]]]]
}

// T5's bias is trained: a number for each head and bucket of distances.
func ExampleT5Bias() {
	rng := rand.New(rand.NewPCG(1, 2))
	table := tensor.Randn(rng, 32, 8).Param()
	q := tensor.Randn(rng, 1, 8, 5, 4)
	tape := tensor.NewTape(tensor.Train)
	y := attn.Attend(tape, q, q, q, attn.Options{
		Score: score.Dot(), Mask: mask.Causal(), // as in T5's decoder
		Changes: []attn.ScoreChange{position.T5Bias(table, position.T5Config{Causal: true})},
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

// Shaw's relative positions: a trained vector for each distance from −2 to 2.
func ExampleShawBias() {
	rng := rand.New(rand.NewPCG(1, 2))
	r := tensor.Randn(rng, 5, 8).Param()
	x := tensor.Randn(rng, 2, 3, 7, 8)
	y := attn.Attend(nil, x, x, x, attn.Options{Changes: []attn.ScoreChange{position.ShawBias(r)}})
	fmt.Println(y.Out.Shape())
	// Output:
	// [2 3 7 8]
}

// Transformer-XL: each head maps sinusoids of the distances to vectors, and two trained vectors
// per head replace the query's position terms.
func ExampleTransformerXLBias() {
	const heads, size, most, width = 2, 4, 6, 8 // distances from −6 to 6
	rng := rand.New(rand.NewPCG(1, 2))
	project := nn.NewLinear(width, heads*size, false, rng)
	u, v := tensor.Randn(rng, heads, size).Param(), tensor.Randn(rng, heads, size).Param()

	// Row n is for a key at distance n−6 from the query: the model's sinusoids use the distance
	// from the key to the query, from 6 down to −6.
	positions := tensor.Zeros(2*most+1, width)
	for n := range 2*most + 1 {
		copy(positions.Data()[n*width:], nn.Sinusoids(nil, most-n, 1, width).Data())
	}
	tape := tensor.NewTape(tensor.Train)
	r := tensor.Reshape(tape, project.Forward(tape, positions), 2*most+1, heads, size)
	r = tensor.Transpose(tape, r, 1, 0, 2) // [H 2K+1 E]

	x := tensor.Randn(rng, 1, heads, 5, size)
	y := attn.Attend(tape, x, x, x, attn.Options{Changes: position.TransformerXLBias(r, u, v), Mask: mask.Causal()})
	tape.Backward(tensor.Sum(tape, tensor.Square(tape, y.Out)), nil)
	fmt.Println(project.Weight.Grad().Shape(), u.Grad().Shape(), v.Grad().Shape())
	// Output:
	// [8 8] [2 4] [2 4]
}

// DeBERTa: queries and keys are also compared with vectors of their distance, which each head projects from one table.
func ExampleDeBERTaBias() {
	const heads, size, most, width = 2, 4, 6, 8 // distances from −6 to 6
	rng := rand.New(rand.NewPCG(1, 2))
	table := tensor.Randn(rng, 2*most+1, width).Param()
	tape := tensor.NewTape(tensor.Train)
	project := func(by *nn.Linear) *tensor.Tensor {
		r := tensor.Reshape(tape, by.Forward(tape, table), 2*most+1, heads, size)
		return tensor.Transpose(tape, r, 1, 0, 2) // [H 2K+1 E]
	}
	keys, queries := project(nn.NewLinear(width, heads*size, true, rng)), project(nn.NewLinear(width, heads*size, true, rng))

	x := tensor.Randn(rng, 1, heads, 5, size)
	scale := float32(1 / math.Sqrt(3*size)) // a score has three terms
	y := attn.Attend(tape, x, x, x, attn.Options{
		Score: score.DotScale(scale), Changes: position.DeBERTaBias(keys, queries, scale),
	})
	tape.Backward(tensor.Sum(tape, tensor.Square(tape, y.Out)), nil)
	fmt.Println("distances 0 to 5 learn:")
	for d := range 6 {
		fmt.Print(table.Grad().At(most+d, 0) != 0, " ")
	}
	// Output:
	// distances 0 to 5 learn:
	// true true true true true false
}

// Scalings of RoPE for sequences longer than those in training.
func ExampleRoPEScaling() {
	for _, s := range []struct {
		name    string
		scaling position.RoPEScaling
	}{
		{"linear", position.ScaleLinear(4)},
		{"dynamic", position.ScaleNTK(1, 2048, 8192)},
		{"fixed", position.ScaleFixedNTK(4)},
		{"yarn", position.ScaleYaRN(position.YaRN{Factor: 4, Trained: 2048})},
		{"llama3", position.ScaleLlama3(8, 1, 4, 8192)},
	} {
		freqs := []float64{1, 0.1, 0.01, 0.001} // radians per position, for base 10,000 and 8 elements
		factor, err := s.scaling(10000, freqs)
		fmt.Printf("%-8s %.5f  factor %.3f %v\n", s.name, freqs, factor, err)
	}
	position, err := position.NewRoPE(position.RoPEConfig{Scaling: position.ScaleYaRN(position.YaRN{Factor: 4, Trained: 2048})})
	fmt.Println(position != nil, err)
	// Output:
	// linear   [0.25000 0.02500 0.00250 0.00025]  factor 1.000 <nil>
	// dynamic  [1.00000 0.06300 0.00397 0.00025]  factor 1.000 <nil>
	// fixed    [0.70711 0.05000 0.00354 0.00025]  factor 1.000 <nil>
	// yarn     [1.00000 0.10000 0.00625 0.00025]  factor 1.139 <nil>
	// llama3   [1.00000 0.10000 0.01000 0.00021]  factor 1.000 <nil>
	// true <nil>
}

func ExampleALiBiSlopes() {
	fmt.Println(position.ALiBiSlopes(8)[:3])
	fmt.Println(position.ALiBiSlopes(3))
	// Output:
	// [0.5 0.25 0.125]
	// [0.0625 0.00390625 0.25]
}
