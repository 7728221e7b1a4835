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

// liveFile is where a run that is under way tells of itself between two saves. Its name is
// that of a temporary file, so the next run removes what a kill has left.
const liveFile = ".attn-live.tmp"

// Live is where a run stands.
type Live struct {
	Time          time.Time     // when that was
	Epoch, Epochs int           // the epoch under way, from 1, and their number
	Step, Steps   int           // of all epochs
	TrainLoss     Number        // mean over the last steps
	LR            float64       // of the last step
	Rate          Number        // tokens per second
	Left          time.Duration // until all epochs are done, as far as can be told
	Recent        []Step        // points of the curve that are not saved yet
	Unsaved       bool          // nothing of the run has been saved
}

// Interval is how often a run should tell.
const Interval = time.Second

// WriteLive tells where the run in a directory stands. It does not wait for the disk: after
// a crash of the machine nobody asks for it.
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

// RemoveLive tells that the run is no longer under way.
func RemoveLive(dir string) { _ = os.Remove(filepath.Join(dir, liveFile)) }

// Run is what a directory tells of its run.
type Run struct {
	History
	Live *Live // nil unless a process is training, or was killed
}

// Read returns what a directory tells, with the points that are not saved yet.
//
// Errors: one that wraps fs.ErrNotExist if the directory holds no run.
func Read(dir string) (r Run, err error) {
	// Before the lines: a save in between then makes points come twice, and those are
	// passed over. The other way round they would be missing.
	path := filepath.Join(dir, liveFile)
	text, err := os.ReadFile(path)
	switch {
	case err == nil:
		r.Live = new(Live)
		if err := strictjson.Lenient(text, r.Live); err != nil {
			return r, fmt.Errorf("read %s: %w", path, err)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return r, err
	}
	var data []byte
	err = atomicfile.Read(filepath.Join(dir, File), func(place string) (err error) {
		data, err = os.ReadFile(place)
		return err
	})
	if err != nil && !(r.Live != nil && errors.Is(err, fs.ErrNotExist)) {
		return r, err
	}
	if r.Live == nil || !r.Live.Unsaved { // else the lines are of a run that this one replaces
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
