package view

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/attn-go/attn/heads"
)

// switcher is a model that runs without heads, but has no logits of tokens.
type switcher struct{ recordFunc }

func (switcher) Output(_ context.Context, _ *heads.Record, off map[string][]int) (Output, error) {
	return Output{What: fmt.Sprint(off)}, nil
}

func (switcher) Effects(context.Context, *heads.Record) (map[string][]float64, error) {
	return nil, errors.New("no effects")
}

func (switcher) Predictions(context.Context, *heads.Record) (Predictions, error) {
	return Predictions{}, errors.New("the model predicts no tokens")
}

// What a model cannot answer is refused by its words; so are other heads, records that are gone, and those of a file.
func TestOutputRefusals(t *testing.T) {
	record := recordFunc(func(context.Context, string, string) (*heads.Record, error) { return sample(), nil })
	s := New(Options{Recorder: switcher{record}, Records: []*heads.Record{sample()}})
	if w := ask(s, "POST", "/api/record", `{"source":"x"}`, nil); w.Code != http.StatusOK {
		t.Fatal(w.Body)
	}
	id := textID(0, "x", "")
	for _, c := range []struct {
		path string
		want int
		says string
	}{
		{"output?record=" + id, 200, "map[]"},
		{"output?record=" + id + "&off=0.1", 200, "[1]"},
		{"output?record=r0&off=0.1", 200, "[1]"}, // given at the start
		{"output?record=" + id + "&off=0.99", 400, "head of off is not one of "},
		{"output?record=" + id + "&off=99.0", 400, "layer of off is not one of "},
		{"output?record=gone", 410, "dropped"},
		{"predictions?record=gone", 410, "dropped"},
		{"predictions?record=" + id, 422, "the model predicts no tokens"},
		{"effects?layer=0&record=" + id, 422, "no effects"},
	} {
		if w := ask(s, "GET", "/api/"+c.path, "", nil); w.Code != c.want || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s: status %d and %s, want %d and %q", c.path, w.Code, w.Body, c.want, c.says)
		}
	}
	s = New(Options{Records: []*heads.Record{sample()}})
	for _, path := range []string{"output?record=r0", "predictions?record=r0", "effects?layer=0&record=r0"} {
		if w := ask(s, "GET", "/api/"+path, "", nil); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "no model is there to run") {
			t.Errorf("%s of a file: status %d and %s", path, w.Code, w.Body)
		}
	}
}
