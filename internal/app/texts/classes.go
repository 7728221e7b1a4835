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
	"github.com/attn-go/attn/tokenizer"
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
	return network{c.Encode, c.Logits, len(c.Labels()), "a logit"}
}

// Ranked is a text with its score.
type Ranked struct {
	Text  int     `json:"text"` // its number in the line, from 0
	Score float32 `json:"score"`
}

// Ranks returns the filter that ranks the texts of each line by how well they answer its query, best first. A line is a
// JSON object with the fields query and texts.
func Ranks(c *models.Classifier) (filter.Filter[[]Ranked], error) {
	f := filter.Filter[[]Ranked]{Batch: 16, Write: filter.JSON[[]Ranked]}
	return computed(logitsOf(c), f, func(l *filter.Line[[]Ranked]) (all [][]string, err error) {
		query, texts, err := rankLine(l.Text)
		for _, text := range texts {
			all = append(all, []string{query, text})
		}
		return all, err
	}, func(l *filter.Line[[]Ranked], logits [][]float32, _ bool) {
		l.Value, _ = rank(slices.Concat(logits...)) // a logit that is not finite is an error already
	}), wantScores(c)
}

// rankLine reads a line of Ranks.
func rankLine(text string) (query string, texts []string, err error) {
	var line struct {
		Query *string  `json:"query"`
		Texts []string `json:"texts"`
	}
	err = strictjson.Request([]byte(text), &line)
	if err == nil && (line.Query == nil || line.Texts == nil) {
		err = errors.New("has no query or no texts")
	}
	if err != nil {
		const want = `{"query": "a question", "texts": ["a passage", "another"]}`
		return "", nil, fmt.Errorf("want a JSON object such as %s: %w", want, err)
	}
	return *line.Query, line.Texts, nil
}

// rank returns texts in the order of their scores, or an error if one is not finite.
func rank(scores []float32) (list []Ranked, err error) {
	list = []Ranked{}
	for i, x := range scores {
		if list = append(list, Ranked{i, x}); x-x != 0 {
			err = errors.New("a score is not finite")
		}
	}
	slices.SortStableFunc(list, func(a, b Ranked) int { return cmp.Compare(b.Score, a.Score) })
	return list, err
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
			if encoded[i], _, err = c.Encode(ctx, pair...); err != nil {
				return nil, fmt.Errorf("pair %d: %w", len(scores)+i+1, err)
			}
		}
		logits, err := logitsOf(c).run(ctx, tape, encoded)
		if err != nil {
			return nil, err
		}
		for _, x := range logits {
			scores = append(scores, float64(x))
		}
	}
	return scores, nil
}
