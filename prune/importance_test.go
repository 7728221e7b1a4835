package prune

import (
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

var nan = math.NaN()

// wantError fails unless err has exactly that message.
func wantError(t *testing.T, what string, err error, want string) {
	t.Helper()
	if err == nil || err.Error() != want {
		t.Errorf("%s:\nerror %v\nwant  %s", what, err, want)
	}
}

func TestMethodNames(t *testing.T) {
	if len(Methods()) != len(methodNames) {
		t.Errorf("%d methods have %d names", len(Methods()), len(methodNames))
	}
	for _, m := range Methods() {
		if got, err := ParseMethod(m.String()); got != m || err != nil {
			t.Errorf("%v is read as %v, %v", m, got, err)
		}
	}
	_, err := ParseMethod("best")
	wantError(t, "no method", err, `prune: unknown method "best", want one of [leave-one-out gradient taylor fisher weight-norm confidence random]`)
	if got := Method(99).String(); got != "Method(99)" {
		t.Errorf("an unknown method is %s", got)
	}
}

// The derivatives are in the comment on paper.
func TestImportanceByHand(t *testing.T) {
	root := math.Sqrt(22*22 + 10*10)
	both := math.Sqrt(1 + 25./9)
	for _, c := range []struct {
		method    Method
		normalize bool
		cuts      []int
		want      map[string][]float64
		passes    float64
	}{
		// Without a0: −(14−8); without a1: −(2+8); b0: −3; b1: −(−3−2).
		{LeaveOneOut, false, []int{2}, map[string][]float64{"a": {-6. / 3, -10. / 3}, "b": {-3. / 3, 5. / 3}}, 5},
		{Gradient, false, []int{2}, map[string][]float64{"a": {(14 + 8) / 3., (2 + 8) / 3.}, "b": {(3 + 0) / 3., (3 + 2) / 3.}}, 3},
		{Gradient, true, []int{2}, map[string][]float64{"a": {22 / root, 10 / root}, "b": {1 / both, 5. / 3 / both}}, 3},
		{Taylor, false, []int{2}, map[string][]float64{"a": {(14 - 8) / 3., (2 + 8) / 3.}, "b": {(3 + 0) / 3., (3 + 2) / 3.}}, 3},
		{Taylor, false, []int{1, 1}, map[string][]float64{"a": {(14 + 8) / 3., (2 + 8) / 3.}, "b": {(3 + 0) / 3., (3 + 2) / 3.}}, 3},
		{Fisher, false, []int{2}, map[string][]float64{"a": {(196 + 64) / 2., (4 + 64) / 2.}, "b": {(9 + 0) / 2., (9 + 4) / 2.}}, 3},
		{WeightNorm, true, []int{2}, map[string][]float64{"a": {5, 2}, "b": {1, 1}}, 0},
		// Two queries attend to two keys, one attends to one key. Padding does not count.
		{Confidence, false, []int{2}, map[string][]float64{"a": {2. / 3, 2. / 3}, "b": {2. / 3, 2. / 3}}, 1},
	} {
		list, err := Importance(t.Context(), paper(t, c.cuts...), ImportanceOptions{Methods: []Method{c.method}, Normalize: c.normalize})
		if err != nil {
			t.Fatal(err)
		}
		wantScores(t, c.method.String(), list[0].Values, c.want, 1e-6)
		if s := list[0]; len(list) != 1 || s.Method != c.method || s.Passes != c.passes || s.Time < 0 {
			t.Errorf("%v: %d results, method %v, %v passes in %v, want %v passes", c.method, len(list), s.Method, s.Passes, s.Time, c.passes)
		}
	}
}

// Methods that run together, in the requested order, give the same scores as each method alone. The three
// methods that use gradients share their passes.
func TestImportanceTogether(t *testing.T) {
	m := drawn(t, 2, 2, 1)
	last, all := 0, 0
	together, err := Importance(t.Context(), m, ImportanceOptions{Seed: 7, Progress: func(done, of int) {
		if done != last+1 {
			t.Errorf("progress goes from %d to %d", last, done)
		}
		last, all = done, of
	}})
	if err != nil {
		t.Fatal(err)
	}
	if want := 3 * (1 + 1 + 7); last != want || all != want {
		t.Errorf("%d batches of %d were run, want %d", last, all, want)
	}
	for i, method := range Methods() {
		alone, err := Importance(t.Context(), m, ImportanceOptions{Seed: 7, Methods: []Method{method}})
		if err != nil {
			t.Fatal(err)
		}
		if together[i].Method != method || !reflect.DeepEqual(together[i].Values, alone[0].Values) {
			t.Errorf("%v: %v together with others, %v alone", method, together[i], alone[0])
		}
	}
	other, _ := Importance(t.Context(), m, ImportanceOptions{Seed: 8, Methods: []Method{Random, Random}})
	if reflect.DeepEqual(other[0].Values, together[Random].Values) || !reflect.DeepEqual(other[0].Values, other[1].Values) {
		t.Error("random scores depend on more than the seed")
	}
	for _, v := range other[0].Flat(m.Layers()) {
		if !(v >= 0 && v < 1) {
			t.Errorf("a random score is %v", v)
		}
	}
}

// The division into batches changes the scores of Taylor and of no other method: an example's gradients do
// not depend on the batch, and only the loss is summed in float32.
func TestGranularity(t *testing.T) {
	methods := []Method{Gradient, Fisher, Confidence, LeaveOneOut, Taylor}
	within := []float64{0, 0, 0, 1e-5}
	var lists [2][]Scores
	for i, cuts := range [][]int{{5}, {1, 1, 1, 1, 1}} {
		var err error
		if lists[i], err = Importance(t.Context(), drawn(t, cuts...), ImportanceOptions{Methods: methods}); err != nil {
			t.Fatal(err)
		}
	}
	for i, w := range within {
		wantScores(t, methods[i].String(), lists[1][i].Values, lists[0][i].Values, w)
	}
	// In batches of one, no terms cancel.
	wantScores(t, "Taylor of each example", lists[1][4].Values, lists[1][0].Values, 0)
	if all, each := lists[0][4].Values["layer 0"][2], lists[1][4].Values["layer 0"][2]; !(all < 0.9*each) {
		t.Errorf("Taylor is %v in one batch and %v in five", all, each)
	}
}

// The definition of Taylor, computed from the gradient of the output projection.
func TestTaylorIsThatOfTheLastMap(t *testing.T) {
	m := drawn(t, 2, 3)
	want := map[string][]float64{}
	terms := 0
	tape := tensor.NewTape(tensor.Eval)
	for i := range m.cuts {
		tape.Reset()
		out := m.Run(tape, i, Pass{})
		tape.Backward(out.Loss, nil)
		terms += out.Terms
		for _, l := range m.layers {
			c, w := l.Config(), l.Out.Weight
			if want[c.Name] == nil {
				want[c.Name] = make([]float64, c.Heads)
			}
			sums := make([]float64, c.Heads)
			for j, v := range w.Data() {
				sums[j%w.Dim(1)/c.ValueSize] += float64(v) * float64(w.Grad().Data()[j])
			}
			for h, s := range sums {
				want[c.Name][h] += math.Abs(s)
			}
			w.ZeroGrad()
		}
	}
	for _, values := range want {
		for h := range values {
			values[h] /= float64(terms)
		}
	}
	got, err := Importance(t.Context(), m, ImportanceOptions{Methods: []Method{Taylor}})
	if err != nil {
		t.Fatal(err)
	}
	wantScores(t, "Taylor", got[0].Values, want, 1e-4)
}

func TestGradientIsThatOfTheGates(t *testing.T) {
	m := drawn(t, 1, 1, 1, 1, 1) // so that the loss of a batch is the loss of one example
	const step = 1. / 64
	want, terms := map[string][]float64{}, 0
	for _, l := range m.layers {
		c := l.Config()
		want[c.Name] = make([]float64, c.Heads)
		for h := range c.Heads {
			terms = 0
			for i := range m.cuts {
				loss := func(gate float32) float64 {
					gates := tensor.Full(1, c.Heads)
					gates.Data()[h] = gate
					out := m.Run(nil, i, Pass{Gates: func(layer string) *tensor.Tensor {
						if layer == c.Name {
							return gates
						}
						return nil
					}})
					return float64(out.Loss.Item())
				}
				want[c.Name][h] += math.Abs(loss(1+step)-loss(1-step)) / (2 * step)
				terms += len(m.data[i].x) / 2
			}
			want[c.Name][h] /= float64(terms)
		}
	}
	got, err := Importance(t.Context(), m, ImportanceOptions{Methods: []Method{Gradient}})
	if err != nil {
		t.Fatal(err)
	}
	wantScores(t, "gradient", got[0].Values, want, 2e-3)
}

// Importance does not change the gradients of the parameters.
func TestImportanceLeavesGradients(t *testing.T) {
	m := drawn(t, 5)
	tape := tensor.NewTape(tensor.Eval)
	tape.Backward(m.Run(tape, 0, Pass{}).Loss, nil)
	before := m.layers[0].Out.Weight.Grad().Clone()
	m.layers[1] = drawn(t, 5).layers[1] // this one has none
	if _, err := Importance(t.Context(), m, ImportanceOptions{}); err != nil {
		t.Fatal(err)
	}
	tensortest.Same(t, "gradient", m.layers[0].Out.Weight.Grad().Data(), before.Data())
	for name, p := range m.layers[1].Params() {
		if p.Grad() != nil {
			t.Errorf("%s has a gradient", name)
		}
	}
}

// talker is one layer of two heads that calls the observer with given weights.
type talker struct {
	layer   *attn.MultiHead
	weights []*tensor.Tensor
	queries []int
}

func (m *talker) Layers() []attn.LayerHeads { return []attn.LayerHeads{m.layer.Heads()} }
func (m *talker) Batches() []int            { return []int{2} }

func (m *talker) Run(_ *tensor.Tape, _ int, p Pass) Outcome {
	for _, w := range m.weights {
		p.Observe("a", w)
	}
	out := Outcome{Loss: tensor.Zeros(), Terms: 1}
	if m.queries != nil {
		out.Queries = func(string) []int { return m.queries }
	}
	return out
}

// A layer may run row by row, with a growing number of keys. Rows that are padding do not count, nor do
// rows that attend to no key.
func TestConfidenceStepByStep(t *testing.T) {
	m := &talker{layer: paper(t).layers[0], queries: []int{3, 1}, weights: []*tensor.Tensor{
		tensor.New([]float32{ // [B=2 H=2 1 1]
			1, 0,
			1, 1,
		}, 2, 2, 1, 1),
		tensor.New([]float32{ // [B=2 H=2 2 3]
			0.5, 0.25, 0.25, 0, 0, 0, // the second row has no weights
			0.25, 0.75, 0, 0.1, 0.2, 0.7,
			9, 9, 9, 9, 9, 9, // padding
			9, 9, 9, 9, 9, 9,
		}, 2, 2, 2, 3),
	}}
	options := ImportanceOptions{Methods: []Method{Confidence}}
	got, err := Importance(t.Context(), m, options)
	if err != nil {
		t.Fatal(err)
	}
	// Head 0: 1 and ½, and 1 in the second example. Head 1: ¾, 0.7 and 1.
	wantScores(t, "confidence", got[0].Values, map[string][]float64{"a": {2.5 / 3, 2.45 / 3}}, 1e-6)

	m.weights, m.queries = []*tensor.Tensor{tensor.New([]float32{0, 0.5, 0, 0.75}, 2, 2, 1, 1)}, nil
	if got, err = Importance(t.Context(), m, options); err != nil {
		t.Fatal(err)
	}
	wantScores(t, "confidence where nothing is padding", got[0].Values, map[string][]float64{"a": {nan, 0.625}}, 1e-6)

	m.weights[0] = tensor.Zeros(2, 3, 1, 1)
	err = tensor.Catch(func() { Importance(t.Context(), m, options) })
	wantError(t, "more heads", err, "prune: Importance: weights has heads 3, want H=2")
}

// A layer without effect has scores of 0, normalized or not.
func TestNormalizeZeros(t *testing.T) {
	m := paper(t, 2)
	clear(m.layers[1].Out.Weight.Data())
	got, err := Importance(t.Context(), m, ImportanceOptions{Methods: []Method{Fisher}, Normalize: true})
	if err != nil {
		t.Fatal(err)
	}
	norm := math.Hypot(130, 34)
	wantScores(t, "normalised", got[0].Values, map[string][]float64{"a": {130 / norm, 34 / norm}, "b": {0, 0}}, 1e-6)
}

// A loss that is not finite makes all scores that depend on it NaN.
func TestImportanceOfNaN(t *testing.T) {
	for _, bad := range []float32{float32(nan), float32(math.Inf(1))} {
		m := paper(t, 1, 1)
		m.data[1].y[0] = bad
		list, err := Importance(t.Context(), m, ImportanceOptions{Normalize: true})
		if err != nil {
			t.Fatal(err)
		}
		for i, method := range Methods() {
			isNaN := slices.ContainsFunc(list[i].Flat(m.Layers()), math.IsNaN)
			isNumber := slices.ContainsFunc(list[i].Flat(m.Layers()), func(v float64) bool { return !math.IsNaN(v) })
			if free := method == WeightNorm || method == Random || method == Confidence; free == isNaN || free != isNumber {
				t.Errorf("a loss of %v: %v gives %v", bad, method, list[i].Values)
			}
		}
	}
}

// broken is a model whose loss is NaN or infinite although its gradients are finite.
type broken struct {
	*toy
	added float64
}

func (m broken) Run(t *tensor.Tape, i int, p Pass) Outcome {
	o := m.toy.Run(t, i, p)
	o.Loss = tensor.Shift(t, o.Loss, float32(m.added))
	return o
}

// If the loss is not finite, the scores from gradients are NaN, even where the gradients are finite.
func TestImportanceOfBrokenLoss(t *testing.T) {
	for _, added := range []float64{nan, math.Inf(1), math.Inf(-1)} {
		m := broken{paper(t, 1, 1), added}
		list, err := Importance(t.Context(), m, ImportanceOptions{Methods: []Method{Gradient, Taylor, Fisher}})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			wantScores(t, s.Method.String(), s.Values, map[string][]float64{"a": {nan, nan}, "b": {nan, nan}}, 0)
		}
	}
}

// After an interruption, the completed measurements are returned.
func TestImportanceInterrupted(t *testing.T) {
	m := paper(t, 1, 1)
	whole, err := Importance(t.Context(), m, ImportanceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		after  int // number of batches
		passes float64
		left   map[string][]float64 // by LeaveOneOut
	}{
		{0, 0, map[string][]float64{"a": {nan, nan}, "b": {nan, nan}}},
		{4, 0, map[string][]float64{"a": {nan, nan}, "b": {nan, nan}}},
		{9, 2.5, map[string][]float64{"a": {-2, nan}, "b": {nan, nan}}},
		{12, 4, map[string][]float64{"a": {-2, -10. / 3}, "b": {-1, nan}}},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		if c.after == 0 {
			cancel()
		}
		list, err := Importance(ctx, m, ImportanceOptions{Progress: func(done, _ int) {
			if done == c.after {
				cancel()
			}
		}})
		if !errors.Is(err, context.Canceled) || len(list) != len(Methods()) {
			t.Fatalf("after %d batches: %d results, error %v", c.after, len(list), err)
		}
		wantScores(t, "leave-one-out", list[LeaveOneOut].Values, c.left, 1e-6)
		if list[LeaveOneOut].Passes != c.passes {
			t.Errorf("after %d batches: %v passes, want %v", c.after, list[LeaveOneOut].Passes, c.passes)
		}
		for _, method := range Methods()[1:] {
			if c.after > 0 || method == WeightNorm || method == Random {
				wantScores(t, method.String(), list[method].Values, whole[method].Values, 0)
			}
		}
		cancel()
	}
}

// A subject that does not use the tape is not run after an interruption.
func TestImportanceInterruptedWithoutTape(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m := &talker{layer: paper(t).layers[0]}
	if _, err := Importance(ctx, m, ImportanceOptions{Methods: []Method{Confidence}}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

// deaf is a model that ignores the gates and the observer of a Pass.
type deaf struct{ *toy }

func (m deaf) Run(t *tensor.Tape, i int, _ Pass) Outcome { return m.toy.Run(t, i, Pass{}) }

func TestImportanceErrors(t *testing.T) {
	twice, none, empty := paper(t, 2), paper(t, 2), paper(t)
	twice.layers[1] = twice.layers[0]
	none.layers = nil
	silent := paper(t, 1)
	silent.data[0] = text{}
	const noTerms = "prune: Importance: the data contain nothing to predict"
	const noGates = `prune: Importance: layer "a" was run without its gates`
	for _, c := range []struct {
		what   string
		s      Subject
		method Method
		want   string
	}{
		{"no layers", none, Random, "prune: Importance: the model has no attention layers"},
		{"one name", twice, Random, `prune: Importance: two layers are named "a"`},
		{"no method", empty, 99, "prune: Importance: unknown method 99"},
		{"no data", empty, Confidence, noTerms},
		{"no terms, gradient", silent, Gradient, noTerms},
		{"no terms, leave-one-out", silent, LeaveOneOut, noTerms},
		{"no gates, gradient", deaf{paper(t, 2)}, Gradient, noGates},
		{"no gates, leave-one-out", deaf{paper(t, 2)}, LeaveOneOut, noGates},
		{"no observer", deaf{paper(t, 2)}, Confidence, `prune: Importance: layer "a" was run without an observer`},
	} {
		list, err := Importance(t.Context(), c.s, ImportanceOptions{Methods: []Method{c.method}})
		wantError(t, c.what, err, c.want)
		if list != nil {
			t.Errorf("%s: scores %v", c.what, list)
		}
	}
	if _, err := Importance(t.Context(), empty, ImportanceOptions{Methods: []Method{WeightNorm, Random}}); err != nil {
		t.Errorf("weights without data: %v", err)
	}
}

// Layers that have lost all their heads have no scores and do not affect other layers.
func TestImportanceOfWhatIsLeft(t *testing.T) {
	m := paper(t, 2)
	want := map[string][]float64{"a": {-2, -10. / 3}, "b": {}}
	m, err := m.Without([]Head{{"b", 0}, {"b", 1}})
	if err != nil {
		t.Fatal(err)
	}
	list, err := Importance(t.Context(), m, ImportanceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantScores(t, "leave-one-out", list[0].Values, want, 1e-6)
	if m, err = m.Without([]Head{{"a", 0}, {"a", 1}}); err != nil {
		t.Fatal(err)
	}
	if list, err = Importance(t.Context(), m, ImportanceOptions{}); err != nil || len(list[0].Flat(m.Layers())) != 0 {
		t.Errorf("no heads at all: %v, %v", list, err)
	}
}

func TestSpearman(t *testing.T) {
	for _, c := range []struct {
		a, b []float64
		want float64
	}{
		{[]float64{1, 2, 3, 4}, []float64{10, 20, 30, 1e9}, 1},
		{[]float64{1, 2, 3, 4}, []float64{4, 3, 2, -1}, -1},
		{[]float64{1, 2, 3}, []float64{2, 1, 3}, 0.5}, // 1 − 6·2/(3·8)
		// Ranks 0 1½ 1½ 3 and 0 1 2 3: Σ dd = 2¼ + 0 + 0 + 2¼ = 4½ over √(4½·5).
		{[]float64{1, 2, 2, 3}, []float64{1, 2, 3, 4}, 4.5 / math.Sqrt(4.5*5)},
		{[]float64{1, nan, 2, 3}, []float64{1, 5, 2, 9}, 1},
		{[]float64{1, nan, 3}, []float64{nan, 5, 2}, nan},
		{[]float64{1, 1, 1}, []float64{1, 2, 3}, nan},
		{nil, nil, nan},
	} {
		if got := Spearman(c.a, c.b); !(math.Abs(got-c.want) < 1e-12) && !(got != got && c.want != c.want) {
			t.Errorf("Spearman(%v, %v) is %v, want %v", c.a, c.b, got, c.want)
		}
	}
	err := tensor.Catch(func() { Spearman([]float64{1}, nil) })
	wantError(t, "lengths", err, "prune: Spearman: b has 0 values, want 1 as in a")
}

func TestFlat(t *testing.T) {
	s := Scores{Values: map[string][]float64{"b": {3}, "a": {1, 2}}}
	got := s.Flat(paper(t).Layers())
	if len(got) != 4 || !slices.Equal(got[:3], []float64{1, 2, 3}) || !math.IsNaN(got[3]) {
		t.Errorf("flat scores are %v", got)
	}
}

// part is a subject that has only the first layer of its model.
type part struct{ *toy }

func (p part) Layers() []attn.LayerHeads { return p.toy.Layers()[:1] }

func TestImportanceOfSomeLayers(t *testing.T) {
	whole, err := Importance(t.Context(), paper(t, 2), ImportanceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	some, err := Importance(t.Context(), part{paper(t, 2)}, ImportanceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range some {
		wantScores(t, s.Method.String(), s.Values, map[string][]float64{"a": whole[i].Values["a"]}, 0)
	}
}
