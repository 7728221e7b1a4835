package heads

import (
	"errors"
	"fmt"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/tensor"
)

// inspected is what a layer has told of its parts.
type inspected struct {
	rows    []inspectedRows // of each call
	heads   int             // of the model
	keys    int
	norms   []float32 // [heads keys], of all keys so far
	vectors []float32 // [heads keys E]
	scale   float32
	others  bool // its score is no dot product
}

// inspectedRows are the queries [heads n E] of one call.
type inspectedRows struct {
	n       int
	vectors []float32
}

// Inspect keeps what the options ask for besides weights. What is wrong with it is told
// by Record.
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
		r.err = fmt.Errorf("heads: layer %s: sequence %d of a batch of %d was asked for", quote.Text(layer), n, w.Dim(0))
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
	for h := range x.heads { // heads that share keys have copies
		n := p.Keys.Dim(2) * p.Keys.Dim(3)
		from := h / (x.heads / groups) * n
		x.vectors = append(x.vectors, sequence(p.Keys, r.options.Sequence)[from:from+n]...)
	}
}

// keepAgain keeps what computes the weights of a call again.
func (r *Recorder) keepAgain(layer string, p attn.Parts) error {
	o, err := r.add(layer, p.Sizes.B, p.Sizes.H, p.Sizes.Lk)
	if err != nil {
		return err
	}
	b, weights := r.options.Sequence, p.Weights // and no other part: tensors that nobody reads again would be kept
	o.steps = append(o.steps, step{rows: p.Sizes.Lq, keys: p.Sizes.Lk, again: func(head int) []float32 { return weights(b, head) }})
	o.held += p.RetainedBytes
	return nil
}

// sequence returns the part of a tensor that is of one sequence of the batch.
func sequence(x *tensor.Tensor, b int) []float32 {
	n := len(x.Data()) / x.Dim(0)
	return x.Data()[b*n : (b+1)*n]
}

// addTo gives a layer without tokens what was asked for.
func (x *inspected) addTo(l *Layer, o RecorderOptions) error {
	if !o.ValueNorms && !o.Vectors {
		return nil
	}
	if x == nil {
		return errors.New("norms or vectors are to be kept, but Inspect was not told of them")
	}
	lq, lk, kept := len(l.Queries), len(l.Keys), count(0, x.heads)
	if l.Chosen != nil {
		kept = l.Chosen
	}
	if x.keys != lk || len(kept) != l.Heads {
		return fmt.Errorf("Inspect was told of %d heads and %d keys, Observe of %d and %d", x.heads, x.keys, l.Heads, lk)
	}
	if o.ValueNorms {
		l.ValueNorms = chosen(x.norms, 1, x.heads, kept)
	}
	if !o.Vectors || x.others { // another score has nothing to multiply
		return nil
	}
	rows := 0
	for _, r := range x.rows {
		rows += r.n
	}
	if rows != lq {
		return fmt.Errorf("Inspect was told of %d queries, Observe of %d", rows, lq)
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
