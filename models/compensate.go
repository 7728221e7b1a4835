package models

import (
	"context"
	"fmt"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/tensor"
)

// Compensate changes the output maps of the layers that have lost heads, without training: see prune.Compensation. Maps are
// solved on the examples of p and chosen between on those of another probe for the same task, layer after layer, so that a
// later layer makes up for what earlier ones have become. p gets its own copy of the model, so other probes of the model do
// not change.
//
// Errors: those of Change; outputs of heads that are not finite; if ctx ends, ctx.Err().
func (p *Probe) Compensate(ctx context.Context, choose *Probe, how prune.Compensation) error {
	return p.Change(func(m *Model) error {
		for _, l := range m.Attention() {
			c := l.Config()
			left := p.kept[c.Name]
			if p.kept == nil || len(left) == c.Heads {
				continue
			}
			fit, err := p.outputsOf(ctx, c)
			if err != nil {
				return err
			}
			check, err := p.On(choose).outputsOf(ctx, c)
			if err != nil {
				return err
			}
			kept := make([]bool, c.Heads*c.ValueSize)
			for _, h := range left {
				for i := range c.ValueSize {
					kept[h*c.ValueSize+i] = true
				}
			}
			err = how(prune.OutputMap{Weight: l.Out.Weight, Bias: l.Out.Bias, Kept: kept, Fit: fit, Choose: check})
			if err != nil {
				return fmt.Errorf("models: Compensate: layer %s: %w", quote.Text(c.Name), err)
			}
		}
		return nil
	})
}

// outputsOf returns the moments of the outputs of a layer's heads, with all of its heads and without those that other layers
// have lost.
func (p *Probe) outputsOf(ctx context.Context, c attn.MultiHeadConfig) (*prune.Moments, error) {
	sum := prune.NewMoments(c.Heads * c.ValueSize)
	return sum, p.each(ctx, func(t *tensor.Tape, i int) {
		b := &p.batches[i]
		lens := b.queries(c.Name)
		r, done := Run{Gates: p.gates(t, nil)}, 0
		r.Inspect = func(layer string, parts attn.Parts) {
			if layer != c.Name {
				return
			}
			x := parts.Outputs() // [B H l V], queries done to done+l of each sequence
			l := x.Dim(2)
			var rows []float32
			for s, n := range lens {
				for q := range min(l, max(0, n-done)) {
					for h := range c.Heads {
						rows = append(rows, x.Data()[((s*c.Heads+h)*l+q)*c.ValueSize:][:c.ValueSize]...)
					}
				}
			}
			sum.Add(rows)
			done += l
		}
		p.model.Hidden(t, b.x, r)
	})
}

// queries returns the number of a layer's queries in each sequence.
func (b *probeBatch) queries(layer string) []int {
	if kind, _ := heads.Place(layer); b.x.Targets != nil && kind != heads.Encoder {
		return Batch{IDs: b.x.Targets}.Lens()
	}
	return b.x.Lens()
}
