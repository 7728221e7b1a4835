package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/strictjson"
)

// film returns a film of one layer of two heads, with the given steps.
func film(t *testing.T, steps ...int) *heads.Film {
	t.Helper()
	f := &heads.Film{}
	for i, step := range steps {
		w := 1 / float32(i+1)
		err := f.Add(heads.Frame{Step: step, Loss: float64(i), Record: &heads.Record{Source: "a b", Layers: []heads.Layer{{
			Name: "encoder.0", Kind: heads.Encoder, Heads: 2, Queries: []string{"a", "b"}, Keys: []string{"a", "b"},
			Weights: []float32{w, 1 - w, 1, 0, 0, 1, 1 - w, w},
		}}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// Scores of heads are those of the trained model: the last step has them, and no other.
func TestScoresOfFilm(t *testing.T) {
	s := New(Options{Film: film(t, 0, 4), Scores: []Scores{{Name: "x", Values: map[string][]strictjson.Number{"encoder.0": {3, 4}}}}})
	for id, want := range map[string]string{"f0": "null", "f1": "4"} {
		answer := ask(s, "GET", "/api/measures?record="+id+"&layer=0", "", nil)
		var rows [][]json.RawMessage
		if err := json.Unmarshal(answer.Body.Bytes(), &rows); err != nil || len(rows) != 2 {
			t.Fatalf("%s: %v, %.200s", id, err, answer.Body)
		}
		if got := rows[1][len(rows[1])-1]; !bytes.Equal(got, []byte(want)) {
			t.Errorf("%s: the score of head 1 is %s, want %s", id, got, want)
		}
	}
}

// frozenData returns the data of an exported page.
func frozenData(t *testing.T, page []byte) (data struct {
	Address string
	Answers map[string][]byte
	Film    bool
}) {
	t.Helper()
	_, rest, _ := bytes.Cut(page, []byte(`<script type="application/json" id="frozen">`))
	text, _, found := bytes.Cut(rest, []byte("</script>"))
	if err := json.Unmarshal(text, &data); err != nil || !found {
		t.Fatalf("%v: %.200s", err, text)
	}
	return data
}

// A page contains every frame of a film, in each lens, as the server answers them.
func TestPageOfFilm(t *testing.T) {
	o := Options{Film: film(t, 0, 1, 4)}
	page, err := Page(t.Context(), o, nil)
	if err != nil {
		t.Fatal(err)
	}
	data, s := frozenData(t, page), New(o)
	if !data.Film {
		t.Error("the film is not in the page")
	}
	for _, id := range []string{"f0", "f1", "f2"} {
		for _, path := range []string{"head?record=%s&layer=0&head=1", "thumbs?record=%s&layer=0", "measures?record=%s&layer=0",
			"check?record=%s&layer=0", "head?record=%s&layer=0&head=mean&special=renorm&words=1"} {
			path = "api/" + fmt.Sprintf(path, id)
			if got, want := data.Answers[path], ask(s, "GET", "/"+path, "", nil).Body.Bytes(); !bytes.Equal(got, want) || len(want) == 0 {
				t.Errorf("%s: %d bytes, want %d", path, len(got), len(want))
			}
		}
	}
}

// The request of a page that exports itself is limited, and has the frames or nothing.
func TestFilmAnswers(t *testing.T) {
	s := New(Options{Film: film(t, 0, 4)})
	var all map[string][]byte
	size := 0
	if err := json.Unmarshal(ask(s, "GET", "/api/film?bytes=100000&special=hide&words=1", "", nil).Body.Bytes(), &all); err != nil {
		t.Fatal(err)
	}
	for _, body := range all {
		size += len(body)
	}
	if _, found := all["api/head?record=f1&layer=0&head=0&special=hide&words=1"]; !found {
		t.Errorf("%d answers without a head of the last frame", len(all))
	}
	for bytes, want := range map[int]bool{size: true, size - 1: false, 0: false} {
		path := fmt.Sprintf("/api/film?bytes=%d&special=hide&words=1", bytes)
		if got := ask(s, "GET", path, "", nil).Body.String() != "null"; got != want {
			t.Errorf("%d of %d bytes: has the frames %v, want %v", bytes, size, got, want)
		}
	}
	if w := ask(New(Options{}), "GET", "/api/film?bytes=1000", "", nil); w.Body.String() != "null" {
		t.Errorf("without a film: %s", w.Body)
	}
	for _, query := range []string{"", "?bytes=x", "?bytes=-1", "?bytes=99999999", "?bytes=1000&special=no"} {
		if w := ask(s, "GET", "/api/film"+query, "", nil); w.Code != 400 {
			t.Errorf("%s: status %d, %.100s", query, w.Code, w.Body)
		}
	}
}
