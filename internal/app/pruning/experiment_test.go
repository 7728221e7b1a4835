package pruning

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/attn-go/attn/internal/app/pruning/reports"
	"github.com/attn-go/attn/internal/par/partest"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/probe"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/train"
)

// TestMain sets one thread; tests of threads set more.
func TestMain(m *testing.M) {
	partest.OneThread()
	m.Run()
}

// trained returns a translator after short training on dates, and other dates in three parts. All tests share them,
// because pruning changes no model.
func trained(t testing.TB) (*models.Model, Parts) {
	t.Helper()
	all, err := learnDates()
	if err != nil {
		t.Fatal(err)
	}
	return all.m, all.parts
}

type learnt struct {
	m     *models.Model
	parts Parts
}

var learnDates = sync.OnceValues(func() (l learnt, err error) {
	learn, test := train.DatesSplit(300, 60, 2)
	var sources, targets []string
	for _, p := range learn {
		sources, targets = append(sources, p.Source), append(targets, p.Target)
	}
	l.m, err = models.NewTranslator(models.TranslatorConfig{Arch: models.Transformer, Score: "scaled", Width: 16, Heads: 4, Layers: 1, Hidden: 32},
		seq2seq.BuildVocabulary(sources, seq2seq.Chars, 100), seq2seq.BuildVocabulary(targets, seq2seq.Chars, 100), newRand())
	if err != nil {
		return l, err
	}
	s := train.Settings{Epochs: 4, Batch: 16, LR: 0.01, Warmup: 10, Clip: 1, Seed: 1}
	trainer, err := train.NewTrainer(l.m, learn, s)
	if err == nil {
		err = trainer.Run(context.Background(), func(train.Progress) error { return nil })
	}
	if err != nil {
		return l, err
	}
	l.parts, err = split(test, 20, 1)
	return l, err
})

// Parts are the scoring, the selecting and the reporting part.
type Parts struct{ Score, Select, Report []seq2seq.Pair }

// split is Deal of pairs.
func split(pairs []seq2seq.Pair, limit int, seed uint64) (Parts, error) {
	p, err := Deal(pairs, func(p seq2seq.Pair) string { return p.Source }, limit, seed, "sources")
	return Parts{p[0], p[1], p[2]}, err
}

// probeOf returns a probe of a translator on pairs.
func probeOf(t testing.TB, m *models.Model, pairs []seq2seq.Pair) *probe.Probe {
	t.Helper()
	p, err := train.Probe(m, pairs)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// keep is m.Keep for a test.
func keep(tb testing.TB, m *models.Model, kept map[string][]int) *models.Model {
	tb.Helper()
	small, err := m.Keep(kept)
	if err != nil {
		tb.Fatal(err)
	}
	return small
}

// lossOf returns the loss of a translator on pairs.
func lossOf(t testing.TB, m *models.Model, pairs []seq2seq.Pair) float64 {
	t.Helper()
	loss, err := train.Loss(context.Background(), m, pairs)
	if err != nil {
		t.Fatal(err)
	}
	return loss
}

// experiment returns an experiment on a translator.
func experiment(t testing.TB, m *models.Model, parts Parts, goal Goal) *Experiment {
	t.Helper()
	p := probeOf(t, m, parts.Score)
	task := &Task{Unit: "nats per token", Judge: BLEU, Others: []Judge{Exact}, Train: TrainProbe(p, train.Tuning{Rate: 0.001, Seed: 5})}
	for part, pairs := range map[*Part][]seq2seq.Pair{&task.Selecting: parts.Select, &task.Reporting: parts.Report} {
		part.Probe = probeOf(t, m, pairs)
		var sources []string
		sources, part.References = train.Group(pairs)
		for _, source := range sources {
			e, err := m.Encode(source, "")
			if err != nil {
				t.Fatal(err)
			}
			part.Sources = append(part.Sources, e.IDs)
		}
	}
	return &Experiment{
		Subject: p, Task: task, Goal: goal, Methods: []prune.Method{prune.WeightNorm, prune.LeaveOneOut}, Compare: true, Orders: 3,
		Resamples: 100, Seed: 5,
	}
}

func TestExperiment(t *testing.T) {
	m, parts := trained(t)
	var compact, masked *models.Model
	e := experiment(t, m, parts, Goal{Left: 5})
	e.Keep = func(ctx context.Context, left *probe.Probe, _ *reports.Report) (err error) {
		masked = left.Model()
		compact, err = masked.Keep(left.Kept())
		return err
	}
	saved := 0
	e.Save = func(*reports.Report) error { saved++; return nil }
	var r reports.Report
	if err := e.Run(context.Background(), &r); err != nil {
		t.Fatal(err)
	}
	if r.Result.Left != 5 || len(r.Result.Removed) != 7 || total(prune.Layers(compact.Attention())) != 5 || total(prune.Layers(masked.Attention())) != 12 || saved == 0 {
		t.Errorf("%d heads left, %d removed, %d and %d in the models, saved %d times",
			r.Result.Left, len(r.Result.Removed), total(prune.Layers(compact.Attention())), total(prune.Layers(masked.Attention())), saved)
	}
	for _, l := range r.Layers {
		if !slices.Equal(l.Kept, compact.HeadNumbers(l.Name)) || len(l.Kept) == 0 {
			t.Errorf("%s kept %v, the model has %v", l.Name, l.Kept, compact.HeadNumbers(l.Name))
		}
	}
	// The report has the results of attn eval.
	loss := lossOf(t, compact, parts.Report)
	if math.Abs(loss-float64(r.Result.After.Loss)) > 1e-5*loss || r.Result.After.Loss == r.Result.Before.Loss {
		t.Errorf("loss %v after %v, want %v", r.Result.After.Loss, r.Result.Before.Loss, loss)
	}
	if len(r.Curves) != 3 || r.Curves[2].Name != r.Result.Method+", reversed" {
		t.Fatalf("%d curves", len(r.Curves))
	}
	for _, c := range r.Curves {
		first, last := c.Points[0], c.Points[len(c.Points)-1]
		if first.Left != 12 || first.Loss != r.Result.Before.Loss || first.KL != 0 || first.Low != 0 || first.High != 0 {
			t.Errorf("%s begins at %+v, want the whole model", c.Name, first)
		}
		if last.Left != 3 || !(last.KL > 0) {
			t.Errorf("%s ends at %+v, want a head in each layer", c.Name, last)
		}
		for _, p := range c.Points {
			if d := p.Metric - r.Result.Before.Metric; p.Left < 12 && (p.Low > d || p.High < d) && math.Abs(float64(d)) > 5 {
				t.Errorf("%s: a difference of %v is far outside of %v to %v", c.Name, d, p.Low, p.High)
			}
			if c.Name == r.Result.Method && p.Left == 5 && p.Loss != r.Result.After.Loss {
				t.Errorf("the curve of %s has loss %v, the model %v", c.Name, p.Loss, r.Result.After.Loss)
			}
		}
	}
	if n := len(r.Random.Points); n != len(r.Curves[0].Points) || r.Random.Points[n-1].Left != 3 {
		t.Errorf("%d points of random orders", n)
	}
	for _, p := range r.Random.Points[1:] {
		if !(p.Loss.Min <= p.Loss.Low && p.Loss.Low <= p.Loss.Mean && p.Loss.Mean <= p.Loss.High && p.Loss.High <= p.Loss.Max && p.Loss.Min < p.Loss.Max) {
			t.Errorf("losses of random orders with %d heads left: %+v", p.Left, p.Loss)
		}
	}
	if r.Scores[1].Rank != 1 || !(r.Scores[0].Rank < 1) {
		t.Errorf("rank correlations %v and %v", r.Scores[0].Rank, r.Scores[1].Rank)
	}

	var again reports.Report
	if err := e.Run(context.Background(), &again); err != nil {
		t.Fatal(err)
	}
	for _, x := range []*reports.Report{&r, &again} {
		x.Seconds = 0
		for i := range x.Scores {
			x.Scores[i].Seconds = 0
		}
	}
	a, err1 := json.Marshal(r)
	b, err2 := json.Marshal(again)
	if err1 != nil || err2 != nil || string(a) != string(b) {
		t.Errorf("the second run says something else: %v %v\n%s\n%s", err1, err2, a, b)
	}
}

// Each goal is met on the selecting part.
func TestGoals(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: prunes for every goal")
	}
	m, parts := trained(t)
	ctx := context.Background()
	value := func(m *models.Model) reports.Number {
		e := experiment(t, m, parts, Goal{})
		if err := e.start(new(reports.Report)).prepare(ctx); err != nil {
			t.Fatal(err)
		}
		return e.Task.Selecting.whole.Metric
	}
	for name, change := range map[string]func(*Experiment){
		"scored once":    func(*Experiment) {},
		"scored again":   func(e *Experiment) { e.Step = 2 },
		"fine-tuned":     func(e *Experiment) { e.Step, e.FineTune = 2, 2 },
		"one method":     func(e *Experiment) { e.Methods = e.Methods[:1] },
		"emptied layers": func(e *Experiment) { e.Empty = true },
	} {
		e := experiment(t, m, parts, Goal{Drop: 0.3})
		e.Orders = 0
		change(e)
		e.Keep = func(_ context.Context, left *probe.Probe, _ *reports.Report) error {
			if got, want := value(keep(t, left.Model(), left.Kept())), value(m); !(got >= 0.7*want) || want == 0 {
				t.Errorf("%s: BLEU falls from %v to %v", name, want, got)
			}
			return nil
		}
		var r reports.Report
		if err := e.Run(ctx, &r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		// The effect of training is reported separately.
		if pruned, control := r.Result.Pruned, r.Result.Control; (pruned != nil) != (e.FineTune > 0 && len(r.Result.Removed) > 0) || (control != nil) != (pruned != nil) {
			t.Errorf("%s: without fine-tuning %v, the whole model with it %v", name, pruned, control)
		} else if pruned != nil && (control.Loss == r.Result.Before.Loss || pruned.Loss == r.Result.After.Loss || control.Parameters != r.Result.Before.Parameters || pruned.Parameters != r.Result.After.Parameters) {
			t.Errorf("%s: loss %v, trained as long %v; pruned %v, trained %v", name, r.Result.Before.Loss, control.Loss, pruned.Loss, r.Result.After.Loss)
		}
	}
	e := experiment(t, m, parts, Goal{Speed: 1e6})
	e.SpeedTime = 1
	var check *CheckError
	if err := e.Run(ctx, new(reports.Report)); !errors.As(err, &check) {
		t.Errorf("a million times as fast: %v", err)
	}
	e = experiment(t, m, parts, Goal{Left: 2})
	if err := e.Run(ctx, new(reports.Report)); err == nil {
		t.Error("two heads for three layers")
	}
}

// After an interruption, the report has the results so far.
func TestInterruption(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: interrupts at every stage")
	}
	m, parts := trained(t)
	for _, stage := range []string{"scoring heads", choosing, "curves", "random orders"} {
		ctx, cancel := context.WithCancel(context.Background())
		e := experiment(t, m, parts, Goal{Left: 5})
		e.Progress = func(s string, done, _ int) {
			if s == stage && done > 0 {
				cancel()
			}
		}
		var r reports.Report
		if err := e.Run(ctx, &r); !errors.Is(err, context.Canceled) {
			t.Fatalf("%s: %v", stage, err)
		}
		// Norms of weights need no pass, so they are measured first.
		if len(r.Scores) != 2 || !r.Scores[0].Values[0][0].Known() {
			t.Errorf("interrupted in %s, scores are %v", stage, r.Scores)
		}
		if (stage == "random orders") != (len(r.Curves) == 3) {
			t.Errorf("interrupted in %s, there are %d curves", stage, len(r.Curves))
		}
		if early := stage == "scoring heads" || stage == choosing; early == r.Result.After.Loss.Known() || early == r.Result.Low.Known() {
			t.Errorf("interrupted in %s, the pruned model is said to be %+v", stage, r.Result.After)
		}
		if _, err := json.Marshal(r); err != nil {
			t.Error(err)
		}
		cancel()
	}
}

func TestLargest(t *testing.T) {
	for limit := range 12 {
		calls := 0
		got, err := largest(0, 12, func(n int) (bool, error) {
			calls++
			return n <= limit, nil
		})
		if err != nil || got != limit || calls > 4 {
			t.Errorf("%d heads can go, found %d in %d steps (%v)", limit, got, calls, err)
		}
	}
}

func TestLevels(t *testing.T) {
	for _, c := range []struct {
		all, most, chosen int
		want              []int
	}{
		{72, 63, 36, []int{0, 7, 14, 22, 29, 36, 43, 50, 58, 63}},
		{12, 9, 1, []int{0, 1, 2, 4, 5, 6, 7, 8, 9}},
		{2, 1, 0, []int{0, 1}},
	} {
		if got := levels(c.all, c.most, c.chosen); !slices.Equal(got, c.want) {
			t.Errorf("%v, want %v", got, c.want)
		}
	}
}
