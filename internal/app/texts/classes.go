package texts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/attn-go/attn/internal/app/filter"
	"github.com/attn-go/attn/internal/strictjson"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
)

// Class is the most probable class of a line. If the logits are values, it has no other fields.
type Class struct {
	Label       string    `json:"label,omitzero"`
	Probability *float64  `json:"probability,omitzero"`
	Logits      []float32 `json:"logits"` // of all classes
}

// Classes returns the filter that classifies lines: texts, or pairs as JSON arrays.
func Classes(c *models.Classifier, pairs bool) filter.Filter[Class] {
	return computed(logitsOf(c), filter.Filter[Class]{Batch: mostTexts, Write: filter.JSON[Class]}, func(l *filter.Line[Class]) ([][]string, error) {
		if !pairs {
			return [][]string{{l.Text}}, nil
		}
		var pair []string
		err := strictjson.Request([]byte(l.Text), &pair)
		if err == nil && len(pair) != 2 {
			err = fmt.Errorf("has %d texts", len(pair))
		}
		if err != nil {
			return nil, fmt.Errorf(`want a JSON array of two texts, such as ["a question", "a passage"]: %w`, err)
		}
		return [][]string{pair}, nil
	}, func(l *filter.Line[Class], logits [][]float32, _ bool) {
		l.Value.Logits = slices.Clone(logits[0])
		p := c.Probabilities(logits[0])
		if p == nil {
			return
		}
		best := 0
		for i, x := range p {
			if x > p[best] {
				best = i
			}
		}
		l.Value.Label, l.Value.Probability = c.Labels()[best], &p[best]
	})
}

// logitsOf computes the logits of a text or a pair.
func logitsOf(c *models.Classifier) network {
	return joint(c.Encode, c.Logits, len(c.Labels()), "a logit")
}

// Ranked is a text with its score.
type Ranked struct {
	Text  int     `json:"text"` // its number in the line, from 0
	Score float32 `json:"score"`
}

// Scorer scores how well the second text of a pair answers the first, a query.
type Scorer struct{ network }

// NewScorer returns the Scorer of a cross-encoder, or an error unless the model has one class, whose logit is the score.
func NewScorer(c *models.Classifier) (Scorer, error) {
	if n := len(c.Labels()); n != 1 {
		return Scorer{}, &models.FormatError{Path: c.Model.Dir, Err: fmt.Errorf("has %d classes, want a cross-encoder, which has one", n)}
	}
	return Scorer{logitsOf(c)}, nil
}

// Ranks returns the filter that ranks the texts of each line by how well they answer its query, best first. A line is a
// JSON object with the fields query and texts.
func (s Scorer) Ranks() filter.Filter[[]Ranked] {
	f := filter.Filter[[]Ranked]{Batch: 16, Write: filter.JSON[[]Ranked]}
	return computed(s.network, f, func(l *filter.Line[[]Ranked]) (all [][]string, err error) {
		var line struct {
			Query *string  `json:"query"`
			Texts []string `json:"texts"`
		}
		err = strictjson.Request([]byte(l.Text), &line)
		if err == nil && (line.Query == nil || line.Texts == nil) {
			err = errors.New("has no query or no texts")
		}
		if err != nil {
			const want = `{"query": "a question", "texts": ["a passage", "another"]}`
			return nil, fmt.Errorf("want a JSON object such as %s: %w", want, err)
		}
		for _, text := range line.Texts {
			all = append(all, []string{*line.Query, text})
		}
		return all, nil
	}, func(l *filter.Line[[]Ranked], rows [][]float32, _ bool) {
		l.Value = []Ranked{}
		for i, x := range rows {
			l.Value = append(l.Value, Ranked{i, x[0]})
		}
		slices.SortStableFunc(l.Value, func(a, b Ranked) int { return cmp.Compare(b.Score, a.Score) })
	})
}

// Scores returns the score of each pair of texts.
func (s Scorer) Scores(ctx context.Context, pairs [][]string) (scores []float64, err error) {
	tape := tensor.NewTape(tensor.Infer)
	for some := range slices.Chunk(pairs, 128) {
		list := make([]encoded, len(some))
		for i, pair := range some {
			if list[i], _, err = s.encode(ctx, pair...); err != nil {
				return nil, fmt.Errorf("pair %d: %w", len(scores)+i+1, err)
			}
		}
		rows, err := s.run(ctx, tape, list)
		if err != nil {
			return nil, err
		}
		for _, x := range rows {
			scores = append(scores, float64(x))
		}
	}
	return scores, nil
}
