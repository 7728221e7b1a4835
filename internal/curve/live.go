package curve

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/strictjson"
)

// liveFile is the file in which a run reports its progress between two saves. Its name is that of
// a temporary file, so the next run removes the file of a run that was killed.
const liveFile = ".attn-live.tmp"

// Live is the progress of a run.
type Live struct {
	Time          time.Time     // of this report
	Epoch, Epochs int           // the current epoch, from 1, and the number of epochs
	Step, Steps   int           // counted over all epochs
	TrainLoss     Number        // mean over the last steps
	LR            float64       // of the last step
	Rate          Number        // tokens per second
	Left          time.Duration // estimated time until all epochs are done
	Recent        []Step        // points of the curve that are not saved yet
	Unsaved       bool          // the run has not written a checkpoint yet
}

// Interval is how often a run should write its progress.
const Interval = time.Second

// WriteLive writes the progress of the run in a directory. It does not sync the file to the disk:
// after a crash of the machine the file is useless.
func WriteLive(dir string, l Live) error {
	data, err := json.Marshal(l)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, liveFile)
	next := filepath.Join(dir, ".attn-live-next.tmp")
	if err := os.WriteFile(next, data, 0o644); err != nil {
		return err
	}
	return os.Rename(next, path)
}

// RemoveLive removes the file of WriteLive when the run has ended.
func RemoveLive(dir string) { _ = os.Remove(filepath.Join(dir, liveFile)) }

// Run is the state of a run as its directory shows it.
type Run struct {
	History
	Live *Live // nil unless a process is training or was killed
}

// Read reads the state of a run, including the points that are not saved yet.
//
// Errors: one that wraps fs.ErrNotExist if the directory contains no run.
func Read(dir string) (r Run, err error) {
	// Read this file before the metrics. If a save happens in between, some points appear twice and
	// the second is skipped. In the other order they would be missing.
	path := filepath.Join(dir, liveFile)
	text, err := atomicfile.ReadFile(path, atomicfile.Large)
	switch {
	case err == nil:
		r.Live = new(Live)
		if err := strictjson.Lenient(text, r.Live); err != nil {
			return r, fmt.Errorf("read %s: %w", path, err)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return r, err
	}
	data, err := atomicfile.ReadFile(filepath.Join(dir, File), atomicfile.Large)
	if err != nil && !(r.Live != nil && errors.Is(err, fs.ErrNotExist)) {
		return r, err
	}
	if r.Live == nil || !r.Live.Unsaved { // otherwise the lines are of a run that this one replaces
		r.History = Parse(Lines(data))
	}
	if r.Live == nil {
		return r, nil
	}
	last := 0
	if n := len(r.Steps); n > 0 {
		last = r.Steps[n-1].Step
	}
	for _, s := range r.Live.Recent {
		if s.Step > last {
			r.Steps = append(r.Steps, s)
		}
	}
	return r, nil
}
