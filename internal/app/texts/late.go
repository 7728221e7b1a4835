package texts

import (
	"context"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tokenizer"
)

// LateScorer returns the Scorer of a model of late interaction. Consecutive pairs with the same query share its vectors.
func LateScorer(e *models.LateEmbedder) Scorer {
	var last string
	var query *tokenizer.Encoding // of last
	return Scorer{network{func(ctx context.Context, texts ...string) (x encoded, cut bool, err error) {
		if query == nil || texts[0] != last {
			if query, _, err = e.Queries.Encode(ctx, texts[0]); err != nil {
				return nil, false, err
			}
			last = texts[0]
		}
		document, cut, err := e.Documents.Encode(ctx, texts[1])
		return encoded{query, document}, cut, err
	}, func(t *tensor.Tape, all []encoded) (scores []float32) {
		var queries, documents encoded
		of := make([]int, len(all)) // the number of the query of each pair
		for i, pair := range all {
			if i == 0 || pair[0] != all[i-1][0] {
				queries = append(queries, pair[0])
			}
			documents, of[i] = append(documents, pair[1]), len(queries)-1
		}
		q, d := e.Queries.Forward(t, queries...), e.Documents.Forward(t, documents...)
		for i := range all {
			score, _ := e.Scores(t, q[of[i]], d[i])
			scores = append(scores, score.Data()...)
		}
		return scores
	}, 1, "a score"}}
}
