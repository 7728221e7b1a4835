package probe

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/models"
)

// Each token of a query attends to one token of the document at most, the weights sum to the score, and a file of the record
// keeps it.
func TestAlign(t *testing.T) {
	dirs, err := filepath.Glob("../models/testdata/late_*")
	if err != nil || len(dirs) < 6 {
		t.Fatalf("%d directories: %v", len(dirs), err)
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			e, err := models.LoadLateEmbedder(dir, models.Options{})
			if err != nil {
				t.Fatal(err)
			}
			const query, document = "cats sat", "the cats, the dogs and a mat"
			r, err := Align(t.Context(), e, query, document)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Validate(); err != nil || len(r.Layers) != 1 || r.Source != query || r.Target != document {
				t.Fatalf("%d layers, source %q, target %q: %v", len(r.Layers), r.Source, r.Target, err)
			}
			l := &r.Layers[0]
			if l.Check() != nil || l.Kind != heads.Alignment || len(l.QueryPlaces) != len(l.Queries) || len(l.Keys) < 2 {
				t.Fatalf("kind %s, queries %q at %d, keys %q", l.Kind, l.Queries, l.QueryPlaces, l.Keys)
			}
			sum := 0.
			for i := range l.Queries {
				chosen := 0
				for _, w := range l.Weights[i*len(l.Keys):][:len(l.Keys)] {
					sum += float64(w)
					if w != 0 {
						chosen++
					}
				}
				if chosen > 1 {
					t.Errorf("token %d has chosen %d tokens", i, chosen)
				}
			}
			q, err := e.Queries.Embed(t.Context(), query)
			if err != nil {
				t.Fatal(err)
			}
			d, err := e.Documents.Embed(t.Context(), document)
			if err != nil {
				t.Fatal(err)
			}
			scores, _ := e.Scores(nil, q[0], d[0])
			score := float64(scores.Item())
			if e.Mean {
				score *= float64(len(l.Queries))
			}
			if math.Abs(sum-score) > 1e-5*math.Abs(score) || score == 0 {
				t.Errorf("the weights sum to %v, want the score %v", sum, score)
			}
			path := filepath.Join(t.TempDir(), "alignment.safetensors")
			if err := r.WriteFile(path); err != nil {
				t.Fatal(err)
			}
			again, err := heads.Read(path)
			if err != nil {
				t.Fatal(err)
			}
			if k := again.Layers[0].Kind; k != heads.Alignment || !again.Layers[0].Signed {
				t.Errorf("a file has the kind %s", k)
			}
		})
	}
	e, err := models.LoadLateEmbedder(dirs[0], models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e.Documents.MostTokens = 0
	if _, err := Align(t.Context(), e, "a", "b"); err == nil {
		t.Error("a document without tokens has an alignment")
	}
}
