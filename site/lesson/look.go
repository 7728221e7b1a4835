//go:build !js || translator

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/probe"
)

// maxText is the number of characters that a page may give to a model. The training texts are shorter.
const maxText = 64

// weights are attention weights, whose JSON has four decimals, and null for what is not finite.
type weights []float32

func (w weights) MarshalJSON() ([]byte, error) {
	rounded := make(reals, len(w))
	for i, x := range w {
		if rounded[i] = x; x-x == 0 { // finite
			rounded[i] = float32(max(0, min(int(float32(x*10_000)+0.5), 10_000))) / 10_000
		}
	}
	return rounded.MarshalJSON()
}

// shownLayer has the weights of one attention layer for one text.
type shownLayer struct {
	Name    string    `json:"name"`
	Kind    string    `json:"kind"` // "encoder", "decoder" or "cross"
	Queries []string  `json:"queries"`
	Keys    []string  `json:"keys"`
	Numbers []int     `json:"numbers"` // of the heads, in the unpruned model
	Heads   []weights `json:"heads"`   // [Lq Lk] each
}

// shown is what a model does with one text.
type shown struct {
	Input   string       `json:"input"`
	Output  string       `json:"output"`
	Layers  []shownLayer `json:"layers"`
	Unknown []string     `json:"unknown"` // characters of the input that the training texts lack
	Seconds float64      `json:"seconds"` // for the output and the weights of all heads
}

// checkText returns an error unless a model can read the text. The page shows the error as a sentence.
func checkText(text string) error {
	switch n := utf8.RuneCountInString(text); {
	case strings.TrimSpace(text) == "":
		return errors.New("the text is empty")
	case n > maxText:
		return fmt.Errorf("the text has %s characters; the model reads at most %d", quote.Count(n), maxText)
	}
	return nil
}

// look translates a text and records the weights of all heads. If target is not empty, the weights are those of
// writing the target instead of the output.
func look(ctx context.Context, m *models.Model, text, target string) (*shown, error) {
	if err := checkText(text); err != nil {
		return nil, err
	}
	start := time.Now()
	outputs, err := m.Translate(ctx, []string{text}, 1)
	if err != nil {
		return nil, err
	}
	s := &shown{Input: text, Output: outputs[0], Unknown: []string{}, Layers: []shownLayer{}}
	if t, err := m.Tokenizer(); err == nil {
		s.Unknown = append(s.Unknown, t.Unknown(text)...)
	}
	if target == "" {
		target = s.Output
	}
	record, err := probe.RecordTexts(ctx, m, text, target, heads.RecorderOptions{})
	if err != nil {
		return nil, err
	}
	s.Seconds = time.Since(start).Seconds()
	for i := range record.Layers {
		l := &record.Layers[i]
		x := shownLayer{
			Name: l.Name, Kind: l.Kind.String(), Numbers: m.HeadNumbers(l.Name),
			Queries: record.Labels(l.Queries), Keys: record.Labels(l.Keys),
		}
		for h := range l.Heads {
			x.Heads = append(x.Heads, l.Head(h))
		}
		if x.Numbers == nil { // attention without projections
			x.Numbers = []int{0}
		}
		s.Layers = append(s.Layers, x)
	}
	return s, nil
}
