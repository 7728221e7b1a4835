package attn_test

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/observe"
	"github.com/attn-go/attn/tensor"
)

// relative is a user-defined score with a parameter: scaled dot product with trained relative
// positions, as in Shaw et al., 2018, https://arxiv.org/abs/1803.02155, with one vector r per
// distance.
type relative struct {
	r *tensor.Tensor // [Lq+Lk−1 E]
}

func (s relative) Form() attn.Form { return attn.Form{Given: s.scores} }

func (s relative) scores(t *tensor.Tape, q, k *tensor.Tensor) *tensor.Tensor {
	return relativeScores(t, q, k, s.r)
}

func (s relative) Params() nn.Params { return nn.Vars{{Name: "r", Tensor: s.r}}.Params() }

// relativeScores returns (q_i·k_j + q_i·r_{j−i+Lq−1})/√E. It needs at least two queries.
func relativeScores(t *tensor.Tape, q, k, r *tensor.Tensor) *tensor.Tensor {
	b, h, lq, lk := q.Dim(0), q.Dim(1), q.Dim(2), k.Dim(2)
	n := lq + lk - 1

	// Row i of all has the distances in order and must be shifted left by Lq−1−i. Reading the
	// data with rows that are one element shorter does this.
	all := tensor.Reshape(t, tensor.MatMulT(t, q, r), b*h, lq*n)
	all = tensor.Slice(t, all, 1, lq-1, lq*n-1)
	position := tensor.Slice(t, tensor.Reshape(t, all, b, h, lq, n-1), 3, 0, lk)

	s := tensor.Add(t, tensor.MatMulT(t, q, k), position)
	return tensor.Scale(t, s, float32(1/math.Sqrt(float64(q.Dim(3)))))
}

// Relative positions replace only the score of a layer. The parameter of the score becomes a
// parameter of the layer.
func Example_relativePositions() {
	const lq, lk, b, width, heads = 3, 5, 2, 12, 2
	rng := rand.New(rand.NewPCG(1, 2))
	layer, err := attn.NewMultiHead(attn.MultiHeadConfig{
		Name: "decoder.0", Width: width, Heads: heads, Bias: attn.Value | attn.Out,
		Layout: attn.SequenceFirst,
		Score:  relative{r: tensor.Randn(rng, lq+lk-1, width/heads).Param()},
	}, rng)
	if err != nil {
		fmt.Println(err)
		return
	}
	q, kv := tensor.Randn(rng, lq, b, width), tensor.Randn(rng, lk, b, width) // [L B D]
	seen := make([]bool, lq*lk*b)                                             // [Lq Lk B]
	for i := range seen {
		key, sequence := i/b%lk, i%b
		seen[i] = sequence == 0 || key < 2
	}

	out := layer.Forward(nil, q, kv, kv, attn.Options{
		Mask: mask.AllowSequenceFirst(seen, lq, lk, b),
		Observers: []attn.Observer{observe.Weights(func(layer string, weights *tensor.Tensor) {
			fmt.Println(layer, weights.Shape(), "on a hidden key:", weights.At(1, 0, 0, 2))
		})},
	}).Out
	fmt.Println(out.Shape())
	for name, p := range layer.Params() {
		fmt.Print(name, p.Shape(), " ")
	}
	// Output:
	// decoder.0 [2 2 3 5] on a hidden key: 0
	// [3 2 12]
	// q.weight[12 12] k.weight[12 12] v.weight[12 12] v.bias[12] out.weight[12 12] out.bias[12] score.r[7 6]
}
