package heads

import (
	"errors"
	"fmt"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/tensor"
)

// Inspect keeps the data besides weights that the options select. Record returns its errors.
func (r *Recorder) Inspect(layer string, p attn.Parts) {
	if !r.keeps(layer) || !r.options.OnRequest && !r.options.ValueNorms && !r.options.Vectors {
		return
	}
	if err := r.inspect(layer, p); err != nil {
		r.err = fmt.Errorf("heads: layer %s: %w", quote.Text(layer), err)
	}
}

func (r *Recorder) inspect(layer string, p attn.Parts) error {
	o, err := r.add(layer, p.Sizes.B, p.Sizes.H, p.Sizes.Lk)
	if err != nil {
		return err
	}
	o.signed = p.Sizes.Signed
	b := r.options.Sequence
	if r.options.OnRequest {
		weights, chosen := p.Weights, o.chosen // keep no other part: it would keep unused tensors alive
		o.steps = append(o.steps, step{p.Sizes.Lq, p.Sizes.Lk, func(i int) []float32 { return weights(b, chosen[i]) }})
		o.held += p.RetainedBytes
	}
	o.inspected = true
	if r.options.ValueNorms {
		norms := p.ValueNorms()
		o.norms = nil
		for _, h := range o.chosen {
			o.norms = append(o.norms, headIn(norms, b, h)...)
		}
	}
	if !r.options.Vectors || p.Queries == nil { // another kind of score has no queries and keys to multiply
		return nil
	}
	o.scale, o.keys = p.Scale, nil
	sharing := p.Sizes.H / p.Keys.Dim(1)
	for i, h := range o.chosen {
		o.queries[i] = append(o.queries[i], headIn(p.Queries, b, h)...)
		o.keys = append(o.keys, headIn(p.Keys, b, h/sharing)...) // heads that share keys get copies
	}
	return nil
}

// headIn returns the part of a tensor [B H …] that belongs to head h of sequence b.
func headIn(x *tensor.Tensor, b, h int) []float32 {
	n := len(x.Data()) / max(1, x.Dim(0)*x.Dim(1))
	return x.Data()[(b*x.Dim(1)+h)*n:][:n]
}

// addTo adds the selected data to a layer without tokens.
func (o *observed) addTo(l *Layer, options RecorderOptions) error {
	if !options.ValueNorms && !options.Vectors {
		return nil
	}
	if !o.inspected {
		return errors.New("ValueNorms or Vectors is set, but Inspect was not called")
	}
	l.ValueNorms = slices.Clone(o.norms)
	if o.keys != nil {
		l.QueryVectors, l.KeyVectors, l.ScoreScale = slices.Concat(o.queries...), slices.Clone(o.keys), o.scale
	}
	if err := l.validateVectors(); err != nil {
		return fmt.Errorf("Inspect and Observe received different calls: %w", err)
	}
	return nil
}
