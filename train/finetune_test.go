package train

import (
	"context"
	"slices"
	"testing"

	"github.com/attn-go/attn/models"
)

// Training a part of what removed heads leave is enough.
func TestFineTune(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: trains")
	}
	pairs, ctx := toyPairs(64), context.Background()
	c := models.TranslatorConfig{Arch: models.Transformer, Score: "scaled", Width: 32, Heads: 4, Layers: 1, Hidden: 64, Dropout: 0.1}
	m := newToy(t, c, pairs)
	run(t, newToyTrainer(t, m, pairs, toySettings(60)))
	small := keep(t, m, map[string][]int{"encoder.0.self": {}, "decoder.0.self": {1}, "decoder.0.cross": {0, 1, 3}})
	before, err := Loss(ctx, small, pairs)
	if err != nil {
		t.Fatal(err)
	}
	var seen []Progress
	settings := toySettings(0) // ignored
	if err := FineTune(ctx, small, pairs, settings, 100, func(p Progress) { seen = append(seen, p) }); err != nil {
		t.Fatal(err)
	}
	last := seen[len(seen)-1]
	if len(seen) != 100 || last.Epoch != 13 || last.Epochs != 13 || last.Step != 4 {
		t.Errorf("%d steps, the last of which %+v, want 100 of 8 an epoch", len(seen), last)
	}
	after, err := Loss(ctx, small, pairs)
	if err != nil || !(after < 0.8*before) {
		t.Errorf("loss %v before and %v after, %v", before, after, err)
	}
	if n := small.Attention()[0].Config().Heads; n != 0 {
		t.Errorf("the layer without heads has %d", n)
	}

	// Heads of zeros do not learn: they get no gradient.
	large := small.Expand()
	if err := FineTune(ctx, large, pairs, settings, 5, nil); err != nil {
		t.Fatal(err)
	}
	again := keep(t, large, map[string][]int{"encoder.0.self": {}, "decoder.0.self": {1}, "decoder.0.cross": {0, 1, 3}})
	if largest, scale, err := differ(t, large, again, pairs); err != nil || !(largest <= 1e-5*scale) {
		t.Errorf("expanded and trained, the lost heads change the logits by %v of %v, %v", largest, scale, err)
	}

	// The steps equal those of a run without dropout.
	undropped := c
	undropped.Dropout = 0
	one, two := newToy(t, undropped, pairs), newToy(t, c, pairs)
	run(t, newToyTrainer(t, one, pairs, toySettings(2)))
	if err := FineTune(ctx, two, pairs, settings, 16, nil); err != nil {
		t.Fatal(err)
	}
	sameParams(t, two, one)
	if err := FineTune(ctx, two, pairs, settings, 0, nil); err != nil {
		t.Fatal(err)
	}
	sameParams(t, two, one)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	for _, err := range []error{
		FineTune(ctx, two, pairs, settings, -1, nil), FineTune(ctx, two, nil, settings, 3, nil),
		FineTune(ctx, two, pairs, Settings{}, 3, nil), FineTune(ended, two, pairs, settings, 3, nil),
	} {
		if err == nil {
			t.Error("no error")
		}
	}
	sameParams(t, two, one)
}

// Each of a given number of steps has an effect, including the last.
func TestFineTuneLastStep(t *testing.T) {
	pairs := toyPairs(16)
	m := newToy(t, headed()[0], pairs)
	settings := toySettings(0)
	settings.Warmup = 1
	weights := func() []float32 {
		var all []float32
		for _, p := range m.Params() {
			all = append(all, p.Data()...)
		}
		return all
	}
	before := weights()
	step := 0
	err := FineTune(context.Background(), m, pairs, settings, 3, func(Progress) {
		step++
		after := weights()
		if slices.Equal(before, after) {
			t.Errorf("step %d of 3 is idle", step)
		}
		before = after
	})
	if err != nil || step != 3 {
		t.Errorf("%d steps, error %v", step, err)
	}
}
