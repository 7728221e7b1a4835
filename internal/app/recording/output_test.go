package recording

import (
	"io"
	"math"
	"strings"
	"testing"

	"github.com/attn-go/attn/internal/app/view"
	"github.com/attn-go/attn/models"
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
		same, err := page.Output(t.Context(), r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if same.What != c.what || len(same.Rows) != 1 || math.Abs(same.Rows[0].Before-same.Rows[0].After) > 1e-6 || same.Rows[0].Label == "" {
			t.Errorf("%+v, want %s without a change", same, c.what)
		}
		layer := c.m.HeadLayers()[0]
		off, err := page.Output(t.Context(), r, map[string][]int{layer.Name: {0}})
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
			out, err := page.Output(t.Context(), r, nil)
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
