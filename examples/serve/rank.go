package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/attn-go/attn/models"
)

// ranker answers in the form of text-embeddings-inference.
type ranker struct {
	truncate bool
	side     string // of a text from which tokens are removed: Right or Left
	batches  *batcher
}

// rank is the score of a text.
type rank struct {
	Index int     `json:"index"`
	Score float64 `json:"score"`
	Text  *string `json:"text,omitempty"`
}

func newRanker(s settings) (*ranker, error) {
	m, err := models.Load(s.rerank, s.options)
	if err != nil {
		return nil, err
	}
	c, err := models.NewClassifier(m)
	if err == nil && len(c.Labels()) != 1 {
		err = fmt.Errorf("%s: %d labels, want 1", s.rerank, len(c.Labels()))
	}
	if err != nil {
		return nil, err
	}
	encode := func(ctx context.Context, x input) (models.Batch, bool, error) {
		pair, truncated, err := c.Encode(ctx, x.texts...)
		if err != nil {
			return models.Batch{}, false, problemf(noTokens, "texts", "%w", err)
		}
		return models.BatchOf(pair), truncated, nil
	}
	r := &ranker{s.truncate, "Right", newBatcher(s.tokens, c.MostTokens, encode, c.Logits)}
	// The files of the tokenizer select the side. A text that is too long shows it.
	long, truncated, err := c.Encode(context.Background(), "a", strings.Repeat("a ", min(c.MostTokens, 1<<20)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.rerank, err)
	}
	if first := slices.Index(long.Texts, 1); truncated && first >= 0 && long.Offsets[first].Start > 0 {
		r.side = "Left"
	}
	return r, nil
}

// rank reads {"query": …, "texts": […]}, and answers with the scores of the texts, the best first.
func (r *ranker) rank(c *call) (any, error) {
	var query *string
	var list texts
	var raw, withText bool
	truncate, side := r.truncate, r.side
	err := c.read(r.batches, map[string]any{"query": &query, "texts": &list, "raw_scores": &raw, "return_text": &withText,
		"truncate": &truncate, "truncation_direction": &side})
	switch {
	case err != nil:
		return nil, err
	case query == nil:
		return nil, problemf(invalid, "query", "no %q", "query")
	case list == nil:
		return nil, problemf(invalid, "texts", "no %q", "texts")
	case side != r.side:
		return nil, problemf(invalid, nil, "truncation_direction is %q, want %s, that of the model's tokenizer", side, r.side)
	}
	pairs := make([]input, len(list))
	for i, text := range list {
		pairs[i].texts = []string{*query, text}
	}
	rows, _, err := r.batches.run(c, pairs, 1, truncate)
	if err != nil {
		return nil, err
	}
	ranks := make([]rank, len(rows))
	for i, row := range rows {
		ranks[i] = rank{Index: i, Score: float64(row[0])}
		if !raw {
			ranks[i].Score = 1 / (1 + math.Exp(-float64(row[0])))
		}
		if withText {
			ranks[i].Text = &list[i]
		}
	}
	slices.SortStableFunc(ranks, func(a, b rank) int { return cmp.Compare(b.Score, a.Score) })
	return ranks, nil
}
