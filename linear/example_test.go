package linear_test

import (
	"fmt"
	"log"
	"math"
	"math/rand/v2"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/linear"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// The delta rule replaces the value of a key, where linear attention adds to it.
func ExampleAttend() {
	k := tensor.New([]float32{1, 0, 0, 1, 1, 0}, 1, 3, 2) // the first key comes again
	v := tensor.New([]float32{10, 20, 30}, 1, 3, 1)
	q := k
	added := linear.Attend(nil, q, k, v, linear.Options{Scale: 1})
	replaced := linear.Attend(nil, q, k, v, linear.Options{Scale: 1, Beta: tensor.Full(1, 1, 3)})
	fmt.Println(added.Out.Data())
	fmt.Println(replaced.Out.Data())
	// Output:
	// [10 20 40]
	// [10 20 30]
}

// The layers of lesson 8: a softmax, and three rules of a state, which gates and the delta rule change.
func ExampleAttend_rules() {
	rng := rand.New(rand.NewPCG(1, 2))
	q, k, v := tensor.Randn(rng, 2, 9, 8), tensor.Randn(rng, 2, 9, 8), tensor.Randn(rng, 2, 9, 8) // [B L E]
	decay, beta := tensor.Uniform(rng, -1, 0, 2, 9), tensor.Uniform(rng, 0, 1, 2, 9)              // [B L]
	soft := attn.Attend(nil, q, k, v, attn.Options{Mask: mask.Causal()})
	fmt.Println("softmax", soft.Out.Shape())
	for _, rule := range []struct {
		name    string
		options linear.Options
	}{
		{"linear", linear.Options{Feature: linear.ELU1, Normalize: true}},
		{"gated", linear.Options{Feature: linear.Unit, Decay: decay}},
		{"gated delta", linear.Options{Feature: linear.Unit, Decay: decay, Beta: beta}},
	} {
		fmt.Println(rule.name, linear.Attend(nil, q, k, v, rule.options).Out.Shape())
	}
	// Output:
	// softmax [2 9 8]
	// linear [2 9 8]
	// gated [2 9 8]
	// gated delta [2 9 8]
}

// The matrix by which a layer multiplies the values is its output for the identity.
func ExampleAttend_matrix() {
	rng := rand.New(rand.NewPCG(1, 2))
	q, k, v := tensor.Randn(rng, 1, 9, 8), tensor.Randn(rng, 1, 9, 8), tensor.Randn(rng, 1, 9, 8) // [B L E]
	gated := linear.Options{Feature: linear.Unit, Decay: tensor.Uniform(rng, -1, 0, 1, 9)}
	identity := tensor.Zeros(1, 9, 9)
	for i := range 9 {
		identity.Data()[i*9+i] = 1
	}
	matrix := linear.Attend(nil, q, k, identity, gated).Out
	fmt.Printf("%.4f\n", tensor.MatMul(nil, matrix, v).At(0, 8, 7))
	fmt.Printf("%.4f\n", linear.Attend(nil, q, k, v, gated).Out.At(0, 8, 7))
	// Output:
	// -0.0393
	// -0.0393
}

// With a feature that has no negative numbers and the normaliser, outputs are means of the values, as with a softmax.
func ExampleOptions_normalize() {
	k := tensor.New([]float32{1, -1, 0, 2}, 1, 4, 1)
	v := tensor.New([]float32{3, 5, 4, 5}, 1, 4, 1)
	y := linear.Attend(nil, k, k, v, linear.Options{Feature: linear.ELU1, Normalize: true})
	fmt.Printf("%.2f\n", y.Out.Data())
	// Output: [3.00 3.31 3.52 4.21]
}

// A decoder keeps a State, whose size does not grow: token by token has the bits of all tokens at once.
func ExampleState() {
	r := rand.New(rand.NewPCG(1, 2))
	q, k, v := tensor.Randn(r, 1, 2, 1000, 16), tensor.Randn(r, 1, 2, 1000, 16), tensor.Randn(r, 1, 2, 1000, 16)
	whole := linear.Attend(nil, q, k, v, linear.Options{Feature: linear.Unit, Decay: tensor.New([]float32{-0.1, -0.01}, 2)})

	s, err := linear.NewState(linear.StateConfig{Batch: 1, Heads: 2, KeySize: 16})
	if err != nil {
		log.Fatal(err)
	}
	same := true
	for i := range 1000 {
		token := func(x *tensor.Tensor) *tensor.Tensor { return tensor.Slice(nil, x, 2, i, i+1) }
		y := s.Attend(nil, token(q), token(k), token(v), linear.Options{Feature: linear.Unit, Decay: tensor.New([]float32{-0.1, -0.01}, 2)})
		same = same && y.Out.At(0, 1, 0, 7) == whole.Out.At(0, 1, i, 7)
	}
	fmt.Println(same, s.Len(0), s.Bytes())
	// Output: true 1000 5760
}

// The layer of Gated DeltaNet.
func ExampleNewLayer() {
	rng := rand.New(rand.NewPCG(1, 2))
	layer, err := linear.NewLayer(linear.LayerConfig{
		Width: 64, Heads: 4, KeyHeads: 2, KeySize: 16, ValueSize: 32,
		Feature: linear.Unit, Beta: 1, Decay: linear.NewStepDecay(64, 4, 1, rng),
		Conv: 4, OutNorm: nn.NewRMSNorm(32), OutGate: tensor.SiLU,
	}, rng)
	if err != nil {
		log.Fatal(err)
	}
	y := layer.Forward(nil, tensor.Randn(rng, 1, 10, 64), linear.Options{})
	fmt.Println(y.Out.Shape(), y.State.Shape())
	// Output: [1 10 64] [1 4 16 32]
}

// The weights of a head of the delta rule are exact: weights times values are the output. Products of queries with keys,
// times decays and betas, are sometimes drawn instead. They leave out what later tokens replace, and miss the output.
func ExampleOutput_weights() {
	r := rand.New(rand.NewPCG(1, 2))
	const tokens, size = 96, 32
	q, k, v := tensor.Randn(r, 1, tokens, size), tensor.Randn(r, 1, tokens, size), tensor.Randn(r, 1, tokens, size)
	beta := tensor.Sigmoid(nil, tensor.Randn(r, 1, tokens))
	for _, decay := range []float32{-0.3, -0.05, -0.005} {
		o := linear.Options{Feature: linear.Unit, Decay: tensor.Full(decay, 1, tokens), Beta: beta, Weights: true}
		exact := linear.Attend(nil, q, k, v, o)
		o.Beta = nil
		products := tensor.Mul(nil, linear.Attend(nil, q, k, v, o).Weights, beta) // (QKᵀ ∘ decays)·diag(beta)

		negative := 0
		for _, w := range exact.Weights.Data() {
			if w < 0 {
				negative++
			}
		}
		missed := func(weights *tensor.Tensor) float64 {
			d := tensor.Sub(nil, tensor.MatMul(nil, weights, v), exact.Out)
			return 100 * norm(d) / norm(exact.Out)
		}
		fmt.Printf("decay %g: %d%% negative, error %.3f%%, without the inverse %.0f%%\n",
			decay, 200*negative/(tokens*(tokens+1)), missed(exact.Weights), missed(products))
	}
	// Output:
	// decay -0.3: 49% negative, error 0.000%, without the inverse 11%
	// decay -0.05: 49% negative, error 0.000%, without the inverse 33%
	// decay -0.005: 49% negative, error 0.000%, without the inverse 63%
}

func norm(x *tensor.Tensor) float64 {
	return math.Sqrt(float64(tensor.Sum(nil, tensor.Mul(nil, x, x)).Data()[0]))
}
