// Package curve reads the progress of a training run: the lines of metrics.jsonl, and the file through which another
// process can follow the run.
package curve

import (
	"bytes"
	"encoding/json"

	"github.com/attn-go/attn/internal/strictjson"
)

// File is the name of the metrics file in a run's directory: one JSON object per line, with a kind.
const File = "metrics.jsonl"

// PictureFile is the name of the picture of the metrics in a run's directory.
const PictureFile = "metrics.svg"

// Kind is the kind of a line.
type Kind string

// The kinds of lines.
const (
	KindStep  Kind = "step"  // a point of the curve
	KindEpoch Kind = "epoch" // the end of an epoch
	KindFinal Kind = "final" // the measurement at the end

	// KindUpdate is a single step. attn train --steps prints it, and the file does not contain it.
	KindUpdate Kind = "update"
)

// Number is a number in JSON; NaN is written as null.
type Number = strictjson.Number

// Step is a point of the curve: the mean over the steps since the previous point of the same
// epoch.
type Step struct {
	Kind      Kind    `json:"kind"`
	Step      int     `json:"step"`       // the last of these steps, counted from 1 over all epochs
	TrainLoss Number  `json:"train_loss"` // with dropout and smoothing
	LR        float64 `json:"lr"`         // of the last step
	Tokens    int     `json:"tokens"`
	Seconds   float64 `json:"seconds"`
}

// Rate returns the number of tokens processed per second, source and target; NaN if unknown.
func (s Step) Rate() float64 { return rate(s.Tokens, s.Seconds) }

// Epoch is the result of an epoch.
type Epoch struct {
	Kind      Kind    `json:"kind"`
	Epoch     int     `json:"epoch"`
	Step      int     `json:"step"`       // its last, counted over all epochs
	TrainLoss Number  `json:"train_loss"` // with dropout and smoothing
	ValidLoss Number  `json:"valid_loss"` // NaN if it was interrupted
	Tokens    int     `json:"tokens"`
	Seconds   float64 `json:"seconds"` // of training, without evaluation and saving
}

// Rate returns the number of tokens processed per second, source and target; NaN if unknown.
func (e Epoch) Rate() float64 { return rate(e.Tokens, e.Seconds) }

func rate(tokens int, seconds float64) float64 {
	if seconds <= 0 {
		return float64(strictjson.NaN)
	}
	return float64(tokens) / seconds
}

// Final has the main results of the evaluation at the end.
type Final struct {
	Perplexity Number `json:"perplexity"`
	ExactMatch Number `json:"exact_match"`
	BLEU       Number `json:"bleu"`
}

// History is the content of a run's metrics.
type History struct {
	Steps  []Step
	Epochs []Epoch
	Final  *Final // nil if there is none, or if an epoch follows it
}

// Drawable reports whether there is anything to draw.
func (h History) Drawable() bool { return len(h.Steps) > 0 }

// Lines returns the complete lines of a file. It omits an incomplete last line.
func Lines(data []byte) (lines [][]byte) {
	for line := range bytes.Lines(data) {
		if bytes.HasSuffix(line, []byte("\n")) {
			lines = append(lines, line)
		}
	}
	return lines
}

// Parse reads lines. It skips lines of other kinds and lines that are not JSON.
func Parse(lines [][]byte) (h History) {
	for _, line := range lines {
		switch KindOf(line) {
		case KindStep:
			read(line, func(s Step) { h.Steps = append(h.Steps, s) })
		case KindEpoch:
			read(line, func(e Epoch) { h.Epochs, h.Final = append(h.Epochs, e), nil })
		case KindFinal:
			read(line, func(f Final) { h.Final = &f })
		}
	}
	return h
}

// read calls add with the content of a line, unless it is not JSON.
func read[T any](line []byte, add func(T)) {
	var v T
	if json.Unmarshal(line, &v) == nil {
		add(v)
	}
}

// StepOf returns the step of a line, counted over all epochs, or 0 if it has none.
func StepOf(line []byte) (step int) {
	read(line, func(s struct{ Step int }) { step = s.Step })
	return step
}

// KindOf returns the kind of a line, or "" if it has none.
func KindOf(line []byte) (kind Kind) {
	read(line, func(s struct{ Kind Kind }) { kind = s.Kind })
	return kind
}
