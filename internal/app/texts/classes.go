package texts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/attn-go/attn/internal/app/filter"
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/strictjson"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tokenizer"
)

// Class is the most probable class of a line.
type Class struct {
	Label       string    `json:"label"`
	Probability float64   `json:"probability"`
	Logits      []float32 `json:"logits"` // of all classes
}

// Classes returns the filter that classifies lines: texts, or pairs as JSON arrays.
func Classes(c *models.Classifier, pairs bool) filter.Filter[Class] {
	s := scorer{c: c}
	return filter.Filter[Class]{Batch: 128, Write: filter.JSON[Class], Work: func(ctx context.Context, batch []*filter.Line[Class]) error {
		return score(ctx, &s, batch, func(l *filter.Line[Class]) ([][]string, error) {
			if !pairs {
				return [][]string{{l.Text}}, nil
			}
			var pair []string
			if err := strictjson.Unmarshal([]byte(l.Text), &pair); err != nil || len(pair) != 2 {
				return nil, errors.New(`want a JSON array of two texts, such as ["a question", "a passage"]`)
			}
			return [][]string{pair}, nil
		}, func(l *filter.Line[Class], logits [][]float32) {
			p := c.Probabilities(logits[0])
			best := 0
			for i, x := range p {
				if x > p[best] {
					best = i
				}
			}
			l.Value = Class{c.Labels()[best], p[best], slices.Clone(logits[0])}
		})
	}}
}

// Ranked is a text with its score.
type Ranked struct {
	Text  int     `json:"text"` // its number in the line, from 0
	Score float32 `json:"score"`
}

// Ranks returns the filter that ranks the texts of each line by how well they answer its query, best first. A line is a
// JSON object with the fields query and texts.
func Ranks(c *models.Classifier) (filter.Filter[[]Ranked], error) {
	if err := wantScores(c); err != nil {
		return filter.Filter[[]Ranked]{}, err
	}
	s := scorer{c: c}
	return filter.Filter[[]Ranked]{Batch: 16, Write: filter.JSON[[]Ranked], Work: func(ctx context.Context, batch []*filter.Line[[]Ranked]) error {
		return score(ctx, &s, batch, func(l *filter.Line[[]Ranked]) (all [][]string, err error) {
			var line struct {
				Query *string  `json:"query"`
				Texts []string `json:"texts"`
			}
			if err := strictjson.Unmarshal([]byte(l.Text), &line); err != nil || line.Query == nil || line.Texts == nil {
				return nil, errors.New(`want a JSON object such as {"query": "a question", "texts": ["a passage", "another"]}`)
			}
			for _, text := range line.Texts {
				all = append(all, []string{*line.Query, text})
			}
			return all, nil
		}, func(l *filter.Line[[]Ranked], logits [][]float32) {
			l.Value = []Ranked{}
			for i, x := range logits {
				l.Value = append(l.Value, Ranked{i, x[0]})
			}
			slices.SortStableFunc(l.Value, func(a, b Ranked) int { return cmp.Compare(b.Score, a.Score) })
		})
	}}, nil
}

// wantScores returns an error unless the model has one class, whose logit is a score.
func wantScores(c *models.Classifier) error {
	if n := len(c.Labels()); n != 1 {
		return &models.FormatError{Path: c.Model.Dir, Err: fmt.Errorf("has %d classes, want a cross-encoder, which has one", n)}
	}
	return nil
}

// Scores returns the score of each pair of texts.
func Scores(ctx context.Context, c *models.Classifier, pairs [][]string) (scores []float64, err error) {
	if err := wantScores(c); err != nil {
		return nil, err
	}
	tape := tensor.NewTape(tensor.Infer)
	for some := range slices.Chunk(pairs, 128) {
		encoded := make([]*tokenizer.Encoding, len(some))
		for i, pair := range some {
			if encoded[i], _, err = c.Encode(pair...); err != nil {
				return nil, fmt.Errorf("pair %d: %w", len(scores)+i+1, err)
			}
		}
		tape.Reset()
		tape.SetContext(ctx)
		if err := par.Stopped(func() {
			for _, x := range c.Logits(tape, models.BatchOf(encoded...)).Data() {
				scores = append(scores, float64(x))
			}
		}); err != nil {
			return nil, err
		}
	}
	return scores, nil
}

// scorer is the state of a filter that computes logits.
type scorer struct {
	c    *models.Classifier
	tape *tensor.Tape
}

// score sets the values of a batch: read returns the texts or pairs of a line, and use receives their logits.
func score[V any](
	ctx context.Context, s *scorer, batch []*filter.Line[V], read func(l *filter.Line[V]) ([][]string, error),
	use func(l *filter.Line[V], logits [][]float32),
) error {
	var encoded []*tokenizer.Encoding
	counts := make([]int, len(batch))
	for i, l := range batch {
		all, err := read(l)
		begin := len(encoded)
		for _, texts := range all {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				break
			}
			var x *tokenizer.Encoding
			if x, _, err = s.c.Encode(texts...); err == nil {
				encoded = append(encoded, x)
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if l.Err = err; err != nil {
			encoded = encoded[:begin]
		}
		counts[i] = len(encoded) - begin
	}
	var logits []float32
	classes := len(s.c.Labels())
	if len(encoded) > 0 {
		if s.tape == nil {
			s.tape = tensor.NewTape(tensor.Infer)
		}
		s.tape.Reset()
		s.tape.SetContext(ctx)
		if err := par.Stopped(func() { logits = s.c.Logits(s.tape, models.BatchOf(encoded...)).Data() }); err != nil {
			return err
		}
	}
	for i, l := range batch {
		if l.Err != nil {
			continue
		}
		rows := slices.Collect(slices.Chunk(logits[:counts[i]*classes], classes))
		logits = logits[counts[i]*classes:]
		if slices.ContainsFunc(slices.Concat(rows...), func(x float32) bool { return x-x != 0 }) {
			l.Err = errors.New("a logit is not finite")
			continue
		}
		use(l, rows)
	}
	return nil
}
