package prune

import (
	"context"
	"math"
	"time"

	"github.com/attn-go/attn/internal/exact"
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/tensor"
)

// gateSums are sums over the gradients d of a head's gates. There is one gradient for each example.
type gateSums struct {
	absolute exact.Sum // Σ |d|
	batches  exact.Sum // Σ over batches of |Σ d|
	squares  exact.Sum // Σ d²
}

// gradients measures by Gradient, Taylor and Fisher. The loss is a sum over examples, and each example has
// separate gates, so one backward pass computes the gradients of all of them.
func (r *ranking) gradients(ctx context.Context) error {
	total := map[string][]gateSums{}
	for _, l := range r.layers {
		total[l.Name] = make([]gateSums, l.Heads)
	}
	tape, asked := tensor.NewTape(tensor.Eval), map[string]bool{}
	loss, terms, examples := 0., 0, 0
	for i, n := range r.batches {
		start := time.Now()
		gates, leaves := map[string]*tensor.Tensor{}, []*tensor.Tensor{}
		for _, l := range r.layers {
			if l.Heads > 0 {
				gates[l.Name] = tensor.Full(1, n, l.Heads).Param()
				leaves = append(leaves, gates[l.Name])
			}
		}
		// The gradients of the parameters must not change. Skipping them also saves their matrix products.
		tape.Only(leaves...)
		out, err := r.batch(ctx, tape, i, Pass{Gates: func(layer string) *tensor.Tensor {
			asked[layer] = true
			return gates[layer]
		}})
		if err != nil {
			return err
		}
		if out.Loss.NeedsGrad() { // otherwise the loss depends on no layer
			if err := par.Stopped(func() { tape.Backward(out.Loss, nil) }); err != nil {
				return err
			}
		}
		for name, g := range gates {
			if g := g.Grad(); g != nil { // nil: the loss does not depend on the layer
				addGates(total[name], g.Data())
			}
		}
		loss, terms, examples = loss+float64(out.Loss.Item()), terms+out.Terms, examples+n
		r.ran(start, 3, Gradient, Taylor, Fisher)
	}
	if terms <= 0 {
		return errNoTerms
	}
	if err := r.wantAll(asked, "was run without its gates"); err != nil {
		return err
	}
	if math.IsNaN(loss) || math.IsInf(loss, 0) {
		return nil // the gradients are meaningless
	}
	for name, heads := range total {
		for h := range heads {
			s := &heads[h]
			r.divide(Gradient, name, h, &s.absolute, terms)
			r.divide(Taylor, name, h, &s.batches, terms)
			r.divide(Fisher, name, h, &s.squares, examples)
		}
	}
	if r.options.Normalize {
		for _, s := range r.scores {
			s.Normalize()
		}
	}
	return nil
}

// addGates adds the gradients of a batch's gates [B H] to the sums of each head.
func addGates(total []gateSums, gradients []float32) {
	for h := range total {
		s, batch := &total[h], exact.Sum{}
		for at := h; at < len(gradients); at += len(total) {
			d := float64(gradients[at])
			s.absolute.Add(math.Abs(d))
			s.squares.Add(float64(d * d)) // exact: d has 24 bits
			batch.Add(d)
		}
		s.batches.Add(math.Abs(batch.Float64()))
	}
}

// Normalize divides the values by their L2 norm over the heads of each layer, see
// ImportanceOptions.Normalize.
func (s Scores) Normalize() {
	if s.Method != Gradient && s.Method != Taylor && s.Method != Fisher {
		return
	}
	for _, values := range s.Values {
		norm := 0.
		for _, v := range values {
			norm = math.Hypot(norm, v)
		}
		if norm == 0 {
			continue
		}
		for h := range values {
			values[h] /= norm
		}
	}
}
