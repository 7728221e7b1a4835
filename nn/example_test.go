package nn_test

import (
	"bytes"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/statedict"
	"github.com/attn-go/attn/tensor"
)

// Two sequences of different length in one batch.
func ExampleGRU() {
	rng := rand.New(rand.NewPCG(1, 2))
	gru := nn.NewGRU(3, 4, rng)
	x := tensor.Randn(rng, 2, 5, 3) // two sequences, five steps, three features
	lens := []int{5, 2}

	out, last := gru.Forward(nil, x, nil, lens, nn.Forward)
	fmt.Println(out.Shape(), last.Shape())
	fmt.Println("after its end the second gives", tensor.Slice(nil, tensor.Slice(nil, out, 0, 1, 2), 1, 2, 5))
	fmt.Println("its last state is that of step 2:", last.At(1, 0) == out.At(1, 1, 0))

	// A bidirectional layer concatenates the outputs of two layers.
	reverse := nn.NewGRU(3, 4, rng)
	back, _ := reverse.Forward(nil, x, nil, lens, nn.Backward)
	fmt.Println(tensor.Concat(nil, 2, out, back).Shape())
	// Output:
	// [2 5 4] [2 4]
	// after its end the second gives [[[0 0 0 0] [0 0 0 0] [0 0 0 0]]]
	// its last state is that of step 2: true
	// [2 5 8]
}

// A plain recurrent layer, with ReLU instead of tanh, that adds up its inputs.
func ExampleRNN() {
	one := func() *tensor.Tensor { return tensor.Full(1, 1, 1) }
	sum := &nn.RNN{CellWeights: nn.CellWeights{WeightIH: one(), WeightHH: one()}, Activation: nn.ReLU} // h' = max(0, x + h)
	x := tensor.New([]float32{1, 2, -5, 3}, 1, 4, 1)

	out, last := sum.Forward(nil, x, nil, nil, nn.Forward)
	fmt.Println(tensor.Reshape(nil, out, 4), last)
	// Output: [1 3 0 3] [[3]]
}

// An LSTM has two states, and a decoder continues from both.
func ExampleLSTM() {
	rng := rand.New(rand.NewPCG(1, 2))
	lstm := nn.NewLSTM(3, 4, rng)
	x := tensor.Randn(rng, 2, 5, 3) // two sequences, five steps, three features

	out, h, c := lstm.Forward(nil, x, nil, nil, []int{5, 2}, nn.Forward)
	fmt.Println(out.Shape(), h.Shape(), c.Shape())

	next, _, _ := lstm.Forward(nil, tensor.Randn(rng, 2, 1, 3), h, c, nil, nn.Forward)
	fmt.Println(next.Shape())
	// Output:
	// [2 5 4] [2 4] [2 4]
	// [2 1 4]
}

// Add positions to the embeddings of two sequences of three tokens. A decoder that has written three tokens continues
// with position 3.
func ExampleSinusoids() {
	x := tensor.Zeros(2, 3, 4)
	fmt.Println(tensor.Add(nil, x, nn.Sinusoids(nil, 0, 3, 4)).Shape())
	fmt.Println(nn.Sinusoids(nil, 0, 2, 4))
	fmt.Println(nn.Sinusoids(nil, 3, 1, 4))
	// Output:
	// [2 3 4]
	// [[0 1 0 1] [0.8415 0.5403 0.01 0.9999]]
	// [[0.1411 -0.99 0.03 0.9996]]
}

// Learned absolute positions are a second embedding with one row for each position of the longest sequence. Add the
// row of a position to each token embedding there.
func ExampleEmbedding() {
	rng := rand.New(rand.NewPCG(1, 2))
	tokens, positions := nn.NewEmbedding(100, 8, 0.02, rng), nn.NewEmbedding(512, 8, 0.02, rng)

	x := tokens.Forward(nil, []int{5, 17, 5, 42, 0, 9}, 2, 3) // two sequences of three tokens
	p := positions.Forward(nil, []int{0, 1, 2}, 1, 3)         // the same for both
	fmt.Println(tensor.Add(nil, x, p).Shape())
	// A decoder that has written three tokens is at position 3.
	fmt.Println(positions.Forward(nil, []int{3}, 1, 1).Shape())
	fmt.Println(tensor.Catch(func() { positions.Forward(nil, []int{512}, 1, 1) }))
	// Output:
	// [2 3 8]
	// [1 1 8]
	// nn: Embedding: ids has id 512, want 0 to 511
}

func ExampleRMSNorm() {
	norm := nn.NewRMSNorm(3)
	x := tensor.New([]float32{3, 4, 5, -30, 40, 50}, 2, 3)
	fmt.Printf("%.3f\n", norm.Forward(nil, x).Data())
	// Output:
	// [0.735 0.980 1.225 -0.735 0.980 1.225]
}

func ExampleL2Norm() {
	x := tensor.New([]float32{3, 4, 0, 0, 0, 1e-30}, 3, 2)
	fmt.Println(nn.L2Norm{}.Forward(nil, x))
	// Output:
	// [[0.6 0.8] [0 0] [0 1]]
}

// Padding, here token 0, does not count.
func ExampleCrossEntropy() {
	logits := tensor.Zeros(2, 3, 8) // two sequences, three steps, eight tokens
	targets := []int{5, 2, 0, 7, 0, 0}
	loss := nn.CrossEntropy(nil, logits, targets, 0, 0)
	fmt.Printf("%.4f nats: knowing nothing of 8 tokens is log 8\n", loss.Item())
	// Output: 2.0794 nats: knowing nothing of 8 tokens is log 8
}

// A model is a struct of layers; Join gives their parameters names.
type classifier struct {
	layers []*nn.Linear
	norm   *nn.LayerNorm
}

func (c *classifier) Params() nn.Params {
	return nn.Join(append(nn.Numbered("layers", c.layers), nn.Named{Name: "norm", Module: c.norm})...)
}

func ExampleJoin() {
	rng := rand.New(rand.NewPCG(1, 2))
	model := &classifier{
		layers: []*nn.Linear{nn.NewLinear(5, 7, true, rng), nn.NewLinear(7, 3, false, rng)},
		norm:   nn.NewLayerNorm(3),
	}
	for name, p := range model.Params() {
		fmt.Println(name, p.Shape())
	}
	fmt.Println(nn.Count(model), "numbers")
	// Output:
	// layers.0.weight [7 5]
	// layers.0.bias [7]
	// layers.1.weight [3 7]
	// norm.weight [3]
	// norm.bias [3]
	// 69 numbers
}

// Named tensors are saved in one line, and read back with safetensors.
func ExampleVars() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "states.safetensors")
	queries, keys := tensor.Full(1, 2, 3), tensor.Linspace(0, 3, 4)

	if err := statedict.Save(path, nn.Vars{{Name: "queries", Tensor: queries}, {Name: "keys", Tensor: keys}}, statedict.SaveOptions{}); err != nil {
		log.Fatal(err)
	}

	f, err := safetensors.Read(path)
	if err != nil {
		log.Fatal(err)
	}
	for _, x := range f.Tensors {
		values, err := x.Float32s()
		fmt.Println(x.Name, x.Shape, values, err)
	}
	// Output:
	// keys [4] [0 1 2 3] <nil>
	// queries [2 3] [1 1 1 1 1 1] <nil>
}

// Save a module under the names of another program, which transposes the map and stores its rows in another order.
func ExampleStateDict() {
	layer := &nn.Linear{Weight: tensor.New([]float32{1, 2, 3, 4, 5, 6}, 2, 3)}
	names := func(nn.Module) (nn.StateDict, error) {
		w := layer.Weight
		return nn.StateDict{{Name: "kernel", Parts: []*tensor.Tensor{w.Rows(1, 2), w.Rows(0, 1)}, Transposed: true}}, nil
	}
	var b bytes.Buffer
	if err := statedict.SaveTo(&b, layer, statedict.SaveOptions{Names: names}); err != nil {
		log.Fatal(err)
	}
	f, err := safetensors.Parse(b.Bytes())
	if err != nil {
		log.Fatal(err)
	}
	x, err := f.Tensors[0].Float32s()
	fmt.Println(f.Tensors[0].Name, f.Tensors[0].Shape, x, err)
	// Output: kernel [3 2] [4 1 5 2 6 3] <nil>
}
