package attn_test

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

// Gemma 2 bounds its scores to ±50.
func ExampleSoftCap() {
	q, k := tensor.New([]float32{1000}, 1, 1, 1), tensor.New([]float32{1, -1, 0.01}, 1, 3, 1)
	y := attn.Attend(nil, q, k, k, attn.Options{Score: score.Dot(), SoftCap: 50, LogSumExp: true})
	fmt.Println(y.LogSumExp) // the largest score
	// Output:
	// [[50]]
}

// tempered is a user-defined score change: it divides scores by a temperature that increases with
// the position of the query.
type tempered struct {
	attn.NoParam
	rate float32
}

func (tempered) Adds() bool { return false }

func (m tempered) by(at attn.Row) float32 { return 1 / (1 + m.rate*float32(at.Position)) }

func (m tempered) Apply(at attn.Row, _, scores []float32) {
	for j := range scores {
		scores[j] *= m.by(at)
	}
}

func (m tempered) Back(at attn.Row, _, _, before, after, grad []float32) {
	for j := range grad {
		grad[j] *= m.by(at)
	}
}

func ExampleScoreChange() {
	q := tensor.Full(float32(math.Log(4)), 1, 2, 1)
	k := tensor.New([]float32{1, 0}, 1, 2, 1)
	y := attn.Attend(nil, q, k, k, attn.Options{Score: score.Dot(), Changes: []attn.ScoreChange{tempered{rate: 1}}, Weights: true})
	fmt.Println(y.Weights)
	// Output:
	// [[[0.8 0.2] [0.6667 0.3333]]]
}

// lowRank is a user-defined score, (Aq)ᵀ(Bk)/√r with trained A and B: the dot product of mapped
// queries and keys, which is computed in tiles.
type lowRank struct{ A, B *tensor.Tensor } // [r E]

func (s lowRank) Form() attn.Form {
	by := func(m *tensor.Tensor) func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
		return func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor { return tensor.Linear(t, x, m, nil) }
	}
	return attn.Form{Queries: by(s.A), Keys: by(s.B), Scale: 1, PerRoot: true}
}

func (s lowRank) Params() nn.Params {
	return nn.Vars{{Name: "a", Tensor: s.A}, {Name: "b", Tensor: s.B}}.Params()
}

// The parameters of a layer's score are parameters of the layer.
func ExampleScore() {
	rng := rand.New(rand.NewPCG(1, 2))
	score := lowRank{nn.Xavier(rng, 2, 8), nn.Xavier(rng, 2, 8)}
	layer, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: 32, Heads: 4, Score: score}, rng)
	if err != nil {
		fmt.Println(err)
		return
	}
	x := tensor.Randn(rng, 2, 5, 32)
	fmt.Println(layer.Forward(nil, x, x, x, attn.Options{Mask: mask.Causal()}).Out.Shape())
	for name, p := range layer.Params() {
		fmt.Print(name, p.Shape(), " ")
	}
	// Output:
	// [2 5 32]
	// q.weight[32 32] k.weight[32 32] v.weight[32 32] out.weight[32 32] score.a[2 8] score.b[2 8]
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

// recency adds a number that depends on the distance between a key and its query.
type recency struct {
	attn.NoParam
	byDistance []float32 // from the farthest to 0
}

func (recency) Adds() bool { return true }

func (r recency) Apply(at attn.Row, _, scores []float32) {
	first := len(r.byDistance) - 1 - at.Position + at.Key
	tensor.AddTo(scores, r.byDistance[first:][:len(scores)])
}

func (recency) Back(_ attn.Row, _, _, _, _, _ []float32) {} // nothing is trained

// A score change that adds numbers from a slice.
func ExampleAddTo() {
	x := tensor.Zeros(1, 1, 3, 2)
	fade := recency{byDistance: []float32{float32(-math.Log(4)), float32(-math.Log(2)), 0}}
	last := tensor.Slice(nil, x, 2, 2, 3)
	out := attn.Attend(nil, last, x, x, attn.Options{Changes: []attn.ScoreChange{fade}, Weights: true})
	fmt.Println(out.Weights) // 1/4, 1/2 and 1, divided by their sum
	// Output:
	// [[[[0.1429 0.2857 0.5714]]]]
}
