package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// stages shows how long work of several stages goes on: a bar on a terminal, else
// a line a stage, and one every half minute so that nobody waits in silence.
type stages struct {
	w       io.Writer
	bars    bool
	bar     *progressbar.ProgressBar
	name    string
	started time.Time // the stage
	spoken  time.Time
}

func newStages(w io.Writer) *stages {
	f, ok := w.(*os.File)
	return &stages{w: w, bars: ok && term.IsTerminal(int(f.Fd()))}
}

// tell shows how far a stage is.
func (s *stages) tell(name string, done, all int) {
	if name != s.name {
		s.stop()
		s.name, s.started, s.spoken = name, time.Now(), time.Now()
		if s.bars {
			s.bar = progressbar.NewOptions(max(all, 1), progressbar.OptionSetWriter(s.w), progressbar.OptionSetPredictTime(true),
				progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(),
				progressbar.OptionSetElapsedTime(false), progressbar.OptionFullWidth(), progressbar.OptionSetDescription(name))
		}
	}
	if s.bars {
		_ = s.bar.Set(done) // a terminal that cannot be written to is no reason to stop
		return
	}
	switch {
	case done > 0 && done == all:
		fmt.Fprintf(s.w, "%s: %v\n", name, time.Since(s.started).Round(100*time.Millisecond))
	case done > 0 && time.Since(s.spoken) > 30*time.Second:
		s.spoken = time.Now()
		left := time.Duration(float64(time.Since(s.started)) * float64(all-done) / float64(done))
		fmt.Fprintf(s.w, "%s: %d of %d, %v left\n", name, done, all, left.Round(time.Second))
	}
}

// stop takes the bar away.
func (s *stages) stop() {
	if s.bar != nil {
		_ = s.bar.Clear()
		s.bar = nil
	}
}
