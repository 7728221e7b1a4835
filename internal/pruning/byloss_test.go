package pruning

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/pruning/reports"
	"github.com/attn-go/attn/models"
)

// lossExperiment is an experiment on a tiny BERT with random weights and random texts, of
// which it is to predict what it does predict: so its heads matter.
func lossExperiment(t *testing.T) *ByLoss[*models.Probe] {
	t.Helper()
	m, err := models.Load("../../models/testdata/bert_words", models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(7, 11))
	part := func() *models.Probe {
		var list []models.Example
		for range 29 {
			var e models.Example
			for range 3 + rng.IntN(8) {
				e.IDs, e.Targets = append(e.IDs, rng.IntN(43)), append(e.Targets, models.Ignore)
			}
			logits := m.Head().Logits(nil, m.Hidden(nil, models.Batch{IDs: [][]int{e.IDs}}, models.Run{})).Data()[43:86]
			e.Targets[1] = slices.Index(logits, slices.Max(logits))
			list = append(list, e)
		}
		p, err := models.NewProbe(m, list)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	choose, report := part(), part()
	return &ByLoss[*models.Probe]{
		Subject: part(),
		Select:  func(ctx context.Context, p *models.Probe) (float64, error) { return p.On(choose).Loss(ctx) },
		Report:  func(ctx context.Context, p *models.Probe) (float64, error) { return p.On(report).Loss(ctx) },
		Methods: []heads.Method{heads.Random, heads.LeaveOneOut, heads.Gradient},
		Goal:    Goal{Left: 3}, Step: Affordable, Orders: 5, Seed: 1,
	}
}

func TestByLossKeeps(t *testing.T) {
	x := lossExperiment(t)
	var r reports.ByLoss
	left, err := x.Run(context.Background(), &r)
	if err != nil {
		t.Fatal(err)
	}
	if r.Heads != 6 || r.Left != 3 || len(r.Removed) != 3 || total(left.Layers()) != 3 || len(r.Tried) != 3 {
		t.Errorf("%d of %d heads are left, %d removed, %d in the model, by %d methods", r.Left, r.Heads, len(r.Removed), total(left.Layers()), len(r.Tried))
	}
	for i, tried := range r.Tried {
		if tried.Loss < r.Tried[r.Chosen].Loss {
			t.Errorf("method %d has a smaller loss than %d, which was chosen", i, r.Chosen)
		}
	}
	for _, l := range r.Layers {
		if !slices.Equal(l.Kept, left.Kept()[l.Name]) {
			t.Errorf("layer %s is said to keep %v, and keeps %v", l.Name, l.Kept, left.Kept()[l.Name])
		}
	}
	for s, want := range map[*models.Probe]reports.Number{x.Subject: r.Before, left: r.After} {
		if loss, err := x.Report(context.Background(), s); err != nil || reports.Number(loss) != want {
			t.Errorf("loss %v is said to be %v (%v)", loss, want, err)
		}
	}
	if r.Before == r.After || !(r.Random.Min < r.Random.Max) {
		t.Errorf("losses %v and %v, random orders %v", r.Before, r.After, r.Random)
	}
}

// TestByLossTolerates holds the goal of a tolerated growth against the loss of the parts: as
// many heads as possible go in a method's order, which is measured once.
func TestByLossTolerates(t *testing.T) {
	for _, drop := range []float64{0, 1, 2, 4, 10} {
		x := lossExperiment(t)
		x.Goal, x.Step, x.Methods, x.Orders = Goal{Drop: drop}, 0, []heads.Method{heads.Gradient}, 0
		var r reports.ByLoss
		left, err := x.Run(context.Background(), &r)
		if err != nil {
			t.Fatal(err)
		}
		within := func(p *models.Probe) bool {
			whole, err1 := x.Select(context.Background(), x.Subject)
			loss, err2 := x.Select(context.Background(), p)
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
			return loss <= (1+drop)*whole
		}
		if !within(left) {
			t.Errorf("drop %v: the loss is more than that", drop)
		}
		scores, err := heads.Importance(context.Background(), x.Subject, heads.ImportanceOptions{Methods: x.Methods})
		if err != nil {
			t.Fatal(err)
		}
		order := heads.Order(x.Subject.Layers(), scores[0], false)
		if !slices.Equal(r.Removed, order[:len(r.Removed)]) {
			t.Errorf("drop %v: %v went, want the first of %v", drop, r.Removed, order)
		}
		if n := len(r.Removed); n < len(order) {
			more, err := x.Subject.Without(order[:n+1])
			if err != nil {
				t.Fatal(err)
			}
			if within(more) {
				t.Errorf("drop %v: %d heads have gone, and one more could", drop, n)
			}
		} else if drop < 10 {
			t.Errorf("drop %v: all heads have gone", drop)
		}
	}
}

func TestByLossStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	x := lossExperiment(t)
	x.Progress = func(stage string, _, _ int) {
		if stage == "random orders" {
			cancel()
		}
	}
	if _, err := x.Run(ctx, new(reports.ByLoss)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
	x.Goal.Left = 1
	if _, err := x.Run(context.Background(), new(reports.ByLoss)); err == nil {
		t.Error("one head is left of two layers that may not be empty")
	}
}
