package attn_test

import (
	"fmt"
	"math"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/position"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
)

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

// distance is a user-defined observer: it computes the average distance that each head attends
// over. Each head has a separate entry per query, so goroutines do not conflict.
type distance struct {
	sizes attn.Sizes
	mean  [][]float64 // by head and query
}

func (d *distance) Begin(s attn.Sizes) {
	d.sizes, d.mean = s, make([][]float64, s.H)
	for h := range d.mean {
		d.mean[h] = make([]float64, s.B*s.Lq)
	}
}

func (d *distance) Row(at attn.Row, weights []float32) {
	for j, w := range weights {
		d.mean[at.Head][at.Batch*d.sizes.Lq+at.Query] += float64(w) * math.Abs(float64(at.Position-j))
	}
}

func ExampleObserver() {
	x := tensor.Zeros(1, 2, 5, 4)
	d := new(distance)
	attn.Attend(nil, x, x, x, attn.Options{
		Mask: mask.Causal(), Changes: []attn.ScoreChange{position.ALiBi(0, 10)}, Observers: []attn.Observer{d},
	})
	fmt.Printf("%.2f\n%.2f\n", d.mean[0], d.mean[1]) // the second head attends to near keys
	// Output:
	// [0.00 0.50 1.00 1.50 2.00]
	// [0.00 0.00 0.00 0.00 0.00]
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
