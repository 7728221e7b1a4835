package attn_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
)

// Attention as regression: the estimate at x is the mean of the y_j, with larger weights for
// nearer x_j. The kernel width 1/w is trained: each point is estimated from all others, and the
// mask hides it from itself.
func Example_kernelRegression() {
	const n = 50
	rng := rand.New(rand.NewPCG(1, 2))
	x := tensor.Uniform(rng, 0, 5, 1, n, 1)
	slices.SortFunc(x.Data(), cmp.Compare[float32])
	y := tensor.Zeros(1, n, 1)
	for i, v := range x.Data() {
		v := float64(v)
		y.Data()[i] = float32(2*math.Sin(v) + math.Pow(v, 0.8) + 0.5*rng.NormFloat64())
	}

	kernel := &score.Gaussian{W: tensor.Full(1, 1).Param()}
	others := mask.AllowFunc(func(_, _, i, j int) bool { return i != j })
	optimizer := nn.NewAdamW(kernel)
	tape := tensor.NewTape(tensor.Train)
	for step := range 101 {
		tape.Reset()
		nn.ZeroGrad(kernel)
		estimate := attn.Attend(tape, x, x, y, attn.Options{Score: kernel, Mask: others}).Out
		loss := nn.MSE(tape, estimate, y)
		if step%100 == 0 {
			fmt.Printf("w = %.1f, mean squared error %.2f\n", kernel.W.Item(), loss.Item())
		}
		tape.Backward(loss, nil)
		optimizer.Step(0.1)
	}
	// Output:
	// w = 1.0, mean squared error 0.43
	// w = 3.8, mean squared error 0.21
}

// Every score measures how well a key matches a query. The example compares the scores of one
// query with two keys.
func Example_scores() {
	q := tensor.New([]float32{1, 2}, 1, 1, 1, 2) // [B H Lq E]
	k := tensor.New([]float32{
		3, 4,
		2, 1,
	}, 1, 1, 2, 2) // [B H Lk E]
	identity := tensor.New([]float32{1, 0, 0, 1}, 2, 2)
	swap := tensor.New([]float32{0, 1, 1, 0}, 2, 2)

	for _, s := range []struct {
		name  string
		score attn.Score
	}{
		{"dot", score.Dot()},
		{"scaled dot", score.ScaledDot()},
		{"additive", &score.Additive{WQ: identity, WK: swap, WV: tensor.Full(1, 2)}},
		{"bilinear", &score.Bilinear{W: swap}},
		{"scaled bilinear", &score.Bilinear{W: swap, Scaled: true}},
		{"Gaussian", &score.Gaussian{}},
		{"cosine", &score.Cosine{}},
		{"L1", &score.L1{}},
		{"your own", score.Func(func(t *tensor.Tape, q, k *tensor.Tensor) *tensor.Tensor {
			return tensor.Square(t, tensor.MatMulT(t, q, k))
		})},
	} {
		scores := attn.Scores(nil, q, k, attn.Options{Score: s.score}).Data()
		fmt.Printf("%-16s%8.3f%8.3f\n", s.name, scores[0], scores[1])
	}
	// Output:
	// dot               11.000   4.000
	// scaled dot         7.778   2.828
	// additive           2.000   1.963
	// bilinear          10.000   5.000
	// scaled bilinear    7.071   3.536
	// Gaussian          -4.000  -1.000
	// cosine             0.984   0.800
	// L1                -4.000  -2.000
	// your own         121.000  16.000
}

// A decoder attends to the states of an encoder. The decoder's states are the queries; the
// encoder's states after each step are the keys and values.
func Example_encoderDecoder() {
	rng := rand.New(rand.NewPCG(1, 2))
	encoder, decoder := nn.NewGRU(8, 16, rng), nn.NewGRU(8, 16, rng)
	source, target := tensor.Randn(rng, 2, 7, 8), tensor.Randn(rng, 2, 3, 8)
	lens := []int{7, 4} // the second source is padded

	tape := tensor.NewTape(tensor.Train)
	enc, last := encoder.Forward(tape, source, nil, lens, nn.Forward)
	dec, _ := decoder.Forward(tape, target, last, nil, nn.Forward)
	context := attn.Attend(tape, dec, enc, enc, attn.Options{
		Score: score.Dot(), Mask: mask.Lengths(lens...), Weights: true,
	})

	fmt.Println("context", context.Out.Shape(), "weights", context.Weights.Shape())
	fmt.Printf("on padding: %.3f\n", context.Weights.At(1, 0, 5))
	// Output:
	// context [2 3 16] weights [2 3 7]
	// on padding: 0.000
}

// Cross-attention of a transformer: queries from the decoder, keys and values
// from the encoder.
func Example_multiHeadCross() {
	rng := rand.New(rand.NewPCG(1, 2))
	cross, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: 128, Heads: 8, Bias: attn.AllProjections}, rng)
	if err != nil {
		fmt.Println(err)
		return
	}
	decoder, encoder := tensor.Randn(rng, 2, 5, 128), tensor.Randn(rng, 2, 7, 128)

	y := cross.Forward(nil, decoder, encoder, encoder, attn.Options{Weights: true})
	fmt.Println("context", y.Out.Shape())
	fmt.Println("weights", y.Weights.Shape())
	fmt.Println("heads of", cross.Config().HeadSize)
	// Output:
	// context [2 5 128]
	// weights [2 8 5 7]
	// heads of 16
}

// A mask of 0 and 1 that broadcasts over batch, heads and queries, and dropout
// on the weights in training.
func Example_multiHeadMask() {
	rng := rand.New(rand.NewPCG(1, 2))
	config := attn.MultiHeadConfig{Width: 300, Heads: 7, Bias: attn.AllProjections, Dropout: 0.1}
	_, err := attn.NewMultiHead(config, rng)
	fmt.Println(err)
	config.Heads = 6
	layer, _ := attn.NewMultiHead(config, rng)

	masked := tensor.New([]float32{1, 1, 1, 0, 1, 1, 1, 1, 0, 0}, 10) // one per key
	q, kv := tensor.Randn(rng, 64, 12, 300), tensor.Randn(rng, 64, 10, 300)
	tape := tensor.NewTape(tensor.Train)
	tape.Seed(1, 0) // the run's seed and the step determine the dropped weights
	y := layer.Forward(tape, q, kv, kv, attn.Options{Mask: mask.AllowTensor(masked), Weights: true})
	fmt.Println("out", y.Out.Shape(), "weights", y.Weights.Shape())
	for j, m := range masked.Data() {
		if m == 0 {
			fmt.Print("key ", j, ": ", y.Weights.At(63, 5, 11, j), "  ")
		}
	}
	// Output:
	// attn: NewMultiHead: width 300 is not divisible by 7 heads
	// out [64 12 300] weights [64 6 12 10]
	// key 3: 0  key 8: 0  key 9: 0
}

// Valid lengths are the numbers of keys of each sequence. The first batch sets the widths of the
// inputs.
func Example_multiHeadValidLens() {
	layer, err := attn.NewMultiHead(attn.MultiHeadConfig{
		Width: 100, Heads: 5, Dropout: 0.5,
		QueryWidth: attn.Infer, KeyWidth: attn.Infer, ValueWidth: attn.Infer,
	}, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		fmt.Println(err)
		return
	}
	x, y := tensor.Full(1, 2, 4, 100), tensor.Full(1, 2, 6, 100)

	out := layer.Forward(nil, x, y, y, attn.Options{Mask: mask.Lengths(3, 2), Weights: true})
	fmt.Println(out.Out.Shape())
	for b := range 2 { // of the first query in the first head
		fmt.Printf("%.3f\n", tensor.Index(nil, out.Weights, b, 0, 0).Data())
	}
	// Output:
	// [2 4 100]
	// [0.333 0.333 0.333 0.000 0.000 0.000]
	// [0.500 0.500 0.000 0.000 0.000 0.000]
}
