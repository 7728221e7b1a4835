package progress

import (
	"fmt"
	"io"
	"time"
)

// Stages shows the progress of work in several stages: a bar on a terminal, otherwise a line per
// stage and one every 30 s.
type Stages struct {
	line
	name    string
	started time.Time // start of the stage
	spoken  time.Time
}

// NewStages returns the progress of work that writes its messages to w.
func NewStages(w io.Writer) *Stages { return &Stages{line: newLine(w)} }

// Update shows the progress of a stage.
func (s *Stages) Update(name string, done, all int) {
	if name != s.name {
		s.Clear()
		s.name, s.started, s.spoken = name, time.Now(), time.Now()
	}
	left := ""
	if done > 0 {
		left = fmt.Sprintf("%v left", timeLeft(s.started, done, all).Round(time.Second))
	}
	switch {
	case s.due():
		s.bar(name, left, float64(done)/float64(max(all, 1)))
	case s.columns != nil:
	case done > 0 && done == all:
		fmt.Fprintf(s.w, "%s: %v\n", name, time.Since(s.started).Round(100*time.Millisecond))
	case done > 0 && time.Since(s.spoken) > 30*time.Second:
		s.spoken = time.Now()
		fmt.Fprintf(s.w, "%s: %d of %d, %s\n", name, done, all, left)
	}
}
