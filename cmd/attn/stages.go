package main

import (
	"fmt"
	"io"
	"time"
)

// stages shows the progress of work in several stages: a bar on a terminal, otherwise a line per
// stage and one every 30 s.
type stages struct {
	statusLine
	name    string
	started time.Time // start of the stage
	spoken  time.Time
}

func newStages(w io.Writer) *stages { return &stages{statusLine: newStatusLine(w)} }

// tell shows the progress of a stage.
func (s *stages) tell(name string, done, all int) {
	if name != s.name {
		s.clear()
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
