package pruning

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/app/pruning/reports"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/probe"
	"github.com/attn-go/attn/prune"
)

// ofWords returns an experiment on a tiny model with random weights and random texts. The targets are the model's own
// predictions, so that its heads matter.
func ofWords(t *testing.T, dir string) *Experiment {
	t.Helper()
	m, err := models.Load("../../../models/testdata/"+dir, models.Options{Trainable: true})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(7, 11))
	vocabulary := m.Sizes().Vocabulary
	part := func() *probe.Probe {
		var list []probe.Example
		for range 29 {
			var e probe.Example
			for range 3 + rng.IntN(8) {
				e.IDs, e.Targets = append(e.IDs, rng.IntN(vocabulary)), append(e.Targets, probe.Ignore)
			}
			logits := m.Head().Logits(nil, m.Hidden(nil, models.Batch{IDs: [][]int{e.IDs}}, models.Run{})).Data()[vocabulary : 2*vocabulary]
			e.Targets[1] = slices.Index(logits, slices.Max(logits))
			list = append(list, e)
		}
		p, err := probe.New(m, list)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	return &Experiment{
		Subject: part(), Task: &Task{Judge: Loss, Others: []Judge{Accuracy}, Unit: "nats", Selecting: Part{Probe: part()}, Reporting: Part{Probe: part()}},
		Methods: []prune.Method{prune.Random, prune.LeaveOneOut, prune.Gradient}, Goal: Goal{Left: 3}, Step: Affordable, Compare: true, Orders: 5, Resamples: 100, Seed: 1,
	}
}

func lossOn(t *testing.T, p, part *probe.Probe) float64 {
	t.Helper()
	loss, err := p.On(part).Loss(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return loss
}

func TestPretrained(t *testing.T) {
	e := ofWords(t, "bert_words")
	var left *probe.Probe
	e.Keep = func(_ context.Context, p *probe.Probe, _ *reports.Report) error { left = p; return nil }
	var r reports.Report
	if err := e.Run(context.Background(), &r); err != nil {
		t.Fatal(err)
	}
	if r.Model.Heads != 6 || r.Result.Left != 3 || len(r.Result.Removed) != 3 || total(left.Layers()) != 3 || len(r.Curves) != 5 {
		t.Errorf("%d of %d heads are left, %d removed, %d in the model; %d curves", r.Result.Left, r.Model.Heads, len(r.Result.Removed), total(left.Layers()), len(r.Curves))
	}
	for _, l := range r.Layers {
		if !slices.Equal(l.Kept, left.Kept()[l.Name]) {
			t.Errorf("layer %s is said to keep %v, and keeps %v", l.Name, l.Kept, left.Kept()[l.Name])
		}
	}
	near := func(got reports.Number, want float64) bool { return math.Abs(float64(got)-want) < 1e-4 }
	before, after := r.Result.Before, r.Result.After
	if !near(before.Metric, lossOn(t, e.Subject, e.Task.Reporting.Probe)) || !near(after.Metric, lossOn(t, left, e.Task.Reporting.Probe)) || before.Loss != before.Metric {
		t.Errorf("losses are said to be %v and %v", before, after)
	}
	// The targets are its own predictions.
	if before.KL != 0 || !(after.KL > 0) || before.Others[0].Value != 100 || !(after.Others[0].Value < 100) {
		t.Errorf("before %+v, after %+v", before, after)
	}
	if d := after.Metric - before.Metric; !(r.Result.Low < d && d < r.Result.High && r.Result.Low < r.Result.High) {
		t.Errorf("a difference of %v has the interval %v to %v", d, r.Result.Low, r.Result.High)
	}
	if n := len(r.Random.Points); n != 5 || !(r.Random.Points[2].Loss.Min < r.Random.Points[2].Loss.Max) {
		t.Errorf("%d points of random orders", n)
	}
	if s := r.Settings; s.Metric != "loss" || !s.Lower || s.LossUnit != "nats" || s.Goal != "keep 3 heads" || r.Speed != nil {
		t.Errorf("settings %+v", s)
	}
}

// A tolerated increase applies to the loss on the selecting part. As many heads as possible are removed, in the order of
// a method that is scored once.
func TestPretrainedTolerates(t *testing.T) {
	for _, drop := range []float64{0, 1, 2, 4, 10} {
		e := ofWords(t, "bert_words")
		e.Goal, e.Step, e.Methods, e.Orders = Goal{Drop: drop}, 0, []prune.Method{prune.Gradient}, 0
		var left *probe.Probe
		e.Keep = func(_ context.Context, p *probe.Probe, _ *reports.Report) error { left = p; return nil }
		var r reports.Report
		if err := e.Run(context.Background(), &r); err != nil {
			t.Fatal(err)
		}
		whole := lossOn(t, e.Subject, e.Task.Selecting.Probe)
		if loss := lossOn(t, left, e.Task.Selecting.Probe); !(loss <= (1+drop)*whole+1e-6) {
			t.Errorf("drop %v: the loss grows from %v to %v", drop, whole, loss)
		}
		scores, err := prune.Importance(context.Background(), e.Subject, prune.ImportanceOptions{Methods: e.Methods})
		if err != nil {
			t.Fatal(err)
		}
		order := prune.Order(e.Subject.Layers(), scores[0], false)
		n := len(r.Result.Removed)
		if !slices.Equal(r.Result.Removed, order[:n]) {
			t.Errorf("drop %v: %v went, want the first of %v", drop, r.Result.Removed, order)
		}
		if n == len(order) {
			continue
		}
		more, err := e.Subject.Without(order[:n+1])
		if err != nil {
			t.Fatal(err)
		}
		if loss := lossOn(t, more, e.Task.Selecting.Probe); loss <= (1+drop)*whole {
			t.Errorf("drop %v: %d heads have gone, and one more could", drop, n)
		}
	}
}

// Heads that share keys and values are removed together, also in curves and random orders.
func TestPretrainedGroups(t *testing.T) {
	e := ofWords(t, "decoders/llama3")
	e.Goal, e.Methods = Goal{Left: 5}, []prune.Method{prune.WeightNorm, prune.Gradient}
	var r reports.Report
	if err := e.Run(context.Background(), &r); err != nil {
		t.Fatal(err)
	}
	size := e.Subject.Layers()[0].Group
	if size != 2 || r.Result.Left != 6 {
		t.Errorf("%d heads are left of groups of %d, want 6 of 2", r.Result.Left, size)
	}
	var lefts []int
	for _, c := range r.Curves {
		for _, p := range c.Points {
			lefts = append(lefts, p.Left)
		}
	}
	for _, p := range r.Random.Points {
		lefts = append(lefts, p.Left)
	}
	for _, left := range lefts {
		if left%size != 0 {
			t.Errorf("%d heads are left of groups of %d", left, size)
		}
	}
}

// With Even, each layer loses the same number of heads in whole groups, as many as the goal allows, in all curves.
func TestPretrainedEven(t *testing.T) {
	for _, c := range []struct {
		dir  string
		goal Goal
		left []int
	}{
		{"bert_words", Goal{Left: 3}, []int{4}}, {"bert_words", Goal{Left: 2}, []int{2}}, {"bert_words", Goal{Drop: 1000}, []int{2}}, {"bert_words", Goal{Drop: 1e-9}, []int{6, 4}},
		{"decoders/llama3", Goal{Left: 4}, []int{4}}, {"decoders/llama3", Goal{Left: 5}, []int{8}},
		{"decoders/qwen3_5", Goal{Left: 8}, []int{8}}, {"decoders/falcon_h1", Goal{Left: 11}, []int{20}}, {"decoders/falcon_h1", Goal{Left: 10}, []int{10}},
	} {
		e := ofWords(t, c.dir)
		e.Even, e.Goal, e.Methods = true, c.goal, []prune.Method{prune.WeightNorm, prune.Gradient}
		var left *probe.Probe
		e.Keep = func(_ context.Context, p *probe.Probe, _ *reports.Report) error { left = p; return nil }
		var r reports.Report
		if err := e.Run(context.Background(), &r); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(c.left, r.Result.Left) || r.Result.Left != total(left.Layers()) || !r.Settings.Even {
			t.Errorf("%s, %+v: %d heads are left, want %v", c.dir, c.goal, r.Result.Left, c.left)
		}
		layers := left.Layers()
		for i, l := range layers {
			if whole := e.Subject.Layers(); l.Heads*whole[0].Heads != layers[0].Heads*whole[i].Heads {
				t.Errorf("%s, %+v: a layer has %d of %d heads, another %d of %d", c.dir, c.goal, l.Heads, whole[i].Heads, layers[0].Heads, whole[0].Heads)
			}
		}
		for _, curve := range r.Curves {
			for _, p := range curve.Points {
				if whole := e.Subject.Layers(); p.Left%(total(whole)/(whole[0].Heads/whole[0].Group)) != 0 {
					t.Errorf("%s: a curve has a point with %d heads of %d", c.dir, p.Left, total(whole))
				}
			}
		}
	}
}

// Layers with fewer groups than others lose them in later rounds, so that each has about the same share left.
func TestEvenShares(t *testing.T) {
	layers := []attn.LayerHeads{{Name: "a", Heads: 8, Group: 1}, {Name: "b", Heads: 6, Group: 2}, {Name: "c", Heads: 8, Group: 1}}
	x := &run{Experiment: &Experiment{Even: true}, layers: layers}
	if got, want := x.rounds(), []int{2, 4, 8, 10, 12, 16, 18, 22}; !slices.Equal(got, want) {
		t.Errorf("rounds end at %v, want %v", got, want)
	}
	order := x.orderBy(prune.Scores{Values: map[string][]float64{"a": make([]float64, 8), "b": make([]float64, 6), "c": make([]float64, 8)}})
	for n, want := range map[int]string{1: "0 0 0", 3: "1 0 1", 4: "2 0 2", 7: "2 0 2", 9: "3 2 3", 17: "6 4 6", 99: "7 4 7"} {
		gone := map[string]int{}
		for _, h := range x.cut(order, n) {
			gone[h.Layer]++
		}
		if got := fmt.Sprint(gone["a"], gone["b"], gone["c"]); got != want {
			t.Errorf("of %d heads, the layers lose %s, want %s", n, got, want)
		}
	}
}

func TestPretrainedStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	e := ofWords(t, "bert_words")
	e.Progress = func(stage string, _, _ int) {
		if stage == "random orders" {
			cancel()
		}
	}
	var r reports.Report
	if err := e.Run(ctx, &r); !errors.Is(err, context.Canceled) || len(r.Curves) == 0 {
		t.Errorf("error %v with %d curves, want the error of the context after the curves", err, len(r.Curves))
	}
	e.Goal.Left = 1
	if err := e.Run(context.Background(), new(reports.Report)); err == nil {
		t.Error("one head is left of two layers that may not be empty")
	}
}

// The judges have the results of a calculation by hand.
func TestJudges(t *testing.T) {
	list := []probe.Predicted{
		{Terms: 2, Loss: 3, Right: 1, Cosine: 0.1}, {Terms: 1, Loss: 1, Right: 1, Cosine: 0.5}, {Terms: 4, Loss: 2, Right: 0, Cosine: 0.3}, {Terms: 1, Cosine: 0.7},
	}
	wanted := []float64{0, 0.4, 0.6, 1}
	sample := []int{0, 1, 1, 2}
	for _, c := range []struct {
		judge Judge
		want  float64
	}{
		{Loss, (3. + 1 + 1 + 2) / 8}, {Accuracy, 100 * 3. / 8},
		{Spearman, 100 * prune.Spearman([]float64{0.1, 0.5, 0.5, 0.3}, []float64{0, 0.4, 0.4, 0.6})},
		{Pearson, 100 * 0.09 / math.Sqrt(0.11*0.19)},
	} {
		if got := c.judge.Of(outcome{predicted: list, wanted: wanted})(sample); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s is %v, want %v", c.judge, got, c.want)
		}
	}
	list[2].Cosine = math.NaN()
	if got := Spearman.Of(outcome{predicted: list, wanted: wanted})(sample); got == got {
		t.Errorf("with a cosine that is no number, the correlation is %v", got)
	}
}

// The work whose speed is measured for each kind of model; a goal uses the first one.
func TestPretrainedWorks(t *testing.T) {
	for _, c := range []struct {
		dir  string
		want []string
	}{
		{"bert_words", []string{"encode", "attention layers"}}, {"decoders/llama3", []string{"read", "decode one token", "attention layers"}}, {"mpnet_words", nil},
	} {
		e := ofWords(t, c.dir)
		task := e.Task
		task.Faster = true
		works := task.Works()
		var names []string
		for _, w := range works {
			if names = append(names, w.Name); w.Batch*w.Length <= 64 {
				w.On(e.Subject)()
			}
			if w.Length > e.Subject.Model().Sizes().Positions {
				t.Errorf("%s: %s is of %d tokens", c.dir, w.Name, w.Length)
			}
		}
		if !slices.Equal(slices.Compact(names), c.want) {
			t.Errorf("%s: works are %v, want %v", c.dir, names, c.want)
		}
		if len(works) > 0 && works[0].Batch != 32 {
			t.Errorf("%s: the first work is of %d texts, want 32", c.dir, works[0].Batch)
		}
	}
}

// Texts of the maximum length leave no position for one more token.
func TestPretrainedWorksOfLongestTexts(t *testing.T) {
	e := ofWords(t, "decoders/gpt2")
	m, task := e.Subject.Model(), e.Task
	most := m.Sizes().Positions
	x := probe.Example{IDs: make([]int, most), Targets: make([]int, most)}
	p, err := probe.New(m, []probe.Example{x})
	if err != nil {
		t.Fatal(err)
	}
	task.Selecting.Probe = p
	var lengths []int
	for _, w := range task.Works() {
		if w.Batch == 1 {
			w.On(e.Subject)()
		}
		if w.Name == "decode one token" {
			lengths = append(lengths, w.Length)
		}
	}
	if !slices.Equal(lengths, []int{most - 1}) {
		t.Errorf("a token is decoded after %v tokens, want %d", lengths, most-1)
	}
}
