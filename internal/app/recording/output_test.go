package recording

import (
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/view"
	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/lens"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
)

// The output of a model without heads changes, with all heads it does not, and effects are of the same run.
func TestOutput(t *testing.T) {
	encoder, err := models.Load("../../../models/testdata/sentence_mean", models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	translator := newTranslator(t, models.TranslatorConfig{
		Arch: models.Transformer, Score: "scaled", Width: 16, Heads: 4, Layers: 1, Hidden: 16,
	})
	for _, c := range []struct {
		m            *models.Model
		text, second string
		what         string
	}{
		{encoder, "The cat sat on the mat.", "", "cosine with the mean state of all heads"},
		{translator, "xxx", "xx", "logarithm of the probability of the second text"},
	} {
		page, err := New("dir", c.m, 0, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		r, err := page.Record(t.Context(), c.text, c.second)
		if err != nil {
			t.Fatal(err)
		}
		same, err := page.Output(t.Context(), r, view.Changes{})
		if err != nil {
			t.Fatal(err)
		}
		if same.What != c.what || len(same.Rows) != 1 || math.Abs(same.Rows[0].Before-same.Rows[0].After) > 1e-6 || same.Rows[0].Label == "" {
			t.Errorf("%+v, want %s without a change", same, c.what)
		}
		layer := c.m.HeadLayers()[0]
		off, err := page.Output(t.Context(), r, view.Changes{Off: map[string][]int{layer.Name: {0}}})
		if err != nil {
			t.Fatal(err)
		}
		effects, err := page.Effects(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		got, change := effects[layer.Name], off.Rows[0].After-off.Rows[0].Before
		if len(got) != layer.Heads || change == 0 || math.Abs(got[0]-change) > 1e-4*(1+math.Abs(change)) {
			t.Errorf("%s: effects %v, of head 0 %v", c.what, got, change)
		}
	}
}

// load returns the model of a fixture, with a tokenizer of words.
func load(t *testing.T, fixture string) *models.Model {
	t.Helper()
	const fixtures = "../../../models/testdata/"
	dir := t.TempDir()
	err := os.CopyFS(dir, os.DirFS(fixtures+fixture))
	if name := filepath.Join(dir, "tokenizer.json"); err == nil && !atomicfile.Exists(name) {
		var words []byte
		if words, err = os.ReadFile(fixtures + "reranker_words/tokenizer.json"); err == nil {
			err = os.WriteFile(name, words, 0o644)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	m, err := models.Load(dir, models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Patched heads have their weights of the second text, as package lens puts them there. A text that is patched
// with itself does not change; what cannot be patched is refused.
func TestPatched(t *testing.T) {
	translator := newTranslator(t, models.TranslatorConfig{
		Arch: models.Transformer, Score: "scaled", Width: 16, Heads: 4, Layers: 2, Hidden: 16,
	})
	recurrent := newTranslator(t, models.TranslatorConfig{Arch: models.GRU, Score: "scaled", Width: 16, Heads: 4, Layers: 1})
	for _, c := range []struct {
		m             *models.Model
		one, two      [2]string
		layer, refuse string
	}{
		{m: load(t, "sentence_mean"), one: [2]string{"the cat sat on"}, two: [2]string{"the mat sat on"}, layer: "encoder.0.self"},
		{m: load(t, "reranker_words"), one: [2]string{"the cat sat"}, two: [2]string{"the mat sat"}, layer: "decoder.1.self"},
		{m: translator, one: [2]string{"xyx", "xx"}, two: [2]string{"yxx", "xy"}, layer: "decoder.1.cross"},
		{m: recurrent, one: [2]string{"xyx", "xx"}, two: [2]string{"yxx", "xy"}, layer: "decoder.0.cross"},
		{m: load(t, "sentence_mean"), one: [2]string{"the cat"}, two: [2]string{"the cat sat"}, layer: "encoder.0.self", refuse: "the first text has 4 tokens and the second 5, want equal numbers"},
		{m: load(t, "decoders/diffllama"), one: [2]string{"the cat"}, two: [2]string{"the mat"}, layer: "decoder.0.self", refuse: "heads of decoder.0.self cannot have the weights"},
		{m: translator, one: [2]string{"xx", "xx"}, two: [2]string{"xx", "xxx"}, layer: "decoder.1.cross", refuse: "the first translation has 3 tokens and the second 4"},
	} {
		page, err := New("dir", c.m, 0, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		var r [2]*heads.Record
		for i, texts := range [][2]string{c.one, c.two} {
			if r[i], err = page.Record(t.Context(), texts[0], texts[1]); err != nil {
				t.Fatal(err)
			}
		}
		list := map[string][]int{c.layer: {1, 2}}
		y, err := page.Output(t.Context(), r[0], view.Changes{Patched: list, Other: r[1]})
		if c.refuse != "" {
			if err == nil || !strings.Contains(err.Error(), c.refuse) {
				t.Errorf("%q and %q: %v, want %s", c.one, c.two, err, c.refuse)
			}
			continue
		}
		if err != nil {
			t.Fatal(c.layer, err)
		}
		self, err := page.Output(t.Context(), r[0], view.Changes{Patched: list, Other: r[0]})
		if err != nil {
			t.Fatal(err)
		}
		moved := 0.
		for i, row := range self.Rows {
			if row.Before != row.After {
				t.Errorf("%s: patched with itself, %s becomes %v of %v", c.layer, row.Label, row.After, row.Before)
			}
			moved += math.Abs(y.Rows[i].After - y.Rows[i].Before)
		}
		if moved == 0 {
			t.Errorf("%s: nothing changes: %+v", c.layer, y)
		}
		if c.m == recurrent { // which package lens does not change step by step
			continue
		}
		got, want := y.Rows[0].After, patched(t, page, r, c.layer, list[c.layer])
		if len(y.Rows) > 1 {
			got = math.Log(got / y.Rows[1].After)
		}
		if math.Abs(got-want) > 1e-4*(1+math.Abs(want)) {
			t.Errorf("%s: %v, package lens has %v", c.layer, got, want)
		}
	}
}

// Masked tokens are hidden in all layers, and at the same places of the second text: heads that are patched with their own
// weights then do not change. What mixes tokens without a softmax is refused.
func TestMasked(t *testing.T) {
	translator := newTranslator(t, models.TranslatorConfig{
		Arch: models.Transformer, Score: "scaled", Width: 16, Heads: 4, Layers: 2, Hidden: 16,
	})
	for _, c := range []struct {
		m      *models.Model
		texts  [2]string
		masked map[string][]int
		want   string
	}{
		{load(t, "sentence_mean"), [2]string{"the cat sat on"}, map[string][]int{"encoder.0.self": {1, 2}, "encoder.1.self": {1, 2}}, ""},
		{load(t, "reranker_words"), [2]string{"the cat sat"}, map[string][]int{"decoder.0.self": {0}, "decoder.1.self": {0}}, ""},
		{translator, [2]string{"xyx", "xx"}, map[string][]int{"decoder.0.self": {1}, "decoder.1.self": {1}}, ""},
		{translator, [2]string{"xyx"}, map[string][]int{"decoder.0.self": {1}, "decoder.1.self": {1}}, "token 1 cannot be masked"}, // it wrote special tokens, which are read as text
		{translator, [2]string{"xyx", "xx"}, map[string][]int{"encoder.0.self": {0}, "encoder.1.self": {0}, "decoder.0.cross": {0}, "decoder.1.cross": {0}}, ""},
		{load(t, "decoders/lfm2"), [2]string{"the cat sat"}, map[string][]int{"decoder.1.self": {0}}, "a layer of conv, want attention with a softmax"},
	} {
		page, err := New("dir", c.m, 0, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		r, err := page.Record(t.Context(), c.texts[0], c.texts[1])
		if err != nil {
			t.Fatal(err)
		}
		change := view.Changes{Masked: c.masked}
		y, err := page.Output(t.Context(), r, change)
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v: %v, want %s", c.texts, err, c.want)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if y.Rows[0].Before == y.Rows[0].After {
			t.Errorf("%v: the mask changes nothing: %+v", c.texts, y)
		}
		change.Other, change.Patched = r, map[string][]int{c.m.HeadLayers()[0].Name: {0, 1}}
		patched, err := page.Output(t.Context(), r, change)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(patched.Rows, y.Rows) {
			t.Errorf("%v: with its own weights %+v, want %+v", c.texts, patched.Rows, y.Rows)
		}
	}
}

// patched returns the metric of the first record when heads have their weights of the second, measured by package lens.
func patched(t *testing.T, page Model, r [2]*heads.Record, layer string, list []int) float64 {
	t.Helper()
	_, x, at, err := page.read(r[0])
	if err != nil {
		t.Fatal(err)
	}
	_, other, _, err := page.read(r[1])
	if err != nil {
		t.Fatal(err)
	}
	tape := tensor.NewTape(tensor.Infer)
	metric, _, _ := page.single(tape, x)
	if metric == nil {
		metric = lens.Best(tape, page.Model, x, at)
	}
	l, err := lens.New(page.Model, metric)
	if err != nil {
		t.Fatal(err)
	}
	weights, err := l.Record(t.Context(), other, lens.Pattern)
	if err != nil {
		t.Fatal(err)
	}
	var changes []lens.Change
	for _, h := range list {
		c, err := lens.Source(weights.Value).Change(lens.Site{Part: lens.Pattern, Layer: layer, Head: h, Position: lens.All})
		if err != nil {
			t.Fatal(err)
		}
		changes = append(changes, c)
	}
	_, all, err := l.Measure(t.Context(), x, [][]lens.Change{changes})
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

// What the last layer predicts is the output of the model; a model without logits of tokens predicts nothing.
func TestPredictions(t *testing.T) {
	of := func(dir, text string) (*Model, view.Predictions, error) {
		m, err := models.Load("../../../models/testdata/"+dir, models.Options{})
		if err != nil {
			t.Fatal(err)
		}
		page, err := New("dir", m, 0, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		r, err := page.Record(t.Context(), text, "")
		if err != nil {
			t.Fatal(err)
		}
		y, err := page.Predictions(t.Context(), r)
		if err == nil {
			out, err := page.Output(t.Context(), r, view.Changes{})
			if last := y.Layers[len(y.Layers)-1]; err != nil || last[len(last)-1][0].Label != out.Rows[0].Label ||
				math.Abs(last[len(last)-1][0].Probability-out.Rows[0].Before) > 1e-6 {
				t.Errorf("%s: the last layer predicts %v, the output is %v, error %v", dir, last[len(last)-1], out.Rows, err)
			}
		}
		return &page, y, err
	}
	if page, y, err := of("reranker_words", "the cat"); err != nil || len(y.Layers) != page.Model.Sizes().Layers+1 ||
		len(y.Layers[0]) != len(y.Tokens) || len(y.Layers[0][0]) != mostLabels {
		t.Errorf("%d layers of %q, error %v", len(y.Layers), y.Tokens, err)
	}
	if _, _, err := of("sentence_mean", "The cat sat."); err == nil || !strings.Contains(err.Error(), "predicts no tokens") {
		t.Errorf("a model of sentences: %v", err)
	}
}
