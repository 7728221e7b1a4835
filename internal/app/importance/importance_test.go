package importance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/attn-go/attn/internal/app/pruning/reports"
	"github.com/attn-go/attn/internal/app/tasks"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/seq2seq"
)

// open returns a translator with random parameters, and one pair for it.
func open(t *testing.T) (m *tasks.Model, pair string) {
	t.Helper()
	v := seq2seq.BuildVocabulary([]string{"abc"}, seq2seq.Chars, 10)
	c := models.TranslatorConfig{Arch: models.Transformer, Score: "scaled", Width: 16, Heads: 2, Layers: 1, Hidden: 16}
	translator, err := models.NewTranslator(c, v, v, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := translator.Save(dir); err != nil {
		t.Fatal(err)
	}
	pair = "abca\tcab"
	data := filepath.Join(dir, "pairs.tsv")
	if err := os.WriteFile(data, []byte(pair+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if m, err = tasks.Open(dir, data, models.Options{}, tasks.Limits{Lines: 9}); err != nil {
		t.Fatal(err)
	}
	return m, pair
}

func options(methods ...prune.Method) Options {
	return Options{Methods: methods, Seed: 1, Texts: 9, Progress: func(string, int, int) {}}
}

// The report of added lines is the report of their pairs.
func TestMerged(t *testing.T) {
	m, pair := open(t)
	o := options(prune.Gradient, prune.WeightNorm, prune.Confidence)
	want, err := Measure(t.Context(), m, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(want.Layers) != 3 || len(want.Layers[0].Measures) == 0 || len(want.Scores) != 3 || want.Texts != 1 {
		t.Fatalf("%d layers with measures %v, %d methods, %d texts",
			len(want.Layers), want.Layers[0].Measures, len(want.Scores), want.Texts)
	}
	var out bytes.Buffer
	var said strings.Builder
	methods := []prune.Method{prune.Gradient, prune.Confidence}
	f := Lines(m.Model, methods, &said)
	if _, err := f.Run(t.Context(), strings.NewReader(pair+"\n"), &out); err != nil || said.Len() > 0 {
		t.Fatalf("said %q (%v)", said.String(), err)
	}
	var line map[string]json.RawMessage
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	write := func(id string, sums map[string]json.RawMessage) string {
		path := filepath.Join(t.TempDir(), "sums.json")
		text, err := json.Marshal(map[string]any{"model": id, "lines": 1, "sums": sums, "means": line})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	path := write("id", map[string]json.RawMessage{key: line[key]})
	got, err := Merged(path, m.Model, m.Dir, "id", true, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*reports.Importance{&want, &got} {
		r.Data = ""
		for i := range r.Scores {
			s := &r.Scores[i]
			s.Passes, s.Seconds, s.Rank = 0, 0, 0 // NaN differs from itself
		}
		for _, l := range r.Layers {
			for _, values := range l.Measures {
				for h, v := range values {
					if v != v {
						values[h] = -1
					}
				}
			}
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}

	// A file without scores has the methods that need no data, unless all are requested.
	path = write("id", nil)
	r, err := Merged(path, m.Model, "model", "id", false, o)
	if err != nil || len(r.Scores) != 1 || r.Scores[0].Method != "weight-norm" {
		t.Errorf("%v (%v), want the scores of weight-norm", r.Scores, err)
	}
	for id, want := range map[string]string{
		"id":    ": has no gradient, want the lines of attn heads --per-line with --method gradient",
		"other": ": was made with model id, not other",
	} {
		if _, err := Merged(path, m.Model, "model", id, true, o); err == nil || err.Error() != path+want {
			t.Errorf("model %s: error %v, want %s", id, err, path+want)
		}
	}
}

// An interruption leaves the methods that have scores.
func TestMeasureStops(t *testing.T) {
	m, _ := open(t)
	m.Lines = append(m.Lines, m.Lines...)
	ctx, cancel := context.WithCancel(t.Context())
	o := options(prune.WeightNorm, prune.Gradient)
	o.Progress = func(stage string, _, _ int) {
		if stage == "measuring attention" {
			cancel()
		}
	}
	r, err := Measure(ctx, m, o)
	if !errors.Is(err, context.Canceled) || len(r.Scores) != 2 {
		t.Errorf("%d methods (%v), want 2 and the error of the context", len(r.Scores), err)
	}
	if r, err = Measure(ctx, m, o); !errors.Is(err, context.Canceled) || len(r.Scores) > 1 {
		t.Errorf("%d methods (%v), want at most that which needs no data", len(r.Scores), err)
	}
}
