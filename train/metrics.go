package train

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"slices"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/curve"
)

// finalMetrics is the last line of the metrics file.
type finalMetrics struct {
	Kind curve.Kind `json:"kind"`
	Metrics
	Unseen bool `json:"unseen"` // the sources were not used for training
}

// metrics are the lines of the metrics file. They are saved together with the matching training
// state, so that no line is lost or repeated, even if a run is killed.
type metrics struct {
	lines [][]byte
	told  int // number of lines that have been written to Options.JSON
}

// readMetrics reads the metrics of the run in a directory, up to the step of its saved state: the
// lines after that step will be written again.
func readMetrics(dir string, step int) (m metrics, err error) {
	data, err := atomicfile.ReadFile(filepath.Join(dir, curve.File), atomicfile.Large)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	m.lines = curve.Lines(data)
	if i := slices.IndexFunc(m.lines, func(line []byte) bool { return curve.StepOf(line) > step }); i >= 0 {
		m.lines = m.lines[:i]
	}
	m.told = len(m.lines)
	return m, err
}

// unmeasured returns the last epoch if its evaluation was interrupted.
func (m *metrics) unmeasured() (last curve.Epoch, ok bool) {
	if n := len(m.lines); n > 0 && curve.KindOf(m.lines[n-1]) == curve.KindEpoch {
		ok = json.Unmarshal(m.lines[n-1], &last) == nil && math.IsNaN(float64(last.ValidLoss))
	}
	return last, ok
}

// add appends a line. A final evaluation replaces an earlier one that no epoch has followed, and an
// epoch replaces its own line without an evaluation.
func (m *metrics) add(line any) error {
	data, err := json.Marshal(line)
	if err != nil {
		return err
	}
	if n := len(m.lines); n > 0 {
		replaced := false
		switch line := line.(type) {
		case finalMetrics:
			replaced = curve.KindOf(m.lines[n-1]) == curve.KindFinal
		case curve.Epoch:
			last, ok := m.unmeasured()
			if replaced = ok && last.Epoch == line.Epoch; replaced && !line.ValidLoss.Known() {
				return nil // interrupted again
			}
		}
		if replaced {
			m.lines = m.lines[:n-1]
			m.told = min(m.told, n-1)
		}
	}
	m.lines = append(m.lines, append(data, '\n'))
	return nil
}

// fresh returns the lines that have not been written to Options.JSON.
func (m *metrics) fresh() [][]byte { return m.lines[m.told:] }

// file returns the metrics file.
func (m *metrics) file() atomicfile.File {
	return atomicfile.File{Path: curve.File, Write: func(w io.Writer) error {
		_, err := w.Write(bytes.Join(m.lines, nil))
		return err
	}}
}
