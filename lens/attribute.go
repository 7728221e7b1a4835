package lens

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
)

// gradients are the values of a run and the gradients of its metric.
type gradients struct {
	values values                    // [B H L N], or [B L N] of a block; B copies of the text
	zeros  map[string]*tensor.Tensor // what is added to the weights of a layer, whose gradient is theirs
	metric float64
}

// backward runs copies of a text, and the backward pass of the sum of their metrics, on a tape that records. No gradient of
// a parameter is computed. begin, if not nil, returns what the first block of a stack reads in place of x.
func (l *Lens) backward(t *tensor.Tape, x models.Batch, wanted map[Part]bool, begin attn.Edit) *gradients {
	g := &gradients{values: values{}, zeros: map[string]*tensor.Tensor{}}
	leaves := []*tensor.Tensor{tensor.Zeros(1).Param()}
	t.Only(leaves...) // until the first block, nothing
	layers := l.model.HeadLayers()
	keep := func(layer string, p Part) attn.Edit {
		if !wanted[p] || lacks(layers, layer, p) {
			return nil
		}
		return func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
			if p == Pattern {
				// Adding zeros leaves the way from the weights to queries and keys, and has a gradient.
				g.zeros[layer] = tensor.Zeros(x.Shape()...).Param()
				leaves = append(leaves, g.zeros[layer])
				t.Only(leaves...)
				x = tensor.Add(t, x, g.zeros[layer])
			}
			g.values.put(layer, p, x)
			return x
		}
	}
	r := models.Run{}
	setEdits(&r, keep)
	inner := r.Blocks
	r.Blocks = func(block string) models.BlockEdits {
		e := inner(block)
		if block != "encoder.0" && block != "decoder.0" {
			return e
		}
		next := e.Input
		e.Input = func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
			if begin != nil {
				x = begin(t, x)
			}
			x = x.Clone().Param()
			leaves = append(leaves, x)
			if t.Only(leaves...); next != nil {
				x = next(t, x)
			}
			return x
		}
		return e
	}
	y := l.metric.Values(t, l.model, l.model.Hidden(t, x, r), x)
	if !y.NeedsGrad() {
		panic(&tensor.ValueError{Op: "lens: Attribute", Arg: "model", Got: "without blocks, or with a metric that no block changes", Want: "a transformer"})
	}
	g.metric = float64(y.Data()[0])
	t.Backward(y, tensor.New(slices.Repeat([]float32{1}, y.Len()), y.Shape()...))
	return g
}

// of returns the values and the gradient of a site: [H L N], or [L N] of a block.
func (g *gradients) of(at Site) (values, gradient []float32, n, positions int, err error) {
	x := g.values[at.owner()][at.Part]
	if x == nil {
		return nil, nil, 0, 0, fmt.Errorf("lens: %s: the model has none", at)
	}
	n, positions = x.Dim(-1), x.Dim(-2)
	from := x
	if at.Part == Pattern {
		from = g.zeros[at.Layer]
	}
	gradient = make([]float32, n*positions)
	if d := from.Grad(); d != nil {
		gradient = d.Data()[at.Head*n*positions:][:n*positions]
	}
	return x.Data()[at.Head*n*positions:][:n*positions], gradient, n, positions, nil
}

// Attribute estimates the effects of putting a source's values in sites to first order, Σ (value − own)·∂metric/∂own, for
// all sites from one backward pass. Metric is base plus the estimate.
//
// A changed query or key goes through the softmax again (AtP*): its effect is Σ (weights' − weights)·∂metric/∂weights. This
// needs a model that Resumes and layers with a softmax; others are estimated to first order.
//
// The estimate is wrong where the metric is not linear: where a softmax is saturated it can have the wrong sign. Compare it
// with Effects.
//
// Errors: those of Effects; a model that is packed for inference, see models.Options.Trainable.
//
// Source: Nanda, "Attribution Patching", 2023; Kramár et al., "AtP*: An efficient and scalable method for localizing LLM
// behaviour to components", 2024, https://arxiv.org/abs/2403.00745.
func (l *Lens) Attribute(ctx context.Context, x models.Batch, from Source, sites []Site) (base float64, all []Effect, err error) {
	if err := cmp.Or(l.model.WantTrainable("lens: Attribute"), l.check(x, sites...)); err != nil {
		return 0, nil, err
	}
	t, wanted := tape(ctx, tensor.Eval), map[Part]bool{}
	for _, s := range sites {
		wanted[s.Part] = true
	}
	again := models.Resumes(l.model) && (wanted[Query] || wanted[Key])
	if again {
		wanted[Pattern], wanted[Residual] = true, true
	}
	var g *gradients
	if err := tensor.Catch(func() { g = l.backward(t, x, wanted, nil) }); err != nil {
		return 0, nil, err
	}
	all = make([]Effect, len(sites))
	var softmax []int // sites that go through it again
	for i, s := range sites {
		c, err := from.Change(s)
		if err != nil {
			return 0, nil, err
		}
		if (s.Part == Query || s.Part == Key) && again && g.zeros[s.Layer] != nil {
			softmax = append(softmax, i)
			continue
		}
		own, gradient, n, positions, err := g.of(s)
		if err != nil {
			return 0, nil, err
		}
		sum := 0.
		for p := range positions {
			if s.Position != All && s.Position != p {
				continue
			}
			value := c.row(p, n)
			for j := range n {
				d := -own[p*n+j]
				if value != nil {
					d += value[j]
				}
				sum += float64(float64(d) * float64(gradient[p*n+j]))
			}
		}
		all[i] = Effect{s, "attribution", g.metric + sum, sum}
	}
	err = tensor.Catch(func() { err = l.throughSoftmax(ctx, x, g, from, sites, softmax, all) })
	return g.metric, all, err
}

// throughSoftmax sets the effects of changed queries and keys. Those of different heads of a layer do not meet in it, so
// they change one run of its block, unless the layer normalises them together.
func (l *Lens) throughSoftmax(
	ctx context.Context, x models.Batch, g *gradients, from Source, sites []Site, list []int, all []Effect,
) error {
	together := map[string]bool{} // layers that normalise all heads as one vector
	for _, layer := range l.model.Attention() {
		c := layer.Config()
		together[c.Name] = c.NormProjections
	}
	groups := map[Site][]int{}
	for _, i := range list {
		at := sites[i]
		if !together[at.Layer] {
			at.Head = All
		}
		groups[at] = append(groups[at], i)
	}
	t := tape(ctx, tensor.Infer)
	for at, members := range groups {
		e := edits{}
		for _, i := range members {
			c, err := from.Change(sites[i])
			if err != nil {
				return err
			}
			e.add(0, []Change{c})
		}
		name, block := sites[members[0]].block()
		r := models.Run{From: block, To: block + 1, Input: g.values[name][Residual].Detach()}
		e.set(&r, 0)
		inner, next := r.Edits, []float32(nil)
		r.Edits = func(layer string) attn.Edits {
			y := inner(layer)
			if layer == at.Layer {
				y.Weights = func(_ *tensor.Tape, w *tensor.Tensor) *tensor.Tensor {
					next = w.Clone().Data()
					return w
				}
			}
			return y
		}
		l.model.Hidden(t, x, r)
		t.Reset()
		weights := g.values[at.Layer][Pattern]
		own, slope := weights.Data(), g.zeros[at.Layer].Grad()
		h, each := weights.Dim(1), weights.Dim(2)*weights.Dim(3)
		for _, i := range members {
			first, count := sites[i].Head, 1
			if at.Part == Key {
				count = h / g.values[at.Layer][Key].Dim(1)
				first *= count
			}
			if together[at.Layer] {
				first, count = 0, h
			}
			sum := 0.
			for j := first * each; j < (first+count)*each && slope != nil; j++ {
				sum += float64(float64(next[j]-own[j]) * float64(slope.Data()[j]))
			}
			all[i] = Effect{sites[i], "attribution", g.metric + sum, sum}
		}
	}
	return nil
}
