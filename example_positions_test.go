package attn_test

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/position"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
)

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

// decay is a user-defined position: it multiplies a query at position p by rate^p and a key by
// rate^−p, as in xPos and RetNet, so that scores decay with distance.
type decay struct{ rate float64 }

func (decay) Check(int) error { return nil }

func (d decay) factor(p int, of attn.Projections) float32 {
	if of == attn.Key {
		p = -p
	}
	return float32(math.Pow(d.rate, float64(p)))
}

func (d decay) Apply(dst, x []float32, p int, of attn.Projections) {
	for i, v := range x {
		dst[i] = d.factor(p, of) * v
	}
}

func (d decay) Back(dx, dy []float32, p int, of attn.Projections) { // the transpose of a diagonal map is itself
	for i, v := range dy {
		dx[i] += d.factor(p, of) * v
	}
}

func ExamplePosition() {
	one := tensor.Full(1, 1, 4, 1)
	q := attn.ApplyPosition(nil, decay{0.5}, one, attn.Query, attn.Positions{})
	k := attn.ApplyPosition(nil, decay{0.5}, one, attn.Key, attn.Positions{})
	fmt.Println(attn.Scores(nil, q, k, attn.Options{Score: score.Dot()}))
	// Output:
	// [[[1 2 4 8] [0.5 1 2 4] [0.25 0.5 1 2] [0.125 0.25 0.5 1]]]
}

// towards is a user-defined score change: it adds learnt[h] for keys in the first half of the
// row, and nothing for the others.
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

// A score change with a trained number per head, and its gradient.
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
