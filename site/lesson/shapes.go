package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/tensor"
)

func init() { handle("shapes.steps", shapesSteps) }

// shownSequences is how many sequences of a batch a page gets; the shapes are those of all.
const shownSequences = 2

// shaped is one array of the computation.
type shaped struct {
	Step  string   `json:"step"`
	Name  string   `json:"name"`
	Axes  []string `json:"axes"`  // "B", "H", "Lq", "Lk", "D", "E", or "B·H"
	Shape []int    `json:"shape"` // of the whole array
	Shown []int    `json:"shown"` // of the data, in which masked scores are null
	Data  brief    `json:"data"`
}

// arrays collects what the page shows.
type arrays []shaped

// add adds an array, whose data are those of the first sequences.
func (list *arrays) add(step, name string, x *tensor.Tensor, axes ...string) {
	cut := x
	for axis, letter := range axes {
		switch n := x.Dim(axis); letter {
		case "B":
			cut = tensor.Slice(nil, cut, axis, 0, min(n, shownSequences))
		case "B·H":
			batch := (*list)[0].Shape[0]
			cut = tensor.Slice(nil, cut, axis, 0, n/batch*min(batch, shownSequences))
		}
	}
	*list = append(*list, shaped{step, name, axes, x.Shape(), cut.Shape(), cut.Data()})
}

// shapesSteps computes multi-head attention one operation at a time. Each operation is one of the library, and their
// result is compared with that of the layer.
func shapesSteps(_ context.Context, a struct {
	Batch   int    `json:"batch"`
	Heads   int    `json:"heads"`
	Queries int    `json:"queries"`
	Keys    int    `json:"keys"`
	Width   int    `json:"width"`
	Lengths []int  `json:"lengths"` // valid keys of the first sequences; the others have all
	Ones    bool   `json:"ones"`    // all inputs are 1; otherwise they are random
	Seed    uint64 `json:"seed"`
}, _ func(any)) (any, error) {
	if min(a.Batch, a.Queries, a.Keys) < 1 || max(a.Batch, a.Queries, a.Keys, a.Heads) > 64 || a.Width > 512 {
		return nil, fmt.Errorf("%d sequences of %d queries and %d keys, %d heads, width %d: want 1 to 64, and a width of at most 512",
			a.Batch, a.Queries, a.Keys, a.Heads, a.Width)
	}
	rng := rand.New(rand.NewPCG(a.Seed, 8))
	layer, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: a.Width, Heads: a.Heads}, rng)
	if err != nil {
		return map[string]any{"refused": err.Error()}, nil
	}
	lengths := make([]int, a.Batch)
	for b := range lengths {
		if lengths[b] = a.Keys; b < len(a.Lengths) {
			lengths[b] = max(0, min(a.Lengths[b], a.Keys))
		}
	}
	x, y := tensor.Randn(rng, a.Batch, a.Queries, a.Width), tensor.Randn(rng, a.Batch, a.Keys, a.Width)
	if a.Ones {
		x, y = tensor.Full(1, x.Shape()...), tensor.Full(1, y.Shape()...)
	}
	var list arrays
	list.add("input", "x", x, "B", "Lq", "D")
	list.add("input", "y", y, "B", "Lk", "D")

	q, k, v := layer.Q.Forward(nil, x), layer.K.Forward(nil, y), layer.V.Forward(nil, y)
	list.add("project", "q", q, "B", "Lq", "D")
	list.add("project", "k", k, "B", "Lk", "D")
	list.add("project", "v", v, "B", "Lk", "D")

	size := a.Width / a.Heads
	split := func(name, length string, x *tensor.Tensor) *tensor.Tensor {
		x = tensor.Reshape(nil, x, a.Batch, x.Dim(1), a.Heads, size)
		list.add("split", name, x, "B", length, "H", "E")
		return tensor.Transpose(nil, x, 0, 2, 1, 3)
	}
	q, k, v = split("q", "Lq", q), split("k", "Lk", k), split("v", "Lk", v)
	list.add("order", "q", q, "B", "H", "Lq", "E")
	list.add("order", "k", k, "B", "H", "Lk", "E")
	list.add("order", "v", v, "B", "H", "Lk", "E")

	o := attn.Options{Mask: mask.Lengths(lengths...), Weights: true}
	list.add("score", "scores", attn.Scores(nil, q, k, attn.Options{}), "B", "H", "Lq", "Lk")
	list.add("mask", "scores", attn.Scores(nil, q, k, o), "B", "H", "Lq", "Lk")
	heads := attn.Attend(nil, q, k, v, o)
	list.add("softmax", "weights", heads.Weights, "B", "H", "Lq", "Lk")
	list.add("mix", "heads", heads.Out, "B", "H", "Lq", "E")

	joined := tensor.Reshape(nil, tensor.Transpose(nil, heads.Out, 0, 2, 1, 3), a.Batch, a.Queries, a.Width)
	list.add("join", "joined", joined, "B", "Lq", "D")
	out := layer.Out.Forward(nil, joined)
	list.add("out", "out", out, "B", "Lq", "D")

	whole, difference := layer.Forward(nil, x, y, y, o).Out, 0.0
	for i, v := range whole.Data() {
		difference = max(difference, math.Abs(float64(v)-float64(out.Data()[i])))
	}

	// The same weights in the order of other code. Heads of a batch as one axis: the layers of "Dive into Deep Learning".
	// The sequence first and the heads last: the layers of labml.ai.
	w := heads.Weights
	list.add("attn", "weights", w, "B", "H", "Lq", "Lk")
	list.add("d2l", "weights", tensor.Reshape(nil, w, a.Batch*a.Heads, a.Queries, a.Keys), "B·H", "Lq", "Lk")
	list.add("labml", "weights", tensor.Transpose(nil, w, 2, 3, 0, 1), "Lq", "Lk", "B", "H")
	return map[string]any{"arrays": list, "lengths": lengths, "difference": real(difference)}, nil
}
