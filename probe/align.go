package probe

import (
	"context"
	"slices"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
)

// Align returns a record of how a model of late interaction compares a query and a document: one layer of kind
// heads.Alignment with one head, in which each token of the query that has a vector attends to the one token of the document
// that it has chosen. The weight is their product, which may be negative, and the sum of all weights is the score, times the
// number of these tokens if e.Mean is true. The vectors are the layer's queries and keys.
//
// Source is the query, and Target the document.
//
// Errors: those of LateTexts.Embed.
func Align(ctx context.Context, e *models.LateEmbedder, query, document string) (*heads.Record, error) {
	r := &heads.Record{Source: query, Target: document}
	side := func(of *models.LateTexts, text string) (x *tensor.Tensor, tokens []string, places []int, err error) {
		t, err := e.Model.Tokenizer()
		if err != nil {
			return nil, nil, nil, err
		}
		in, _, err := of.Encode(ctx, text)
		if err != nil {
			return nil, nil, nil, err
		}
		vectors, err := of.Embed(ctx, text)
		if err != nil {
			return nil, nil, nil, err
		}
		all := labels(t, in, of.Prompt+text)
		for _, at := range of.Scored(in) {
			tokens, places = append(tokens, all[at]), append(places, at)
			if in.Special[at] && !slices.Contains(r.Special, all[at]) {
				r.Special = append(r.Special, all[at])
			}
		}
		return vectors[0], tokens, places, nil
	}
	l := heads.Layer{Name: "alignment.0", Kind: heads.Alignment, Heads: 1, Signed: true, ScoreScale: 1}
	q, queries, queryPlaces, err := side(e.Queries, query)
	if err != nil {
		return nil, err
	}
	d, keys, keyPlaces, err := side(e.Documents, document)
	if err != nil {
		return nil, err
	}
	l.Queries, l.Keys, l.QueryPlaces, l.KeyPlaces = queries, keys, queryPlaces, keyPlaces
	l.QueryVectors, l.KeyVectors = q.Data(), d.Data()
	products := tensor.MatMulT(nil, q, d).Data()
	_, chosen := e.Scores(nil, q, d)
	l.Weights = make([]float32, len(products))
	for i, j := range chosen[0] {
		l.Weights[i*len(keys)+j] = products[i*len(keys)+j]
	}
	slices.Sort(r.Special)
	r.Layers = []heads.Layer{l}
	return r, nil
}
