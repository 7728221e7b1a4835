package texts

import (
	"context"
	"fmt"
	"slices"

	"github.com/attn-go/attn/internal/app/filter"
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tokenizer"
)

// LateRanks is Ranks for a model of late interaction.
func LateRanks(e *models.LateEmbedder) filter.Filter[[]Ranked] {
	tape := tensor.NewTape(tensor.Infer)
	f := filter.Filter[[]Ranked]{Batch: 16, Mixed: true, Write: filter.JSON[[]Ranked]}
	f.Work = func(ctx context.Context, batch []*filter.Line[[]Ranked]) error {
		var lines [][]string
		var good []*filter.Line[[]Ranked]
		for _, l := range batch {
			query, texts, err := rankLine(l.Text)
			if l.Err = err; err == nil {
				lines, good = append(lines, append([]string{query}, texts...)), append(good, l)
			}
		}
		scores, errs, err := lateScores(ctx, tape, e, lines)
		if err != nil {
			return err
		}
		for i, l := range good {
			if l.Err = errs[i]; l.Err == nil {
				l.Value, l.Err = rank(scores[i])
			}
		}
		return nil
	}
	return f
}

// LateScores is Scores for a model of late interaction. The first text of a pair is the query.
func LateScores(ctx context.Context, e *models.LateEmbedder, pairs [][]string) (scores []float64, err error) {
	tape := tensor.NewTape(tensor.Infer)
	for some := range slices.Chunk(pairs, 128) {
		rows, errs, err := lateScores(ctx, tape, e, some)
		if err != nil {
			return nil, err
		}
		for i, row := range rows {
			if errs[i] != nil {
				return nil, fmt.Errorf("pair %d: %w", len(scores)+1, errs[i])
			}
			scores = append(scores, float64(row[0]))
		}
	}
	return scores, nil
}

// lateScores returns the scores of the texts of each line for its first text, the query, or the error of that line.
func lateScores(ctx context.Context, tape *tensor.Tape, e *models.LateEmbedder, lines [][]string) (scores [][]float32, errs []error, err error) {
	var queries, documents []*tokenizer.Encoding
	scores, errs = make([][]float32, len(lines)), make([]error, len(lines))
	for i, line := range lines {
		q, d := len(queries), len(documents)
		for n, text := range line {
			side, to := e.Documents, &documents
			if n == 0 {
				side, to = e.Queries, &queries
			}
			x, _, err := side.Encode(ctx, text)
			if ctx.Err() != nil {
				return nil, nil, ctx.Err()
			}
			if errs[i] = err; err != nil {
				queries, documents = queries[:q], documents[:d]
				break
			}
			*to = append(*to, x)
		}
	}
	tape.Reset()
	tape.SetContext(ctx)
	err = par.Stopped(func() {
		q, d := e.Queries.Forward(tape, queries...), e.Documents.Forward(tape, documents...)
		for i, line := range lines {
			if errs[i] == nil {
				row, _ := e.Scores(tape, q[0], d[:len(line)-1]...)
				scores[i], q, d = row.Clone().Data(), q[1:], d[len(line)-1:]
			}
		}
	})
	return scores, errs, err
}
