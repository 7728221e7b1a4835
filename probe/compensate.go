package probe

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/tensor"
)

// Compensate changes the output maps of the layers that have lost heads, without training: see prune.Compensation. Maps are
// solved on one half of the examples and checked on the other, layer after layer, so that a later layer makes up for what
// earlier ones have become. p gets its own copy of the model, so other probes of the model do not change.
//
// Errors: those of Change; outputs of heads that are not finite; if ctx ends, ctx.Err().
func (p *Probe) Compensate(ctx context.Context, how prune.Compensation) error {
	return p.Change(func(m *models.Model) error {
		for _, l := range m.HeadLayers() {
			left := p.kept[l.Name]
			if p.kept == nil || len(left) == l.Heads {
				continue
			}
			// The outputs of all of its heads, without those that other layers have lost.
			n := l.Out.Weight.Dim(1)
			halves := [2]*prune.Moments{prune.NewMoments(n), prune.NewMoments(n)}
			err := p.outputs(ctx, []string{l.Name}, func(_ string, rows [2][]float32) {
				for i, r := range rows {
					halves[i].Add(r)
				}
			})
			if err != nil {
				return err
			}
			kept := make([]bool, n)
			for i := range kept {
				kept[i] = slices.Contains(left, i*l.Heads/n)
			}
			err = how(prune.OutputMap{
				Weight: l.Out.Weight, Bias: l.Out.Bias, Kept: kept, Fit: halves[0], Check: halves[1], Context: ctx,
			})
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				return fmt.Errorf("probe: Compensate: layer %s: %w", quote.Text(l.Name), err)
			}
		}
		return nil
	})
}

// Centered returns a probe of an equal model, in which the mean output of each head over the examples is 0, because its bias
// is in the layer's: a head that is removed leaves its mean, not 0. Scores, losses and curves of this probe are then worth
// what the outputs do beyond their means. Layers without biases of V and of the output map stay as they are, and so do those
// of grouped keys and values, whose heads share a bias, and those with an OutputGate, which multiplies it.
//
// Errors: those of Change; outputs of heads that are not finite; if ctx ends, ctx.Err().
//
// Source: Li and Janson, "Optimal ablation for interpretability", 2024, https://arxiv.org/abs/2409.09951, which says
// why 0 overstates what a head is worth.
func (p *Probe) Centered(ctx context.Context) (*Probe, error) {
	all, err := p.Without(nil)
	if err != nil {
		return nil, err
	}
	return all, all.Change(func(m *models.Model) error {
		var layers []*attn.MultiHead
		sums, counts := map[string][]float64{}, map[string]int{}
		for _, l := range m.Attention() {
			if c := l.Config(); c.Heads > 0 && c.Heads == c.KVHeads && l.Gate == nil && l.V.Bias != nil && l.Out.Bias != nil {
				layers = append(layers, l)
				sums[c.Name] = make([]float64, c.Heads*c.ValueSize)
			}
		}
		if len(layers) == 0 {
			return ctx.Err()
		}
		err := all.outputs(ctx, slices.Collect(maps.Keys(sums)), func(layer string, halves [2][]float32) {
			sum := sums[layer]
			for _, rows := range halves {
				for i, v := range rows {
					sum[i%len(sum)] += float64(v)
				}
				counts[layer] += len(rows) / len(sum)
			}
		})
		if err != nil {
			return err
		}
		for _, l := range layers {
			c := l.Config()
			mean := tensor.Zeros(1, c.Heads*c.ValueSize)
			for _, h := range all.Kept()[c.Name] {
				for i := h * c.ValueSize; i < (h+1)*c.ValueSize; i++ {
					v := sums[c.Name][i] / float64(counts[c.Name])
					if math.IsNaN(v) || math.IsInf(v, 0) {
						return fmt.Errorf("probe: Centered: layer %s: the outputs of its heads are not finite", quote.Text(c.Name))
					}
					mean.Data()[i] = float32(v)
					l.V.Bias.Data()[i] -= float32(v)
				}
			}
			copy(l.Out.Bias.Data(), l.Out.Forward(nil, mean).Data())
		}
		return nil
	})
}

// outputs calls add with outputs [N H·V] of all heads of some layers, in the two halves of the examples. It runs the model
// as far as the last of these layers.
func (p *Probe) outputs(ctx context.Context, layers []string, add func(layer string, halves [2][]float32)) error {
	enough, stop := context.WithCancel(ctx)
	stop()
	return p.each(ctx, func(t *tensor.Tape, i int) {
		b := &p.batches[i]
		r, done, open := models.Run{Gates: p.gates(t, nil)}, map[string]int{}, slices.Clone(layers)
		r.Inspect = func(layer string, parts attn.Parts) {
			if !slices.Contains(open, layer) {
				return
			}
			x, lens := parts.Outputs(), b.queries(layer) // [B H l V], queries done to done+l of each sequence
			heads, l, size := x.Dim(1), x.Dim(2), x.Dim(3)
			var rows [2][]float32
			for s, n := range lens {
				half := &rows[b.examples[s%len(b.examples)]%2]
				for q := range min(l, max(0, n-done[layer])) {
					for h := range heads {
						*half = append(*half, x.Data()[((s*heads+h)*l+q)*size:][:size]...)
					}
				}
			}
			add(layer, rows)
			if done[layer] += l; done[layer] >= slices.Max(lens) {
				open = slices.DeleteFunc(open, func(name string) bool { return name == layer })
			}
			if len(open) == 0 {
				par.Check(enough) // later layers need not run
			}
		}
		_ = par.Stopped(func() { p.model.Hidden(t, b.x, r) })
		par.Check(ctx)
	})
}

// queries returns the number of a layer's queries in each sequence.
func (b *batch) queries(layer string) []int {
	if kind, _ := heads.Place(layer); b.x.Targets != nil && kind != heads.Encoder {
		return lens(b.x.Targets)
	}
	return b.x.Lens()
}
