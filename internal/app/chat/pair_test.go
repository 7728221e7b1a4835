package chat

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// Scores of decoders that answer yes or no are those of sentence-transformers.
func TestPair(t *testing.T) {
	for _, name := range []string{"reranker_words", "reranker_score", "reranker_one"} {
		dir := filepath.Join("../../../models/testdata", name)
		g := tensortest.Open(t, filepath.Join(dir, "golden_scores.safetensors"))
		var pairs [][]string
		if err := json.Unmarshal([]byte(g.Setting("pairs")), &pairs); err != nil {
			t.Fatal(err)
		}
		m, err := models.Load(dir, models.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var answers []string
		if name == "reranker_words" { // whose files do not name them
			answers = []string{"yes", "no"}
		}
		c, err := models.NewClassifier(m, answers...)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := c.Encode(t.Context(), "a", "b"); err == nil {
			t.Error("no error without a prompt")
		}
		tok, err := m.Tokenizer()
		if err != nil {
			t.Fatal(err)
		}
		talk, err := New(dir, tok)
		if err != nil {
			t.Fatal(err)
		}
		c.Prompt = talk.Pair
		var all models.Batch
		for _, pair := range pairs {
			x, _, err := c.Encode(t.Context(), pair...)
			if err != nil {
				t.Fatal(err)
			}
			all.IDs = append(all.IDs, x.IDs)
		}
		scores := c.Logits(tensor.NewTape(tensor.Infer), all)
		g.Check("want.scores", tensor.Reshape(nil, scores, scores.Dim(0)))
		g.Done()
	}
}
