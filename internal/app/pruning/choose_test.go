package pruning

import (
	"cmp"
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/attn-go/attn/internal/app/pruning/reports"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/probe"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/seq2seq"
)

// brief is trained with parts of a few pairs.
func brief(t *testing.T) (*models.Model, Parts) {
	t.Helper()
	m, p := trained(t)
	return m, Parts{p.Score[:8], p.Select[:8], p.Report[:8]}
}

// until runs the stages of an experiment before the choice of a method.
func until(t *testing.T, e *Experiment) *run {
	t.Helper()
	x := e.start(new(reports.Report))
	x.describe()
	for _, stage := range []func(context.Context) error{x.score, x.prepare, x.choose} {
		if err := stage(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	return x
}

// saidBy replaces the targets of pairs by the translations of a model.
func saidBy(t *testing.T, m *models.Model, pairs []seq2seq.Pair) []seq2seq.Pair {
	t.Helper()
	pairs = slices.Clone(pairs)
	for i := range pairs {
		said, err := m.Translate(context.Background(), []string{pairs[i].Source}, 1)
		if err != nil {
			t.Fatal(err)
		}
		pairs[i].Target = said[0]
	}
	return pairs
}

// inOrder returns scores by which the given heads are removed first, in the given order.
func inOrder(m *models.Model, order ...prune.Head) prune.Scores {
	s := prune.Scores{Values: map[string][]float64{}}
	for _, l := range m.Attention() {
		s.Values[l.Config().Name] = slices.Repeat([]float64{math.NaN()}, l.Config().Heads)
	}
	for i, h := range order {
		s.Values[h.Layer][h.Number] = float64(i)
	}
	return s
}

// everyHead returns all heads of a model.
func everyHead(m *models.Model) []prune.Head {
	return prune.Order(prune.Layers(m.Attention()), prune.Scores{Values: map[string][]float64{}}, true)
}

// Each part of the data is used for one purpose only. If the targets of a part are the translations of the model that
// a method has pruned, that method does best there.
func TestPartsKeepApart(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: prunes many times")
	}
	m, parts := brief(t)
	for _, goal := range []Goal{{Left: 5}, {Drop: 0.3}} {
		first := until(t, experiment(t, m, parts, goal))
		var pruned []*models.Model
		for i := range first.Methods {
			small, err := first.Subject.Without(first.cut(first.order(i), 7))
			if err != nil {
				t.Fatal(err)
			}
			pruned = append(pruned, keep(t, m, small.Kept()))
		}
		sameScores := func(x *run) {
			for i, s := range x.scores {
				if !reflect.DeepEqual(s.Values, first.scores[i].Values) {
					t.Errorf("other parts change the scores by %v", s.Method)
				}
			}
		}
		for i := range pruned {
			changed := parts
			changed.Report = saidBy(t, pruned[i], parts.Report)
			x := until(t, experiment(t, m, changed, goal))
			sameScores(x)
			if x.method != first.method || x.removes != first.removes {
				t.Errorf("%+v: the reporting part changes the choice from %d heads of method %d to %d of %d",
					goal, first.removes, first.method, x.removes, x.method)
			}
			if goal.Left == 0 {
				continue
			}
			changed.Select, changed.Report = saidBy(t, pruned[i], parts.Select), saidBy(t, pruned[1-i], parts.Report)
			x = until(t, experiment(t, m, changed, goal))
			sameScores(x)
			if x.method != i {
				t.Errorf("method %d is chosen, where %d is always right", x.method, i)
			}
		}
	}
}

// With a tolerated loss, removing more heads is better than a better metric with more heads.
func TestChooseMost(t *testing.T) {
	m, parts := brief(t)
	parts.Select = saidBy(t, m, parts.Select)
	e := experiment(t, m, parts, Goal{})
	e.Empty = true
	x := until(t, e)
	all, whole := everyHead(m), x.Task.Selecting.whole.Metric
	value := map[prune.Head]reports.Number{}
	for _, h := range all {
		small, err := x.Subject.Without([]prune.Head{h})
		if err != nil {
			t.Fatal(err)
		}
		seen, err := x.Task.Measure(context.Background(), small, &x.Task.Selecting)
		if err != nil {
			t.Fatal(err)
		}
		value[h] = seen.Metric
	}
	slices.SortFunc(all, func(a, b prune.Head) int { return cmp.Compare(value[a], value[b]) })
	worst := all[0]
	all = slices.DeleteFunc(all, func(h prune.Head) bool { return value[h] == whole })
	mild := all[len(all)-1]
	if value[mild] == value[worst] {
		t.Fatalf("all heads are alike: %v", value)
	}
	// One order begins with a head whose loss is tolerated. The other begins with
	// the worst: it removes none and loses nothing.
	x.Goal.Drop = float64(1 - (value[mild]+value[worst])/2/whole)
	x.scores = []prune.Scores{inOrder(m, mild, worst), inOrder(m, worst, mild)}
	for range 2 { // in both orders
		if err := x.choose(context.Background()); err != nil {
			t.Fatal(err)
		}
		if first := x.order(x.method)[0]; x.removes < 1 || first != mild {
			t.Errorf("%d heads go, %v first, want those from %v", x.removes, first, mild)
		}
		slices.Reverse(x.scores)
	}
}

func TestFastEnough(t *testing.T) {
	m, parts := trained(t)
	e := experiment(t, m, parts, Goal{Speed: 2})
	e.Empty = true
	x := e.start(new(reports.Report))
	x.scores = []prune.Scores{inOrder(m, everyHead(m)...)}
	for want := 1; want <= 13; want++ {
		got, err := x.fastEnough(context.Background(), 0, func(_ context.Context, m *probe.Probe) (bool, error) {
			return 12-total(m.Layers()) >= want, nil
		})
		var check *CheckError
		if want > 12 && !errors.As(err, &check) || want <= 12 && (err != nil || got != want) {
			t.Errorf("%d heads must go, found %d (%v)", want, got, err)
		}
	}
}

// The last curve removes the most important heads first.
func TestReversedCurve(t *testing.T) {
	m, parts := brief(t)
	e := experiment(t, m, parts, Goal{Left: 5})
	e.Empty, e.Methods = true, e.Methods[:1]
	x := until(t, e)
	order := everyHead(m)
	x.scores = []prune.Scores{inOrder(m, order...)}
	if err := x.curves(context.Background()); err != nil {
		t.Fatal(err)
	}
	for i, removed := range [][]prune.Head{order[:1], order[11:]} {
		small, err := x.Subject.Without(removed)
		if err != nil {
			t.Fatal(err)
		}
		loss := lossOf(t, keep(t, m, small.Kept()), parts.Report)
		if p := x.report.Curves[i].Points[1]; p.Left != 11 || math.Abs(float64(p.Loss)-loss) > 1e-5*loss {
			t.Errorf("%s: %d heads left and loss %v, want %v without %v", x.report.Curves[i].Name, p.Left, p.Loss, loss, removed)
		}
	}
}

// Fine-tuning is done once, at the end. With a tolerated loss, each number of heads that is tried is trained too. The whole
// model is trained for as many steps, to compare.
func TestFineTunedOnce(t *testing.T) {
	m, parts := brief(t)
	for _, goal := range []Goal{{Left: 8}, {Drop: 0.9}} {
		e := experiment(t, m, parts, goal)
		e.Methods, e.Orders, e.Step, e.FineTune, e.Compensate = e.Methods[:1], 0, 2, 3, "ridge"
		rounds, compared := 0, 0
		e.Progress = func(stage string, done, all int) {
			switch {
			case stage == "fine-tuning" && done == all:
				rounds++
			case stage == "fine-tuning the whole model, to compare":
				compared = done
			}
		}
		var r reports.Report
		if err := e.Run(context.Background(), &r); err != nil {
			t.Fatal(err)
		}
		if len(r.Result.Removed) == 0 || (goal.Left > 0) != (rounds == 1) || compared != 3 {
			t.Errorf("%+v: %d heads went, after %d rounds; the whole model was trained for %d steps, want 3",
				goal, len(r.Result.Removed), rounds, compared)
		}
	}
}

// Heads are scored again as often as the limit on passes allows.
func TestAffordable(t *testing.T) {
	m, parts := brief(t)
	all := total(prune.Layers(m.Attention()))
	for _, c := range []struct {
		change func(*Experiment)
		passes float64
		want   int
	}{
		{func(e *Experiment) { e.Goal = Goal{Left: all - 6} }, 13, 1}, // 78 passes
		{func(e *Experiment) { e.Goal = Goal{Left: all - 6} }, 20, 1}, // 120
		{func(e *Experiment) { e.Goal = Goal{Left: all - 6} }, 21, 2},
		{func(e *Experiment) { e.Goal = Goal{Left: all - 6} }, 60, 3},
		{func(e *Experiment) { e.Goal = Goal{Left: all - 6} }, 61, 0}, // all at once
		{func(e *Experiment) { e.Goal = Goal{Left: all - 5} }, 40, 2}, // 2, 2 and 1
		{func(e *Experiment) { e.Goal = Goal{Drop: 0.3} }, 120 / float64(all-3), 1},
		{func(e *Experiment) { e.Goal = Goal{Drop: 0.3} }, 121 / float64(all-3), 2},
		{func(e *Experiment) { e.Goal = Goal{Left: all} }, 1, 0},
		{func(e *Experiment) { e.Goal = Goal{Left: all - 6}; e.FineTune = 1 }, 21, 2},
		{func(e *Experiment) { e.Goal = Goal{Speed: 2} }, 121 / float64(all-3), 2},
		{func(e *Experiment) { e.Goal = Goal{Left: all - 6}; e.Step = 4 }, 1000, 4},
		{func(e *Experiment) { e.Goal = Goal{Left: all - 6}; e.Step = 0 }, 1, 0},
	} {
		e := experiment(t, m, parts, Goal{})
		e.Step = Affordable
		c.change(e)
		s := inOrder(m, everyHead(m)...)
		s.Passes = c.passes
		x := e.start(new(reports.Report))
		x.scores = []prune.Scores{s}
		if got := x.step(0); got != c.want {
			t.Errorf("%+v at %v passes: a step of %d heads, want %d", e.Goal, c.passes, got, c.want)
		}
	}
}

// The path of a method is that of prune.Heads, however little is needed at a time, and methods are compared by it.
func TestPath(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: prunes several times")
	}
	m, parts := brief(t)
	e := experiment(t, m, parts, Goal{Left: 5})
	e.Step, e.Orders, e.Compensate = Affordable, 0, "mean"
	x := until(t, e)
	if x.report.Settings.Step != 1 {
		t.Fatalf("step %d", x.report.Settings.Step)
	}
	for i, method := range e.Methods {
		for _, step := range []int{1, 2} {
			e.Step, x.paths[i] = step, nil
			p, err := prune.Heads(context.Background(), x.scored, prune.Options[*probe.Probe]{
				Method: method, Importance: prune.ImportanceOptions{Seed: e.Seed}, Keep: 3, Step: step, Rescore: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range []int{0, 2, 5, 3, 99} {
				got, err := x.path(context.Background(), i, n)
				if want := p.Removed[:min(n, 9)]; err != nil || !slices.Equal(got, want) {
					t.Errorf("%v, %d heads: %v, want %v (%v)", method, n, got, want, err)
				}
			}
		}
	}
}

// The main curve is of models made as the result was, with fewer heads removed and not trained.
func TestAsPruned(t *testing.T) {
	m, parts := brief(t)
	for _, steps := range []int{0, 2} {
		e := experiment(t, m, parts, Goal{Left: 6})
		e.Methods, e.Orders, e.Step, e.Compensate, e.FineTune = e.Methods[1:], 0, 1, "ridge", steps
		var r reports.Report
		if err := e.Run(context.Background(), &r); err != nil {
			t.Fatal(err)
		}
		list := r.Main().Points
		if last := list[len(list)-1]; last.Left != 6 || (last.Loss == r.Result.After.Loss) != (steps == 0) {
			t.Errorf("%d steps: the curve ends at %+v, the result is %+v", steps, last, r.Result.After)
		}
		x := until(t, e)
		for _, p := range list[1:] {
			removed, err := x.path(context.Background(), 0, 12-p.Left)
			if err != nil {
				t.Fatal(err)
			}
			less, err := x.make(context.Background(), removed, 0)
			if err != nil {
				t.Fatal(err)
			}
			if loss, err := less.On(e.Task.Reporting.Probe).Loss(context.Background()); err != nil || math.Abs(loss-float64(p.Loss)) > 1e-5 {
				t.Errorf("%d heads left have loss %v, want %v (%v)", p.Left, p.Loss, loss, err)
			}
		}
	}
}

// What a head is worth is measured against its mean output if means are made up for.
func TestScoredAgainstMeans(t *testing.T) {
	m, parts := brief(t)
	var values [2]prune.Scores
	for i, how := range []string{"", "ridge"} {
		e := experiment(t, m, parts, Goal{Left: 8})
		e.Methods, e.Compensate = []prune.Method{prune.LeaveOneOut}, how
		x := until(t, e)
		values[i] = x.scores[0]
		head := prune.Head{Layer: x.layers[0].Name}
		raw, err := e.Subject.Without([]prune.Head{head})
		if err != nil {
			t.Fatal(err)
		}
		if how != "" {
			if err := raw.Compensate(context.Background(), prune.Mean()); err != nil {
				t.Fatal(err)
			}
		}
		whole, err := e.Subject.Loss(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		less, err := raw.Loss(context.Background())
		reported, err2 := raw.On(e.Task.Reporting.Probe).Loss(context.Background())
		seen, err3 := x.after(context.Background(), []prune.Head{head})
		if got := float64(seen.Loss); err2 != nil || err3 != nil || !(math.Abs(got-reported) <= 1e-5) {
			t.Errorf("compensation %q: the curve has loss %v, want %v (%v, %v)", how, got, reported, err2, err3)
		}
		if got := values[i].Values[head.Layer][0]; err != nil || !(math.Abs(got-(less-whole)) <= 1e-5) {
			t.Errorf("compensation %q: a head is worth %v, want %v (%v)", how, got, less-whole, err)
		}
	}
	if reflect.DeepEqual(values[0].Values, values[1].Values) {
		t.Error("means do not matter")
	}
}

// 9 of 10 right answers are a loss of exactly a tenth, also after rounding.
func TestTolerates(t *testing.T) {
	metric := Exact.Metric
	for all := 2; all <= 1000; all++ {
		for _, drop := range []float64{0.01, 0.05, 0.1, 0.25, 0.5} {
			few := int(math.Round((1 - drop) * float64(all)))
			exact := reports.Number(100 * float64(few) / float64(all)) // as a metric has it
			g := Goal{Drop: 1 - float64(few)/float64(all)}
			if !g.tolerates(metric, exact, 100) || few > 0 && g.tolerates(metric, reports.Number(100*float64(few-1)/float64(all)), 100) {
				t.Fatalf("%d of %d is not what a loss of %v allows", few, all, g.Drop)
			}
		}
	}
}
