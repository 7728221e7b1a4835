//go:build !js || translator

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/probe"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/train"
)

// answered runs a call and returns its result and the frames before it.
func answered[T any](t *testing.T, name, args string) (result T, frames []T) {
	t.Helper()
	result = call[T](t, name, json.RawMessage(args), func(f T) { frames = append(frames, f) })
	return result, frames
}

// failure returns the error of a call.
func failure(name, args string) (text string) {
	answer(context.Background(), 1, name, []byte(args), func(m message) { text = m.Error })
	return text
}

// pageState is what a page reads of a trainingState.
type pageState struct {
	Step, Steps int
	Losses      []float64
	Shown       struct {
		Input, Output string
		Layers        []struct {
			Name, Kind    string
			Queries, Keys []string
			Numbers       []int
			Heads         [][]float64
		}
	}
}

// reverseLosses are the losses of the first steps of examples/reverse, computed on amd64 with AVX-512. Another
// instruction set, WebAssembly included, rounds differently: lossTolerance is the limit that the page states for them.
// Later, training amplifies differences, as it does between any two processors.
var reverseLosses = []float64{
	3.7902, 3.7394, 3.9552, 3.8476, 3.9309, 3.8349, 3.7889, 3.9204, 3.6201, 3.6037,
	3.6225, 3.7039, 3.4685, 3.3227, 3.3271, 3.3514, 3.1742, 3.2273, 3.2131, 3.07,
}

const lossTolerance = 0.0002

// TestTraining compares the training of a page with package train, and with the losses of another machine.
func TestTraining(t *testing.T) {
	start, _ := answered[pageState](t, "train.start", `{"task": "reverse", "seed": 1}`)
	if n := nn.Count(current.model); start.Step != 0 || start.Steps != 1250 || n != 22_400 {
		t.Errorf("step %d of %d, %d parameters", start.Step, start.Steps, n)
	}
	if got := start.Shown; got.Input != "abcdefgh" || len(got.Layers) != 3 || len(got.Layers[2].Heads) != 2 {
		t.Errorf("%q, %d layers", got.Input, len(got.Layers))
	}
	var losses []float64
	for _, to := range []int{5, 6, 20} { // a pause, one step, and the rest
		end, frames := answered[pageState](t, "train.run", fmt.Sprintf(`{"to": %d}`, to))
		for _, f := range frames {
			losses = append(losses, f.Losses...)
		}
		losses = append(losses, end.Losses...)
		if end.Step != to || len(losses) != to {
			t.Errorf("step %d with %d losses, want step %d", end.Step, len(losses), to)
		}
	}

	// What examples/reverse does.
	rng := rand.New(rand.NewPCG(1, 2))
	pairs := reversed(4000, rng)
	reversed(100, rng)
	letters := seq2seq.BuildVocabulary([]string{"abcdefghij"}, seq2seq.Chars, 0)
	config := models.TranslatorConfig{
		Arch: models.Transformer, Score: "scaled", Width: 32, Heads: 2, Layers: 1, Hidden: 64,
	}
	model, err := models.NewTranslator(config, letters, letters, rng)
	if err != nil {
		t.Fatal(err)
	}
	trainer, err := train.NewTrainer(model, pairs, train.Settings{
		Epochs: 10, Batch: 32, LR: 0.003, Warmup: 100, Clip: 1, Seed: 3,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	_ = trainer.Run(ctx, func(p train.Progress) error {
		if i := p.Total - 1; losses[i] != float64(rounded(p.StepLoss)) {
			t.Errorf("step %d: loss %v, package train has %v", p.Total, losses[i], p.StepLoss)
		}
		if p.Total == len(losses) {
			cancel()
		}
		return nil
	})
	for i, want := range reverseLosses {
		if math.Abs(losses[i]-want) > lossTolerance {
			t.Errorf("step %d: loss %v, want %v within %v", i+1, losses[i], want, lossTolerance)
		}
	}
	t.Logf("%v", losses)
}

// TestTrainingOptions trains a step of every network, score and task.
func TestTrainingOptions(t *testing.T) {
	for _, args := range []string{
		`{"task": "reverse", "seed": 2, "arch": "gru", "score": "additive"}`,
		`{"task": "reverse", "seed": 2, "arch": "gru", "score": "dot"}`,
		`{"task": "reverse", "arch": "transformer", "score": "gaussian"}`,
		`{"task": "reverse", "score": "bilinear"}`,
		`{"task": "reverse", "score": "cosine"}`,
	} {
		answered[pageState](t, "train.start", args)
		end, _ := answered[pageState](t, "train.run", `{"to": 1}`)
		if end.Step != 1 || len(end.Losses) != 1 || math.IsNaN(end.Losses[0]) {
			t.Errorf("%s: step %d, losses %v", args, end.Step, end.Losses)
		}
	}
	look, _ := answered[pageState](t, "train.look", `{"text": "jih", "target": "hij"}`)
	l := look.Shown.Layers[len(look.Shown.Layers)-1]
	if l.Kind != "cross" || strings.Join(l.Queries, " ") != "h i j ∎" {
		t.Errorf("%s attention, queries %q", l.Kind, l.Queries)
	}
	for args, want := range map[string]string{
		`{"task": "none"}`: "no task", `{"task": "reverse", "seeds": 1}`: "unknown field",
		`{"task": "reverse", "score": "x"}`: "want one of scaled",
		`{"task": "reverse", "seed": -1}`:   "has -1 where a whole number", `[`: "ends in the middle",
	} {
		if got := failure("train.start", args); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
	if got := failure("train.nothing", ""); !strings.Contains(got, "no call") {
		t.Error(got)
	}
}

// TestCancel pauses a training by ending its call, and resumes it.
func TestCancel(t *testing.T) {
	answered[pageState](t, "train.start", `{"task": "reverse", "seed": 1}`)
	ctx, cancel := context.WithCancel(context.Background())
	old := pause
	defer func() { pause = old }()
	steps := 0
	pause = func() {
		if steps++; steps == 3 {
			cancel()
		}
	}
	var last message
	answer(ctx, 1, "train.run", []byte(`{}`), func(m message) { last = m })
	if s, ok := last.Result.(*trainingState); !ok || s.Step != 3 {
		t.Fatalf("%+v, want step 3", last)
	}
	if end, _ := answered[pageState](t, "train.run", `{"to": 4}`); end.Step != 4 {
		t.Errorf("step %d after a pause at 3", end.Step)
	}
}

// TestTexts gives texts to the models that nobody has in mind.
func TestTexts(t *testing.T) {
	answered[pageState](t, "train.start", `{"task": "reverse", "seed": 1}`)
	long, _ := json.Marshal(map[string]string{"text": strings.Repeat("x", 10_000)})
	for _, name := range []string{"dates.look", "train.look"} {
		for args, want := range map[string]string{
			`{"text": ""}`: "the text is empty", `{"text": " \t\n"}`: "the text is empty",
			string(long): "the text has 10,000 characters; the model reads at most 64",
		} {
			if got := failure(name, args); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		for _, text := range []string{"🎉👩‍👩‍👧", "\u0000", "٥ مارس ٢٠١٩", "1"} {
			args, _ := json.Marshal(map[string]string{"text": text})
			if got := failure(name, string(args)); got != "" {
				t.Errorf("%s %s: %s", name, args, got)
			}
		}
	}
	got, _ := answered[shown](t, "dates.look", `{"text": "5 March 2019 🎉"}`)
	if len(got.Unknown) != 1 || got.Unknown[0] != "🎉" {
		t.Errorf("unknown characters %q", got.Unknown)
	}
}

// TestDates compares the calls of the page with packages models and prune.
func TestDates(t *testing.T) {
	m, err := shipped()
	if err != nil {
		t.Fatal(err)
	}
	got, _ := answered[shown](t, "dates.look", `{"text": "Tuesday, 5 March 2019"}`)
	if got.Output != "2019-03-05" || len(got.Layers) != 3 {
		t.Errorf("%q, %d layers", got.Output, len(got.Layers))
	}
	ctx := context.Background()
	off := []prune.Head{{Layer: "decoder.0.self", Number: 0}, {Layer: "encoder.0.self", Number: 1}}
	small, err := m.Keep(map[string][]int{"decoder.0.self": {1, 2, 3}, "encoder.0.self": {0, 2, 3}})
	if err != nil {
		t.Fatal(err)
	}
	args, _ := json.Marshal(map[string]any{"off": off, "dates": 60})
	q, frames := answered[quality](t, "dates.measure", string(args))
	want, err := train.Evaluate(ctx, small, m.test[:60], 1)
	if err != nil {
		t.Fatal(err)
	}
	exact, distance := 60*float64(want.ExactMatch), math.Abs(float64(q.Loss)-float64(want.Loss))
	if q.Texts != 60 || float64(q.Exact) != exact || distance > 1e-6 || len(frames) != 2 {
		t.Errorf("%+v after %d frames, want %+v", q, len(frames), want)
	}
	s, _ := answered[speed](t, "dates.speed", string(args))
	if s.Parameters != nn.Count(small) || s.WholeParameters != nn.Count(m) || s.Seconds <= 0 || s.Faster[1] > s.Faster[0] || s.Faster[0] > s.Faster[2] {
		t.Errorf("%+v, want %d of %d parameters", s, nn.Count(small), nn.Count(m))
	}
	type ranking struct {
		Heads []headScore
		Order []prune.Head
	}
	for _, method := range prune.Methods() {
		args := `{"dates": 20, "method": "` + method.String() + `"}`
		r, _ := answered[ranking](t, "dates.importance", args)
		whole, err := train.Probe(m.Model, m.test[:20])
		if err != nil {
			t.Fatal(err)
		}
		scores, err := prune.Importance(ctx, whole, prune.ImportanceOptions{Methods: []prune.Method{method}})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range scores[0].Flat(whole.Layers()) {
			if float64(r.Heads[i].Score) != want {
				t.Errorf("%s: %+v, want %v", method, r.Heads[i], want)
			}
		}
		if method == prune.Gradient { // scored again after each removal
			args := `{"dates": 20, "again": true, "method": "gradient"}`
			again, frames := answered[ranking](t, "dates.importance", args)
			result, err := prune.Heads(ctx, whole, prune.Options[*probe.Probe]{
				Method: method, Step: 1, Rescore: true, EmptyLayers: true,
			})
			if err != nil || !slices.Equal(again.Order, result.Removed) || len(again.Order) != 12 || len(frames) < 12 {
				t.Errorf("scored again: order %v, want %v, %d frames, %v", again.Order, result.Removed, len(frames), err)
			}
			if slices.Equal(again.Order, r.Order) {
				t.Error("scoring again changes nothing: the test shows nothing")
			}
		}
		if len(r.Order) != 12 {
			t.Errorf("%s orders %d heads", method, len(r.Order))
		}
	}
	for args, want := range map[string]string{
		`{"dates": 0}`: "0 dates", `{"dates": 1001}`: "1001 dates", `{"dates": 5, "off": [{"layer": "x", "number": 0}]}`: "",
	} {
		if got := failure("dates.measure", args); !strings.HasPrefix(got, want) || got == "" != (want == "") {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
}

func TestWeights(t *testing.T) {
	text, err := weights{0, 1, 0.5, 0.12345, 0.00004, 0.00005, 0.99999}.MarshalJSON()
	if want := "[0,1,0.5,0.1235,0,0.0001,1]"; err != nil || string(text) != want {
		t.Errorf("%s, want %s", text, want)
	}
}

// Weights that are not finite are null; those a little outside of 0 to 1 are 0 or 1.
func TestWeightsNotFinite(t *testing.T) {
	nan := float32(math.NaN())
	got, err := json.Marshal(weights{0.25, nan, 1, float32(math.Inf(1)), -1e-6, 1.0001})
	if want := `[0.25,null,1,null,0,1]`; err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	if got, err := json.Marshal(rounded(math.NaN())); err != nil || string(got) != "null" {
		t.Errorf("a loss: %s, %v", got, err)
	}
}
