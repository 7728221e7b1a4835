// Package curve holds how a run of training went: the lines of metrics.jsonl, the
// picture of them, and the file by which another process can follow the run.
package curve

import (
	"bytes"
	"encoding/json"

	"github.com/attn-go/attn/internal/strictjson"
)

// File is the name of the lines in a run's directory: a JSON object each, with a kind.
const File = "metrics.jsonl"

// Kind says what a line tells of.
type Kind string

// The kinds of lines.
const (
	KindStep  Kind = "step"  // a point of the curve
	KindEpoch Kind = "epoch" // the end of an epoch
	KindFinal Kind = "final" // the measurement at the end

	// KindUpdate is a single step, which attn train --steps tells of and the file does not
	// keep.
	KindUpdate Kind = "update"
)

// Number is a number in JSON; what is none is null.
type Number = strictjson.Number

// Step is a point of the curve: the mean over the steps since the point before, within
// an epoch.
type Step struct {
	Kind      Kind    `json:"kind"`
	Step      int     `json:"step"`       // of all epochs, from 1: the last of them
	TrainLoss Number  `json:"train_loss"` // with dropout and smoothing
	LR        float64 `json:"lr"`         // of the last of them
	Tokens    int     `json:"tokens"`
	Seconds   float64 `json:"seconds"`
}

// Rate returns how many tokens were read and written in a second, NaN if unknown.
func (s Step) Rate() float64 { return rate(s.Tokens, s.Seconds) }

// Epoch is what an epoch has come to.
type Epoch struct {
	Kind      Kind    `json:"kind"`
	Epoch     int     `json:"epoch"`
	Step      int     `json:"step"`       // of all epochs: its last
	TrainLoss Number  `json:"train_loss"` // with dropout and smoothing
	ValidLoss Number  `json:"valid_loss"` // NaN if it was interrupted
	Tokens    int     `json:"tokens"`
	Seconds   float64 `json:"seconds"` // of training, without measuring and saving
}

// Rate returns how many tokens were read and written in a second, NaN if unknown.
func (e Epoch) Rate() float64 { return rate(e.Tokens, e.Seconds) }

func rate(tokens int, seconds float64) float64 {
	if seconds <= 0 {
		return float64(strictjson.NaN)
	}
	return float64(tokens) / seconds
}

// Final is what most readers want of the measurement at the end.
type Final struct {
	Kind       Kind   `json:"kind"`
	Loss       Number `json:"loss"`
	Perplexity Number `json:"perplexity"`
	ExactMatch Number `json:"exact_match"`
	BLEU       Number `json:"bleu"`
}

// History is what the lines of a run tell.
type History struct {
	Steps  []Step
	Epochs []Epoch
	Final  *Final // nil unless no epoch has followed it
}

// Lines returns the whole lines of a file: half a line is none.
func Lines(data []byte) (lines [][]byte) {
	for line := range bytes.Lines(data) {
		if bytes.HasSuffix(line, []byte("\n")) {
			lines = append(lines, line)
		}
	}
	return lines
}

// Parse reads lines. Those of other kinds, and what is no line of JSON, are passed over.
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

func read[T any](line []byte, add func(T)) {
	var v T
	if json.Unmarshal(line, &v) == nil {
		add(v)
	}
}

// StepOf returns the step that a line tells of, of all epochs, 0 if it tells of none.
func StepOf(line []byte) int {
	var fields struct{ Step int }
	_ = json.Unmarshal(line, &fields) // what is no line of JSON tells of none
	return fields.Step
}

// KindOf returns the kind of a line.
func KindOf(line []byte) Kind {
	var fields struct{ Kind Kind }
	if json.Unmarshal(line, &fields) != nil {
		return ""
	}
	return fields.Kind
}
