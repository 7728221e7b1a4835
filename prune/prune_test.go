package prune

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn"
)

// bush is a model whose heads differ only in the norms of their columns. In layer b, heads 0 and 1 share
// keys and values, and so do heads 2 and 3.
//
//	a0 1   a1 5   a2 3   b0 b1 2 + 2   b2 b3 1.5 + 1
func bush(t *testing.T) *toy {
	return &toy{layers: []*attn.MultiHead{
		uniformLayer(t, "a", 3, 3, nil, []float32{0, 3, 3, 1, 4, 0}),
		uniformLayer(t, "b", 2, 4, nil, []float32{2, 0, 0, 1, 0, 2, 1.5, 0}),
	}}
}

// list returns heads as "a0 b3".
func list(heads []Head) string {
	names := make([]string, len(heads))
	for i, h := range heads {
		names[i] = fmt.Sprint(h.Layer, h.Number)
	}
	return strings.Join(names, " ")
}

// parse is the inverse of list.
func parse(names string) []Head {
	heads := []Head{}
	for _, name := range strings.Fields(names) {
		heads = append(heads, Head{name[:1], int(name[1] - '0')})
	}
	return heads
}

func TestOrder(t *testing.T) {
	layers := bush(t).Layers()
	for _, c := range []struct {
		a, b         []float64
		order, empty string
	}{
		{[]float64{1, 5, 3}, []float64{2, 2, 1, 1.5}, "a0 b2 b3 a2", "a0 b2 b3 a2 b0 b1 a1"},
		{[]float64{1, 1, 1}, []float64{0, 1, 1, 0}, "a0 a1 b0 b1", "a0 a1 a2 b0 b1 b2 b3"}, // ties
		{[]float64{nan, -1, nan}, []float64{2, nan, 9, 9}, "a1 b2 b3 a0", "a1 b2 b3 a0 a2 b0 b1"},
		{nil, []float64{0, 0}, "b0 b1 a0 a1", "b0 b1 a0 a1 a2 b2 b3"},
		{[]float64{math.Inf(-1), 0, 1}, []float64{1, -9, 1, -9}, "a0 b0 b1 a1", "a0 b0 b1 b2 b3 a1 a2"},
		{[]float64{3e-20, 1e-20, 2e-20}, []float64{1, 1, 1, 1}, "a1 a2 b0 b1", "a1 a2 a0 b0 b1 b2 b3"}, // tiny scores
	} {
		s := Scores{Values: map[string][]float64{"a": c.a, "b": c.b}}
		if got := list(Order(layers, s, false)); got != c.order {
			t.Errorf("order %s, want %s", got, c.order)
		}
		if got := list(Order(layers, s, true)); got != c.empty {
			t.Errorf("order to empty layers %s, want %s", got, c.empty)
		}
	}
}

// columns returns the norms of the columns of the remaining heads.
func columns(t *testing.T, m *toy) string {
	t.Helper()
	scores, err := Importance(t.Context(), m, ImportanceOptions{Methods: []Method{WeightNorm}})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%.3g", scores[0].Flat(m.Layers()))
}

func TestPrune(t *testing.T) {
	// tune makes the last remaining head of layer a unimportant.
	tune := func(_ context.Context, m *toy) (*toy, error) {
		w := m.layers[0].Out.Weight
		for i := range 2 {
			w.Data()[(i+1)*w.Dim(1)-1] /= 100
		}
		return m, nil
	}
	atLeast := func(n int) func(context.Context, *toy) (bool, error) {
		return func(_ context.Context, m *toy) (bool, error) {
			return len(Scores{}.Flat(m.Layers())) >= n, nil
		}
	}
	atMost := func(n int) func(context.Context, *toy) (bool, error) {
		return func(_ context.Context, m *toy) (bool, error) {
			return len(Scores{}.Flat(m.Layers())) <= n, nil
		}
	}
	for _, c := range []struct {
		what    string
		o       Options[*toy]
		removed string
		left    string // norms
		reached bool
		rounds  int // of scoring
		steps   string
	}{
		{"one shot", Options[*toy]{Keep: 4}, "a0 b2 b3", "[5 3 2 2]", true, 1, "4"},
		{"a group that is too large", Options[*toy]{Keep: 5}, "a0 a2", "[5 2 2 1.5 1]", true, 1, "5"},
		{"nothing to do", Options[*toy]{Keep: 7}, "", "[1 5 3 2 2 1.5 1]", true, 0, ""},
		{"as few as may be", Options[*toy]{Keep: 3}, "a0 b2 b3 a2", "[5 2 2]", true, 1, "3"},
		{"none left", Options[*toy]{EmptyLayers: true}, "a0 b2 b3 a2 b0 b1 a1", "[]", true, 1, "0"},
		{"groups do not allow it", Options[*toy]{Keep: 1, EmptyLayers: true, Order: parse("a0 a1 a2 b0 b1")}, "a0 a1 a2 b0 b1", "[1.5 1]", true, 0, "2"},

		{"steps", Options[*toy]{Keep: 3, Step: 1}, "a0 b2 b3 a2", "[5 2 2]", true, 1, "6 4 3"},
		{"larger steps", Options[*toy]{Keep: 3, Step: 2}, "a0 b2 b3 a2", "[5 2 2]", true, 1, "4 3"},
		{"scored again", Options[*toy]{Keep: 3, Step: 1, Rescore: true}, "a0 b2 b3 a2", "[5 2 2]", true, 3, "6 4 3"},
		// Tuning reduces a2 to 0.03, so it is removed next. Then tuning reduces a1 to 0.05, but a1 must
		// stay.
		{"tuned and scored again", Options[*toy]{Keep: 3, Step: 1, Rescore: true, Tune: tune}, "a0 a2 b2 b3", "[0.0005 2 2]", true, 3, "6 5 3"},
		{"tuned", Options[*toy]{Keep: 3, Step: 1, Tune: tune}, "a0 b2 b3 a2", "[0.05 2 2]", true, 1, "6 4 3"},

		{"within", Options[*toy]{Keep: 3, Step: 1, Within: atLeast(5)}, "a0", "[5 3 2 2 1.5 1]", false, 1, "6"},
		{"never within", Options[*toy]{Keep: 3, Within: atLeast(5)}, "", "[1 5 3 2 2 1.5 1]", false, 1, ""},
		{"until", Options[*toy]{Keep: 3, Step: 1, Until: atMost(5)}, "a0 b2 b3", "[5 3 2 2]", true, 1, "6 4"},
		{"at once", Options[*toy]{Keep: 3, Step: 1, Until: atMost(7)}, "", "[1 5 3 2 2 1.5 1]", true, 0, ""},

		{"order", Options[*toy]{Keep: 3, Step: 1, Order: parse("b1 b0 a2 b2 b3 a0 a1")}, "b1 b0 a2 a0", "[5 1.5 1]", true, 0, "5 4 3"},
		{"order that ends", Options[*toy]{Keep: 3, Order: parse("a2")}, "a2", "[1 5 2 2 1.5 1]", false, 0, "6"},
		{"empty order", Options[*toy]{Keep: 3, Order: parse("")}, "", "[1 5 3 2 2 1.5 1]", false, 0, ""},
	} {
		var steps []string
		c.o.Method = WeightNorm
		c.o.Importance.Methods = []Method{LeaveOneOut} // ignored
		c.o.Progress = func(left, all int) {
			steps = append(steps, fmt.Sprint(left))
			if all != 7 {
				t.Errorf("%s: %d heads at first", c.what, all)
			}
		}
		m := bush(t)
		got, err := Heads(t.Context(), m, c.o)
		if err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		if list(got.Removed) != c.removed || got.Reached != c.reached || len(got.Scores) != c.rounds || strings.Join(steps, " ") != c.steps {
			t.Errorf("%s: removed %s, reached: %v, %d rounds, steps %v, want %s, %v, %d, %v", c.what,
				list(got.Removed), got.Reached, len(got.Scores), steps, c.removed, c.reached, c.rounds, c.steps)
		}
		if left := columns(t, got.Subject); left != c.left {
			t.Errorf("%s: %s is left, want %s", c.what, left, c.left)
		}
		if whole := columns(t, m); whole != "[1 5 3 2 2 1.5 1]" {
			t.Errorf("%s: Heads changed the subject to %s", c.what, whole)
		}
	}
}

// An order computed from scores and a given order remove the same heads.
func TestPruneByLoss(t *testing.T) {
	m := drawn(t, 3, 2)
	scores, err := Importance(t.Context(), m, ImportanceOptions{Methods: []Method{LeaveOneOut}})
	if err != nil {
		t.Fatal(err)
	}
	measured, err := Heads(t.Context(), m, Options[*toy]{Keep: 4, Step: 1})
	if err != nil {
		t.Fatal(err)
	}
	given, err := Heads(t.Context(), m, Options[*toy]{Keep: 4, Order: Order(m.Layers(), scores[0], false)})
	if err != nil {
		t.Fatal(err)
	}
	if len(measured.Removed) != 2 || !slices.Equal(measured.Removed, given.Removed) {
		t.Errorf("removed %v, and %v by the order", measured.Removed, given.Removed)
	}
}

// A layer that has already lost its heads is not changed.
func TestPruneAgain(t *testing.T) {
	first, err := Heads(t.Context(), bush(t), Options[*toy]{Keep: 3, Order: parse("b0 b1 b2 b3"), EmptyLayers: true})
	if err != nil {
		t.Fatal(err)
	}
	again, err := Heads(t.Context(), first.Subject, Options[*toy]{Keep: 1, Method: WeightNorm})
	if err != nil || list(again.Removed) != "a0 a2" || columns(t, again.Subject) != "[5]" || !again.Reached {
		t.Errorf("removed %v, reached: %v, error %v", again.Removed, again.Reached, err)
	}
}

// Steps that were completed before an interruption are kept.
func TestPruneStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	got, err := Heads(ctx, bush(t), Options[*toy]{Keep: 3, Step: 1, Method: WeightNorm, Progress: func(left, _ int) {
		if left == 4 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || list(got.Removed) != "a0 b2 b3" || columns(t, got.Subject) != "[5 3 2 2]" || got.Reached {
		t.Errorf("removed %v, reached: %v, error %v", got.Removed, got.Reached, err)
	}

	failed := errors.New("failed")
	once := func() func() error { // fails from the second call on
		calls := 0
		return func() error {
			if calls++; calls > 1 {
				return failed
			}
			return nil
		}
	}
	tune, within, until := once(), once(), once()
	for what, o := range map[string]Options[*toy]{
		"tune":   {Tune: func(_ context.Context, m *toy) (*toy, error) { return m, tune() }},
		"within": {Within: func(context.Context, *toy) (bool, error) { return true, within() }},
		"until":  {Until: func(context.Context, *toy) (bool, error) { return false, until() }},
	} {
		o.Keep, o.Step, o.Method = 3, 1, WeightNorm
		got, err := Heads(t.Context(), bush(t), o)
		if err != failed || list(got.Removed) != "a0" || columns(t, got.Subject) != "[5 3 2 2 1.5 1]" || got.Reached {
			t.Errorf("%s fails: removed %v, reached: %v, error %v", what, got.Removed, got.Reached, err)
		}
	}

	// Scores measured before an interruption are returned as well.
	ctx, cancel = context.WithCancel(t.Context())
	m := paper(t, 2)
	stopped, err := Heads(ctx, m, Options[*toy]{Keep: 3, Importance: ImportanceOptions{Progress: func(done, _ int) {
		if done == 2 {
			cancel()
		}
	}}})
	if !errors.Is(err, context.Canceled) || len(stopped.Scores) != 1 || len(stopped.Removed) != 0 || stopped.Subject != m {
		t.Errorf("%+v, error %v", stopped, err)
	}
	wantScores(t, "interrupted", stopped.Scores[0].Values, map[string][]float64{"a": {-2, nan}, "b": {nan, nan}}, 1e-6)
}

func TestPruneErrors(t *testing.T) {
	other := func(_ context.Context, m *toy) (*toy, error) { return bush(t), nil }
	for _, c := range []struct {
		what string
		o    Options[*toy]
		want string
	}{
		{"too many", Options[*toy]{Keep: 8}, "prune: Heads: Keep is 8, want 3 to 7"},
		{"too few", Options[*toy]{Keep: 2}, "prune: Heads: Keep is 2, want 3 to 7"},
		{"negative", Options[*toy]{Keep: -1, EmptyLayers: true}, "prune: Heads: Keep is -1, want 0 to 7"},
		{"step", Options[*toy]{Keep: 3, Step: -1}, "prune: Heads: Step is -1, want at least 0"},
		{"method", Options[*toy]{Keep: 3, Method: 99}, "prune: Heads: unknown method 99"},
		{"unknown layer", Options[*toy]{Keep: 3, Order: parse("a0 c1")}, `prune: Heads: head 1 of layer "c" in the order is not in the model`},
		{"unknown head", Options[*toy]{Keep: 3, Order: parse("a3")}, `prune: Heads: head 3 of layer "a" in the order is not in the model`},
		{"twice", Options[*toy]{Keep: 3, Order: parse("a0 a1 a0")}, `prune: Heads: head 0 of layer "a" in the order is listed twice`},
		{"apart", Options[*toy]{Keep: 3, Order: parse("a0 b3 b1 b2 b0")}, `prune: Heads: head 3 of layer "b" in the order is separated from the heads that share its keys and values`},
		{"alone", Options[*toy]{Keep: 3, Order: parse("a0 b3")}, `prune: Heads: head 3 of layer "b" in the order is separated from the heads that share its keys and values`},
		{"another model", Options[*toy]{Keep: 3, Step: 1, Method: WeightNorm, Tune: other}, `prune: Heads: layer "a" has 3 heads after a step, want 2`},
		{"data", Options[*toy]{Keep: 3}, errNoTerms.Error()},
	} {
		_, err := Heads(t.Context(), bush(t), c.o)
		wantError(t, c.what, err, c.want)
	}
	_, err := Heads(t.Context(), new(toy), Options[*toy]{})
	wantError(t, "no layers", err, "prune: Heads: the model has no attention layers")
}
