package models

import (
	"context"
	"fmt"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/tensor"
)

// Compensate changes the output maps of the layers that have lost heads, without training: see prune.Compensation. Maps are
// solved on one half of the examples and checked on the other, layer after layer, so that a later layer makes up for what
// earlier ones have become. p gets its own copy of the model, so other probes of the model do not change.
//
// Errors: those of Change; outputs of heads that are not finite; if ctx ends, ctx.Err().
func (p *Probe) Compensate(ctx context.Context, how prune.Compensation) error {
	return p.Change(func(m *Model) error {
		for _, l := range m.Attention() {
			c := l.Config()
			left := p.kept[c.Name]
			if p.kept == nil || len(left) == c.Heads {
				continue
			}
			halves, err := p.outputsOf(ctx, c)
			if err != nil {
				return err
			}
			kept := make([]bool, c.Heads*c.ValueSize)
			for _, h := range left {
				for i := range c.ValueSize {
					kept[h*c.ValueSize+i] = true
				}
			}
			err = how(prune.OutputMap{Weight: l.Out.Weight, Bias: l.Out.Bias, Kept: kept, Fit: halves[0], Check: halves[1]})
			if err != nil {
				return fmt.Errorf("models: Compensate: layer %s: %w", quote.Text(c.Name), err)
			}
		}
		return nil
	})
}

// outputsOf returns the moments of the outputs of a layer's heads on the two halves of the examples, with all of its heads
// and without those that other layers have lost. It runs the model as far as this layer.
func (p *Probe) outputsOf(ctx context.Context, c attn.MultiHeadConfig) (halves [2]*prune.Moments, err error) {
	for i := range halves {
		halves[i] = prune.NewMoments(c.Heads * c.ValueSize)
	}
	enough, stop := context.WithCancel(ctx)
	stop()
	return halves, p.each(ctx, func(t *tensor.Tape, i int) {
		b := &p.batches[i]
		lens := b.queries(c.Name)
		r, done := Run{Gates: p.gates(t, nil)}, 0
		r.Inspect = func(layer string, parts attn.Parts) {
			if layer != c.Name {
				return
			}
			x := parts.Outputs() // [B H l V], queries done to done+l of each sequence
			l := x.Dim(2)
			var rows [2][]float32
			for s, n := range lens {
				half := &rows[b.examples[s%len(b.examples)]%2]
				for q := range min(l, max(0, n-done)) {
					for h := range c.Heads {
						*half = append(*half, x.Data()[((s*c.Heads+h)*l+q)*c.ValueSize:][:c.ValueSize]...)
					}
				}
			}
			for i, r := range rows {
				halves[i].Add(r)
			}
			if done += l; done >= slices.Max(lens) {
				par.Check(enough) // later layers need not run
			}
		}
		_ = par.Stopped(func() { p.model.Hidden(t, b.x, r) })
		par.Check(ctx)
	})
}

// queries returns the number of a layer's queries in each sequence.
func (b *probeBatch) queries(layer string) []int {
	if kind, _ := heads.Place(layer); b.x.Targets != nil && kind != heads.Encoder {
		return Batch{IDs: b.x.Targets}.Lens()
	}
	return b.x.Lens()
}
