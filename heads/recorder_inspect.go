package heads

import (
	"errors"
	"fmt"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/tensor"
)

// inspected has the parts that Inspect received for a layer.
type inspected struct {
	rows    []inspectedRows // one entry per call
	heads   int             // of the model
	keys    int
	norms   []float32 // [heads keys], of all keys so far
	vectors []float32 // [heads keys E]
	scale   float32
	others  bool // the score is not a dot product
}

// inspectedRows are the queries [heads n E] of one call.
type inspectedRows struct {
	n       int
	vectors []float32
}

// Inspect keeps the data besides weights that the options select. Record returns its errors.
func (r *Recorder) Inspect(layer string, p attn.Parts) {
	if r.options.OnRequest && r.keeps(layer) {
		if err := r.keepAgain(layer, p); err != nil {
			r.err = fmt.Errorf("heads: layer %s: %w", quote.Text(layer), err)
		}
	}
	if r.err != nil || !r.options.ValueNorms && !r.options.Vectors || r.options.Layers != nil && !r.options.Layers(layer) {
		return
	}
	w := p.ValueNorms
	if n := r.options.Sequence; n < 0 || n >= w.Dim(0) {
		r.err = fmt.Errorf("heads: layer %s: sequence %d, but the batch has %d", quote.Text(layer), n, w.Dim(0))
		return
	}
	x := r.parts[layer]
	if x == nil {
		x = &inspected{heads: w.Dim(1)}
		r.parts[layer] = x
	}
	x.heads, x.keys = w.Dim(1), w.Dim(2)
	x.norms = slices.Clone(sequence(w, r.options.Sequence))
	if !r.options.Vectors {
		return
	}
	if p.Queries == nil {
		x.others = true
		return
	}
	x.rows = append(x.rows, inspectedRows{p.Queries.Dim(2), slices.Clone(sequence(p.Queries, r.options.Sequence))})
	x.scale, x.vectors = p.Scale, nil
	groups := p.Keys.Dim(1)
	for h := range x.heads { // heads that share keys get copies
		n := p.Keys.Dim(2) * p.Keys.Dim(3)
		from := h / (x.heads / groups) * n
		x.vectors = append(x.vectors, sequence(p.Keys, r.options.Sequence)[from:from+n]...)
	}
}

// keepAgain keeps the function that computes the weights of a call again.
func (r *Recorder) keepAgain(layer string, p attn.Parts) error {
	o, err := r.add(layer, p.Sizes.B, p.Sizes.H, p.Sizes.Lk)
	if err != nil {
		return err
	}
	b, weights := r.options.Sequence, p.Weights // keep no other part: it would keep unused tensors alive
	o.steps = append(o.steps, step{p.Sizes.Lq, p.Sizes.Lk, func(i int) []float32 { return weights(b, o.chosen[i]) }})
	o.held += p.RetainedBytes
	return nil
}

// sequence returns the part of a tensor that belongs to sequence b of the batch.
func sequence(x *tensor.Tensor, b int) []float32 {
	n := len(x.Data()) / x.Dim(0)
	return x.Data()[b*n : (b+1)*n]
}

// addTo adds the selected data to a layer without tokens.
func (x *inspected) addTo(l *Layer, o RecorderOptions) error {
	if !o.ValueNorms && !o.Vectors {
		return nil
	}
	if x == nil {
		return errors.New("ValueNorms or Vectors is set, but Inspect was not called")
	}
	lq, lk, kept := len(l.Queries), len(l.Keys), count(0, x.heads)
	if l.Chosen != nil {
		kept = l.Chosen
	}
	if x.keys != lk || len(kept) != l.Heads {
		return fmt.Errorf("Inspect received %d heads and %d keys, Observe received %d and %d", x.heads, x.keys, l.Heads, lk)
	}
	if o.ValueNorms {
		l.ValueNorms = chosen(x.norms, 1, x.heads, kept)
	}
	if !o.Vectors || x.others { // another kind of score has no queries and keys to multiply
		return nil
	}
	rows := 0
	for _, r := range x.rows {
		rows += r.n
	}
	if rows != lq {
		return fmt.Errorf("Inspect received %d queries, Observe received %d", rows, lq)
	}
	l.QueryVectors = make([]float32, 0, len(kept)*rows*len(x.vectors)/max(1, x.heads*x.keys))
	for _, h := range kept {
		for _, r := range x.rows {
			n := len(r.vectors) / x.heads
			l.QueryVectors = append(l.QueryVectors, r.vectors[h*n:(h+1)*n]...)
		}
	}
	l.KeyVectors, l.ScoreScale = chosen(x.vectors, 1, x.heads, kept), x.scale
	return nil
}
