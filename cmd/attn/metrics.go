package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/attn-go/attn/internal/atomicfile"
)

// metricsFile gets a JSON object for each epoch and one for the final
// measurement.
const metricsFile = "metrics.jsonl"

// epochMetrics is a line of the metrics file.
type epochMetrics struct {
	Epoch     int     `json:"epoch"`
	TrainLoss number  `json:"train_loss"` // with dropout and smoothing
	ValidLoss number  `json:"valid_loss"` // NaN if it was interrupted
	Tokens    int     `json:"tokens"`
	Seconds   float64 `json:"seconds"` // of training, without measuring and saving
}

// finalMetrics is the last line of the metrics file.
type finalMetrics struct {
	measured
	Unseen bool `json:"unseen"` // the sources were kept from training
}

// metrics are the lines of the metrics file. They are saved together with the state of
// training that they tell of, so none is missing and none comes twice, wherever a run
// was killed.
type metrics struct{ lines [][]byte }

// readMetrics returns those of the run in a directory.
func readMetrics(dir string) (m metrics, err error) {
	data, err := os.ReadFile(filepath.Join(dir, metricsFile))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	for line := range bytes.Lines(data) {
		if bytes.HasSuffix(line, []byte("\n")) { // half a line is no line
			m.lines = append(m.lines, line)
		}
	}
	return m, err
}

// add appends a line and returns it. A final measurement replaces one that no epoch has
// followed.
func (m *metrics) add(line any) ([]byte, error) {
	data, err := json.Marshal(line)
	if err != nil {
		return nil, err
	}
	data = append(data, '\n')
	_, final := line.(finalMetrics)
	if n := len(m.lines); final && n > 0 && !isEpoch(m.lines[n-1]) {
		m.lines = m.lines[:n-1]
	}
	m.lines = append(m.lines, data)
	return data, nil
}

func isEpoch(line []byte) bool {
	var fields struct{ Epoch *int }
	return json.Unmarshal(line, &fields) == nil && fields.Epoch != nil
}

// file returns the metrics file.
func (m *metrics) file() atomicfile.File {
	return atomicfile.File{Path: metricsFile, Write: func(w io.Writer) error {
		_, err := w.Write(bytes.Join(m.lines, nil))
		return err
	}}
}
