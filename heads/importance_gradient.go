package heads

import (
	"context"
	"math"
	"time"

	"github.com/attn-go/attn/tensor"
)

// gateSums are sums over the gradients d of a head's gates, one for each example.
type gateSums struct {
	absolute float64 // Σ |d|
	batches  float64 // Σ over batches of |Σ d|
	squares  float64 // Σ d²
}

// gradients measures by Gradient, Taylor and Fisher. The loss is a sum over
// examples, of which each has gates of its own, so one backward pass has the
// gradients of all of them.
func (r *ranking) gradients(ctx context.Context) error {
	total := map[string][]gateSums{}
	for _, l := range r.layers {
		total[l.Config().Name] = make([]gateSums, l.Config().Heads)
	}
	tape, asked := tensor.NewTape(tensor.Eval), map[string]bool{}
	loss, terms, examples := 0., 0, 0
	for i, n := range r.batches {
		start := time.Now()
		gates, leaves := map[string]*tensor.Tensor{}, []*tensor.Tensor{}
		for _, l := range r.layers {
			if c := l.Config(); c.Heads > 0 {
				gates[c.Name] = tensor.Full(1, n, c.Heads).Param()
				leaves = append(leaves, gates[c.Name])
			}
		}
		// The parameters are the user's: what gradients they have stays. And it
		// saves the products that would have computed them.
		tape.Only(leaves...)
		out, err := r.batch(ctx, tape, i, Pass{Gates: func(layer string) *tensor.Tensor {
			asked[layer] = true
			return gates[layer]
		}})
		if err != nil {
			return err
		}
		tape.Backward(out.Loss, nil)
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
		return nil // a gradient of that says nothing
	}
	for name, heads := range total {
		for h, s := range heads {
			r.set(Gradient, name, h, s.absolute/float64(terms))
			r.set(Taylor, name, h, s.batches/float64(terms))
			r.set(Fisher, name, h, s.squares/float64(examples))
		}
	}
	if r.options.Normalize {
		r.normalize(Gradient, Taylor, Fisher)
	}
	return nil
}

// addGates adds the gradients of a batch's gates [B H] to the sums of the heads.
func addGates(total []gateSums, gradients []float32) {
	for h := range total {
		s, batch := &total[h], 0.
		for at := h; at < len(gradients); at += len(total) {
			d := float64(gradients[at])
			s.absolute += math.Abs(d)
			s.squares += d * d
			batch += d
		}
		s.batches += math.Abs(batch)
	}
}

// normalize divides scores by their norm over the heads of a layer.
func (r *ranking) normalize(methods ...Method) {
	for _, m := range methods {
		if !r.wants(m) {
			continue
		}
		for _, values := range r.scores[m].Values {
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
}
