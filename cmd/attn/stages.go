package main

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
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
	return &stages{w: w, bars: isTerminal(w)}
}

// tell shows how far a stage is.
func (s *stages) tell(name string, done, all int) {
	if name != s.name {
		s.stop()
		s.name, s.started, s.spoken = name, time.Now(), time.Now()
		if s.bars {
			s.bar = newBar(s.w, max(all, 1), name)
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
