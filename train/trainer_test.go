package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/probe"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// A working network learns a toy task by heart.
func TestLearnsToReverse(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: trains")
	}
	pairs := toyPairs(64)
	for _, c := range []models.TranslatorConfig{
		{Arch: models.Transformer, Score: "scaled", Width: 32, Heads: 4, Layers: 1, Hidden: 64},
		{Arch: models.Transformer, Score: "cosine", Width: 32, Heads: 2, Layers: 1, Hidden: 64},
		{Arch: models.GRU, Score: "additive", Width: 32, Layers: 1},
		{Arch: models.GRU, Score: "gaussian", Width: 32, Heads: 2, Layers: 1},
	} {
		t.Run(name(c), func(t *testing.T) {
			m := newToy(t, c, pairs)
			all := run(t, newToyTrainer(t, m, pairs, toySettings(100)))
			if last := all[len(all)-1]; last.Loss > 0.05 {
				t.Errorf("loss %.3f after %d steps, want almost 0", last.Loss, len(all))
			}
			metrics, err := Evaluate(context.Background(), m, pairs, 1)
			if err != nil {
				t.Fatal(err)
			}
			if metrics.ExactMatch < 0.95 || metrics.Loss > 0.05 || metrics.Sources != len(pairs) {
				t.Errorf("after training: %+v", metrics)
			}
			if want := math.Exp(float64(metrics.Loss)); float64(metrics.Perplexity) != want {
				t.Errorf("perplexity %v, want %v", metrics.Perplexity, want)
			}
		})
	}
}

func TestBatches(t *testing.T) {
	pairs := toyPairs(101)
	for _, size := range []int{1, 7, 101, 1000} {
		settings := toySettings(1)
		settings.Batch = size
		m := newToy(t, headed()[0], pairs)
		tr := newToyTrainer(t, m, pairs, settings)
		first := tr.batches(0)
		if len(first) != tr.steps() {
			t.Errorf("batches of %d: %d of them, want %d", size, len(first), tr.steps())
		}
		seen := make([]int, len(pairs))
		for _, b := range first {
			if len(b) == 0 || len(b) > size {
				t.Errorf("a batch of %d pairs, want 1 to %d", len(b), size)
			}
			for _, i := range b {
				seen[i]++
			}
		}
		if slices.Max(seen) != 1 || slices.Min(seen) != 1 {
			t.Errorf("batches of %d: an epoch shows the pairs %v times, want each once", size, seen)
		}
		same := func(a, b [][]int) bool { return slices.EqualFunc(a, b, slices.Equal) }
		if !same(first, newToyTrainer(t, m, pairs, settings).batches(0)) {
			t.Errorf("batches of %d: another trainer has others", size)
		}
		if size >= len(pairs) {
			continue // a single batch has no order
		}
		if same(first, tr.batches(1)) {
			t.Errorf("batches of %d: two epochs have the same", size)
		}
		settings.Seed++
		if same(first, newToyTrainer(t, m, pairs, settings).batches(0)) {
			t.Errorf("batches of %d: another seed gives the same", size)
		}
	}
}

// Sequences of one batch have similar lengths, so that batches have little padding.
func TestBatchesHaveLittlePadding(t *testing.T) {
	pairs := toyPairs(256)
	settings := toySettings(1)
	tr := newToyTrainer(t, newToy(t, headed()[0], pairs), pairs, settings)
	tokens, cells := 0, 0
	for _, b := range tr.batches(0) {
		longest := 0
		for _, i := range b {
			tokens += len(tr.examples[i].IDs)
			longest = max(longest, len(tr.examples[i].IDs))
		}
		cells += longest * len(b)
	}
	if cells > tokens*11/10 {
		t.Errorf("%d cells for %d tokens, want at most a tenth of padding", cells, tokens)
	}
}

func TestProgress(t *testing.T) {
	pairs := toyPairs(20)
	m := newToy(t, headed()[0], pairs)
	tr := newToyTrainer(t, m, pairs, toySettings(2))
	all := run(t, tr)
	if len(all) != 2*3 {
		t.Fatalf("%d steps of 20 pairs by 8 in 2 epochs, want 6", len(all))
	}
	tokens := 0
	var epoch Progress // sums of the epoch so far
	for i, p := range all {
		if i%3 == 0 {
			epoch = Progress{}
		}
		epoch.Tokens, epoch.Time = epoch.Tokens+p.Tokens, epoch.Time+p.Time
		if d := epoch.Time - p.EpochTime; p.EpochTokens != epoch.Tokens || d.Abs() > time.Microsecond {
			t.Errorf("step %d: %d tokens in %v, want %d in %v", i, p.EpochTokens, p.EpochTime, epoch.Tokens, epoch.Time)
		}
		if p.Epoch != 1+i/3 || p.Epochs != 2 || p.Step != 1+i%3 || p.Steps != 3 || p.EpochDone != (i%3 == 2) {
			t.Errorf("step %d: %+v", i, p)
		}
		if first := p.Step == 1; first != (math.Abs(p.StepLoss-p.Loss) < 1e-9) {
			t.Errorf("step %d: loss %v, of the epoch %v", i, p.StepLoss, p.Loss)
		}
		if !(p.Loss > 0) || !(p.Norm > 0) || p.Tokens == 0 || p.Time <= 0 {
			t.Errorf("step %d: %+v", i, p)
		}
		if p.Epoch == 1 {
			tokens += p.Tokens
		}
	}
	want := 0
	for _, p := range pairs {
		e, err := probe.TranslationExample(m, p.Source, p.Target)
		if err != nil {
			t.Fatal(err)
		}
		want += len(e.IDs) + len(e.Targets)
	}
	if tokens != want {
		t.Errorf("an epoch has %d tokens, want %d", tokens, want)
	}
	if epochs, steps := tr.Done(); epochs != 2 || steps != 0 {
		t.Errorf("done are %d epochs and %d steps, want 2 and 0", epochs, steps)
	}
}

// A trainer that is interrupted at every step and called again gives the same result as an
// uninterrupted one.
func TestRunInterrupted(t *testing.T) {
	pairs := toyPairs(20)
	c := models.TranslatorConfig{Arch: models.Transformer, Score: "additive", Width: 12, Heads: 3, Layers: 1, Hidden: 10, Dropout: 0.2}
	whole := newToy(t, c, pairs)
	run(t, newToyTrainer(t, whole, pairs, toySettings(2)))

	m := newToy(t, c, pairs)
	tr := newToyTrainer(t, m, pairs, toySettings(2))
	for step := 1; ; step++ {
		ctx, cancel := context.WithCancel(context.Background())
		steps := 0
		err := tr.Run(ctx, func(Progress) error { steps++; cancel(); return nil })
		cancel()
		if steps != 1 {
			t.Fatalf("%d steps after the interruption, want the one under way", steps)
		}
		if step == 2*3 {
			if err != nil {
				t.Errorf("an interruption in the last step, when all is done: %v", err)
			}
			break
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("step %d: error %v, want %v", step, err, context.Canceled)
		}
	}
	sameParams(t, m, whole)

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	late := newToyTrainer(t, m, pairs, toySettings(1))
	if err := late.Run(ctx, func(Progress) error { t.Error("a step after the interruption"); return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
	broken := errors.New("no space for the report")
	if err := late.Run(context.Background(), func(Progress) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("error %v, want that of the report", err)
	}
}

// sameParams fails the test unless two translators have the same parameters, bit for bit.
func sameParams(t *testing.T, got, want *models.Model) {
	t.Helper()
	wanted := map[string][]float32{}
	for name, p := range want.Params() {
		wanted[name] = p.Data()
	}
	for name, p := range got.Params() {
		tensortest.Same(t, name, p.Data(), wanted[name])
		delete(wanted, name)
	}
	if len(wanted) > 0 {
		t.Errorf("%d parameters are missing", len(wanted))
	}
}

// A far too large learning rate ends in an error, and the parameters stay as they were before the
// step that diverged.
func TestDiverged(t *testing.T) {
	pairs := toyPairs(20)
	m := newToy(t, headed()[0], pairs)
	settings := toySettings(50)
	settings.LR, settings.Clip = 1e30, 0
	tr := newToyTrainer(t, m, pairs, settings)
	steps := 0
	err := tr.Run(context.Background(), func(Progress) error { steps++; return nil })
	if !errors.Is(err, models.ErrDiverged) || !strings.HasPrefix(err.Error(), "epoch 1, step 2: ") {
		t.Fatalf("error %v after %d steps, want that the loss has diverged in step 2", err, steps)
	}
	if err := tr.Save(t.TempDir()); err != nil {
		t.Errorf("saving after it: %v", err)
	}
}

// ErrStop, also wrapped, ends a run without an error after the step. The next run continues.
func TestStop(t *testing.T) {
	pairs := toyPairs(20)
	tr := newToyTrainer(t, newToy(t, headed()[0], pairs), pairs, toySettings(2))
	for steps := 1; steps <= 3; steps++ {
		err := tr.Run(context.Background(), func(Progress) error { return fmt.Errorf("enough: %w", ErrStop) })
		if err != nil || tr.Total() != steps {
			t.Errorf("%d steps, error %v, want %d", tr.Total(), err, steps)
		}
	}
}

func TestTrainerLeavesOutLongPairs(t *testing.T) {
	pairs := append(toyPairs(9), seq2seq.Pair{Source: "abcdefgabcdefg", Target: "a"}, seq2seq.Pair{Source: "a", Target: "abcdefgabcdefg"})
	settings := toySettings(1)
	settings.MaxLength = 7 // six letters and EOS
	m := newToy(t, headed()[0], pairs)
	tr := newToyTrainer(t, m, pairs, settings)
	if tr.Skipped != 2 || len(tr.examples) != 9 {
		t.Errorf("%d left out and %d kept, want 2 and 9", tr.Skipped, len(tr.examples))
	}
	for _, pairs := range [][]seq2seq.Pair{nil, pairs[9:]} {
		if _, err := NewTrainer(m, pairs, settings); err == nil {
			t.Errorf("no error for %d pairs of which none can be used", len(pairs))
		}
	}
	if _, err := NewTrainer(m, pairs, Settings{}); err == nil || !strings.HasPrefix(err.Error(), "train: ") {
		t.Errorf("error %v for settings out of range", err)
	}
}

// The curve of a short run has many points, that of a long run no more than necessary. Together
// they cover all steps, and they do not depend on interruptions.
func TestWindows(t *testing.T) {
	pairs := toyPairs(101)
	c := models.TranslatorConfig{Arch: models.GRU, Score: "dot", Width: 8, Layers: 1}
	settings := toySettings(3)
	settings.Batch = 1
	type seen struct {
		total int
		w     Window
	}
	var whole []seen
	steps, tokens := 0, 0
	tr := newToyTrainer(t, newToy(t, c, pairs), pairs, settings)
	err := tr.Run(context.Background(), func(p Progress) error {
		if p.Total != (p.Epoch-1)*p.Steps+p.Step {
			t.Fatalf("step %d of epoch %d has the number %d", p.Step, p.Epoch, p.Total)
		}
		if p.Window != nil {
			w := *p.Window
			steps, tokens = steps+w.Steps, tokens+w.Tokens
			w.Time = 0
			whole = append(whole, seen{p.Total, w})
		}
		if p.EpochDone {
			if p.Window == nil || steps != p.Steps || tokens != p.EpochTokens {
				t.Errorf("epoch %d: points of %d steps and %d tokens, want %d and %d", p.Epoch, steps, tokens, p.Steps, p.EpochTokens)
			}
			steps, tokens = 0, 0
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// All steps up to 64, then every second up to 128, every fourth up to 256, every eighth after
	// that, and the ends of epochs, none of which is among these.
	//
	if want := 64 + 32 + 32 + 5 + 3; len(whole) != want {
		t.Errorf("%d points of 303 steps, want %d", len(whole), want)
	}
	for _, stops := range []int{103, 250} {
		dir := t.TempDir()
		tr := newToyTrainer(t, newToy(t, c, pairs), pairs, settings)
		var parts []seen
		gather := func(p Progress) {
			if p.Window != nil {
				w := *p.Window
				w.Time = 0
				parts = append(parts, seen{p.Total, w})
			}
		}
		left := stops
		tr.Run(context.Background(), func(p Progress) error {
			gather(p)
			if left--; left == 0 {
				return errStop
			}
			return nil
		})
		if err := tr.Save(dir); err != nil {
			t.Fatal(err)
		}
		m, err := models.Load(dir, models.Options{Trainable: true})
		if err != nil {
			t.Fatal(err)
		}
		tr = newToyTrainer(t, m, pairs, settings)
		if err := tr.Resume(dir); err != nil {
			t.Fatal(err)
		}
		for _, p := range run(t, tr) {
			gather(p)
		}
		if !slices.Equal(parts, whole) {
			t.Errorf("after %d steps: other points than without the interruption", stops)
		}
	}
}

func TestSettingsValidate(t *testing.T) {
	good := Settings{Epochs: 1, Batch: 1, LR: 0.1}
	for _, s := range []Settings{good, toySettings(3)} {
		if err := s.Validate(); err != nil {
			t.Errorf("%+v: %v", s, err)
		}
	}
	for _, c := range []struct {
		want   string
		change func(*Settings)
	}{
		{"epochs 0, want 1 to", func(s *Settings) { s.Epochs = 0 }},
		{"epochs 1000001, want 1 to", func(s *Settings) { s.Epochs = 1_000_001 }},
		{"batch 0, want 1 to", func(s *Settings) { s.Batch = 0 }},
		{fmt.Sprintf("batch %d, want 1 to", math.MaxInt), func(s *Settings) { s.Batch = math.MaxInt }},
		{"learning rate 0, want a positive number", func(s *Settings) { s.LR = 0 }},
		{"learning rate NaN, want", func(s *Settings) { s.LR = math.NaN() }},
		{"learning rate +Inf, want", func(s *Settings) { s.LR = math.Inf(1) }},
		{"warm-up of -1 steps", func(s *Settings) { s.Warmup = -1 }},
		{"label smoothing 1 is outside [0, 1)", func(s *Settings) { s.Smoothing = 1 }},
		{"gradient clipping at -1, want at least 0", func(s *Settings) { s.Clip = -1 }},
		{"gradient clipping at NaN", func(s *Settings) { s.Clip = float32(math.NaN()) }},
		{"format int8, want float32 or bfloat16", func(s *Settings) { s.Format = tensor.Int8 }},
		{"maximum length -1", func(s *Settings) { s.MaxLength = -1 }},
	} {
		s := good
		c.change(&s)
		err := s.Validate()
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %s", s, err, c.want)
		}
	}
}
