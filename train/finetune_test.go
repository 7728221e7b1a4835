package train

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/probe"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/tensor"
)

// probeOf returns a probe of a model on pairs.
func probeOf(t *testing.T, m *models.Model, pairs []seq2seq.Pair) *probe.Probe {
	t.Helper()
	p, err := Probe(m, pairs)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Training gets back a part of what removed heads leave, in a model without the heads and in one with gates of 0.
func TestFineTune(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: trains")
	}
	pairs, ctx := toyPairs(64), context.Background()
	c := models.TranslatorConfig{Arch: models.Transformer, Score: "scaled", Width: 32, Heads: 4, Layers: 1, Hidden: 64, Dropout: 0.1}
	m := newToy(t, c, pairs)
	run(t, newToyTrainer(t, m, pairs, toySettings(60)))
	kept := map[string][]int{"encoder.0.self": {}, "decoder.0.self": {1}, "decoder.0.cross": {0, 1, 3}}
	var gone []prune.Head
	for layer, left := range kept {
		for h := range c.Heads {
			if !slices.Contains(left, h) {
				gone = append(gone, prune.Head{Layer: layer, Number: h})
			}
		}
	}
	gated, err := probeOf(t, m, pairs).Without(gone)
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]*probe.Probe{"cut": probeOf(t, keep(t, m, kept), pairs), "gated": gated} {
		loss := func(p *probe.Probe) float64 {
			v, err := p.Loss(ctx)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		before, steps := loss(p), 0
		other := p.On(p)
		o := Tuning{Steps: 100, Rate: 0.003, Smoothing: 0.1, Progress: func(n int) { steps = n }}
		if err := FineTune(ctx, p, p, o); err != nil {
			t.Fatal(err)
		}
		if after := loss(p); !(after < 0.8*before) || steps != 100 {
			t.Errorf("%s: loss %v before and %v after %d steps", name, before, after, steps)
		}
		if loss(other) != before {
			t.Errorf("%s: another probe of the model has changed", name)
		}
		if n := p.Layers()[0].Heads; n != 0 {
			t.Errorf("%s: the layer without heads has %d", name, n)
		}
		// Heads that are removed do not learn.
		for i, l := range p.Model().Attention() {
			was, left := m.Attention()[i], kept[l.Config().Name]
			if name == "gated" && len(left) < c.Heads {
				lost := 0
				for slices.Contains(left, lost) {
					lost++
				}
				size := l.Config().HeadSize * c.Width
				if !slices.Equal(l.Q.Weight.Data()[lost*size:][:size], was.Q.Weight.Data()[lost*size:][:size]) {
					t.Errorf("removed head %d of %s has learnt", lost, l.Config().Name)
				}
			}
		}
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	p := probeOf(t, m, pairs)
	for _, err := range []error{
		FineTune(ctx, p, p, Tuning{Steps: -1, Rate: 1}), FineTune(ctx, p, p, Tuning{Steps: 3}),
		FineTune(ctx, p, p, Tuning{Steps: 3, Rate: 1, Smoothing: 1}), FineTune(ended, p, p, Tuning{Steps: 3, Rate: 1}),
	} {
		if err == nil {
			t.Error("no error")
		}
	}
}

// Only the chosen parameters change, and the others take no gradient.
func TestOutputMaps(t *testing.T) {
	pairs, ctx := toyPairs(16), context.Background()
	m := newToy(t, models.TranslatorConfig{Arch: models.Transformer, Score: "scaled", Width: 32, Heads: 4, Layers: 1, Hidden: 64}, pairs)
	p, err := probeOf(t, m, pairs).Without([]prune.Head{{Layer: "encoder.0.self", Number: 1}})
	if err != nil {
		t.Fatal(err)
	}
	tuned, err := p.Without(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := FineTune(ctx, tuned, p, Tuning{Steps: 5, Rate: 0.01, Params: OutputMaps}); err != nil {
		t.Fatal(err)
	}
	before := map[string]*tensor.Tensor{}
	for name, x := range m.Params() {
		before[name] = x
	}
	changed, same := 0, 0
	for name, x := range tuned.Model().Params() {
		if strings.HasSuffix(name, ".k.bias") { // softmax does not depend on it: only rounding moves it
			continue
		}
		open := x.Rank() == 1 || strings.Contains(name, ".out.") && !strings.Contains(name, ".ff.")
		if moved := !slices.Equal(x.Data(), before[name].Data()); moved != open {
			t.Errorf("%s: changed %v, want %v", name, moved, open)
		} else if moved {
			changed++
		} else {
			same++
		}
	}
	if changed == 0 || same == 0 {
		t.Errorf("%d parameters have changed, %d have not", changed, same)
	}
}

// Each of a given number of steps has an effect, including the last. Smoothed labels give another result.
func TestFineTuneLastStep(t *testing.T) {
	pairs := toyPairs(16)
	m := newToy(t, headed()[0], pairs)
	after := func(smoothing float32) (all [][]float32) {
		p := probeOf(t, m, pairs)
		weights := func() (all []float32) {
			for _, x := range p.Model().Params() {
				all = append(all, x.Data()...)
			}
			return all
		}
		before := weights()
		err := FineTune(context.Background(), p, p, Tuning{Steps: 3, Rate: 0.003, Smoothing: smoothing, Progress: func(step int) {
			all = append(all, weights())
			if slices.Equal(before, all[len(all)-1]) {
				t.Errorf("step %d of 3 is idle", step)
			}
			before = all[len(all)-1]
		}})
		if err != nil || len(all) != 3 {
			t.Errorf("%d steps, error %v", len(all), err)
		}
		return all
	}
	if slices.Equal(after(0)[2], after(0.1)[2]) {
		t.Error("smoothed labels make no difference")
	}
}
