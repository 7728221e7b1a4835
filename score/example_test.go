package score_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
)

// pairDistance is a user-defined score, −Σ_f |w·(q − k)_f|, with a parameter.
type pairDistance struct{ w *tensor.Tensor } // [1]

func (s pairDistance) Form() attn.Form { return attn.Form{Given: s.scores} }

func (s pairDistance) scores(t *tensor.Tape, q, k *tensor.Tensor) *tensor.Tensor {
	b, h, lq, lk, e := q.Dim(0), q.Dim(1), q.Dim(2), k.Dim(2), q.Dim(3)
	diff := tensor.Sub(t, tensor.Reshape(t, q, b, h, lq, 1, e), tensor.Reshape(t, k, b, h, 1, lk, e))
	abs := tensor.Sqrt(t, tensor.Square(t, tensor.Mul(t, diff, s.w)))
	return tensor.Scale(t, tensor.SumAxis(t, abs, 4), -1)
}

func (s pairDistance) Params() nn.Params { return nn.Vars{{Name: "w", Tensor: s.w}}.Params() }

func (s pairDistance) WithParams(p map[string]*tensor.Tensor) attn.Score { return pairDistance{p["w"]} }

// manhattan is the table entry of pairDistance.
var manhattan = score.Kind{
	Name: "manhattan", Formula: "−‖w·(q − k)‖₁", Score: pairDistance{},
	Params: []score.Param{{Name: "w", Axes: []string{"1"}, New: func(score.Sizes, *rand.Rand) *tensor.Tensor {
		return tensor.Full(0.5, 1).Param()
	}}},
}

// A user-defined score, −‖q − k‖, built from operations on tensors. Gradients follow
// automatically.
func ExampleFunc() {
	distance := score.Func(func(t *tensor.Tape, q, k *tensor.Tensor) *tensor.Tensor {
		b, h, lq, lk, e := q.Dim(0), q.Dim(1), q.Dim(2), k.Dim(2), q.Dim(3)
		q = tensor.Reshape(t, q, b, h, lq, 1, e)
		k = tensor.Reshape(t, k, b, h, 1, lk, e)
		return tensor.Scale(t, tensor.Sqrt(t, tensor.SumAxis(t, tensor.Square(t, tensor.Sub(t, q, k)), 4)), -1)
	})
	q := tensor.New([]float32{0, 0}, 1, 1, 2)
	k := tensor.New([]float32{3, 4, 6, 8}, 1, 2, 2)
	fmt.Println(attn.Scores(nil, q, k, attn.Options{Score: distance}))
	// Output:
	// [[[-5 -10]]]
}

// A decoder that attends to the same keys at each step maps them only once.
func ExampleOnKeys() {
	rng := rand.New(rand.NewPCG(1, 2))
	scored := score.NewAdditive(8, 6, 16, rng)
	keys := tensor.Randn(rng, 1, 1, 7, 6) // [B H Lk Ek]
	mapped := score.OnKeys(nil, scored, keys)
	q := tensor.Randn(rng, 1, 1, 1, 8)
	a := attn.Attend(nil, q, keys, keys, attn.Options{Score: scored}).Out
	b := attn.Attend(nil, q, keys, keys, attn.Options{Score: mapped}).Out
	fmt.Println(a.Data()[0] == b.Data()[0], b.Shape())
	// Output: true [1 1 1 6]
}

// A user-defined score has an entry like the scores of this package. Its name comes from a
// configuration.
func ExampleKinds() {
	table := append(score.Kinds(), manhattan)
	for _, name := range []string{"additive", "manhattan"} {
		kind, ok := table.Find(name)
		if !ok {
			fmt.Println("no score", name)
			continue
		}
		score := kind.New(score.Sizes{Query: 2, Key: 2}, rand.New(rand.NewPCG(1, 2)))
		q, k := tensor.New([]float32{1, 2}, 1, 1, 1, 2), tensor.New([]float32{3, 4, 1, 2}, 1, 1, 2, 2)
		fmt.Println(kind.Formula, attn.Scores(nil, q, k, attn.Options{Score: score}).Shape())
		for _, p := range kind.Params {
			fmt.Println(" ", p.Name, p.Axes)
		}
	}
	// Output:
	// wvᵀ·tanh(wq·q + wk·k) [1 1 1 2]
	//   wq [h Eq]
	//   wk [h Ek]
	//   wv [h]
	// −‖w·(q − k)‖₁ [1 1 1 2]
	//   w [1]
}
