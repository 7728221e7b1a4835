package view

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/attn-go/attn/heads"
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
	s := newServer(t, Options{Film: film(t, 0, 4), Scores: []Scores{{Name: "x", Values: map[string][]float64{"encoder.0": {3, 4}}}}})
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
