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

func (switcher) Output(_ context.Context, r *heads.Record, c Changes) (Output, error) {
	what := fmt.Sprintf("off %v, patched %v, masked %v", c.Off, c.Patched, c.Masked)
	if c.Other != nil {
		what += " as for " + c.Other.Source
	}
	return Output{What: what}, nil
}

func (switcher) Effects(context.Context, *heads.Record) (map[string][]float64, error) {
	return nil, errors.New("no effects")
}

func (switcher) Predictions(context.Context, *heads.Record) (Predictions, error) {
	return Predictions{}, errors.New("the model predicts no tokens")
}

// pruner is a switcher that writes models.
type pruner struct{ switcher }

func (pruner) PrunesTo() string { return "dir" }

func (pruner) Prune(_ context.Context, _ *heads.Record, off map[string][]int) (Pruned, error) {
	return Pruned{Dir: "dir", Note: fmt.Sprint(off)}, nil
}

// Only the page itself can write a model, by a POST, to the directory that the program was given, if it was.
func TestPrune(t *testing.T) {
	record := recordFunc(func(context.Context, string, string) (*heads.Record, error) { return sample(), nil })
	writes := New(Options{Recorder: pruner{switcher{record}}, Records: []*heads.Record{sample()}})
	reads := New(Options{Recorder: switcher{record}, Records: []*heads.Record{sample()}})
	for _, c := range []struct {
		s            *Server
		method, path string
		change       func(*http.Request)
		want         int
		says         string
	}{
		{writes, "POST", "prune?record=r0&off=0.1", nil, 200, `"note":"map[decoder.0.cross:[1]]"`},
		{writes, "GET", "prune?record=r0&off=0.1", nil, 405, ""},
		{writes, "POST", "prune?record=r0&off=0.1", func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }, 403, "only the page itself"},
		{writes, "POST", "prune?record=r0&off=0.1", func(r *http.Request) { r.Header.Del("Cookie") }, 403, ""},
		{writes, "POST", "prune?record=r0", nil, 400, "no head is switched off"},
		{writes, "POST", "prune?record=r0&off=0.99", nil, 400, "number in off is not one of "},
		{reads, "POST", "prune?record=r0&off=0.1", nil, 404, "start attn view with --prune-to DIR"},
		{writes, "GET", "start", nil, 200, `"prunes_to":"dir"`},
	} {
		if w := ask(c.s, c.method, "/api/"+c.path, "", c.change); w.Code != c.want || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s %s: status %d and %s, want %d and %q", c.method, c.path, w.Code, w.Body, c.want, c.says)
		}
	}
	if w := ask(reads, "GET", "/api/start", "", nil); strings.Contains(w.Body.String(), "prunes_to") {
		t.Error("a page without a directory offers to write to one")
	}
}

// What a model cannot answer is refused by its words; so are other heads, records that are gone, and those of a file.
func TestOutputRefusals(t *testing.T) {
	record := recordFunc(func(_ context.Context, source, _ string) (*heads.Record, error) {
		r := sample()
		r.Source = source
		return r, nil
	})
	s := New(Options{Recorder: switcher{record}, Records: []*heads.Record{sample()}})
	for _, text := range []string{"x", "y"} {
		if w := ask(s, "POST", "/api/record", `{"source":"`+text+`"}`, nil); w.Code != http.StatusOK {
			t.Fatal(w.Body)
		}
	}
	id, other := textID(0, "x", ""), textID(0, "y", "")
	for _, c := range []struct {
		path string
		want int
		says string
	}{
		{"output?record=" + id, 200, "off map[], patched map[], masked map[]"},
		{"output?record=" + id + "&off=0.1&patch=0.0,0.1&other=" + other, 200, "off map[decoder.0.cross:[1]], patched map[decoder.0.cross:[0 1]], masked map[] as for y"},
		{"output?record=" + id + "&mask=0.1,0.0", 200, "masked map[decoder.0.cross:[1 0]]"},
		{"output?record=" + id + "&mask=0.99", 400, "number in mask is not one of "},
		{"output?record=" + id + "&mask=1.0", 400, "layer of mask is not one of "},
		{"output?record=" + id + "&mask=s", 400, "layer of mask is not one of "},
		{"output?record=" + id + "&patch=0.99&other=" + other, 400, "number in patch is not one of "},
		{"output?record=" + id + "&patch=0.1&other=gone", 410, "dropped"},
		{"output?record=" + id + "&patch=0.1", 410, "dropped"},
		{"output?record=" + id + "&off=0.1", 200, "[1]"},
		{"output?record=r0&off=0.1", 200, "[1]"}, // given at the start
		{"output?record=" + id + "&off=0.99", 400, "number in off is not one of "},
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
