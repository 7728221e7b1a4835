package main

import (
	"fmt"
	"io"
	"time"
)

// stages shows how long work of several stages goes on: a bar on a terminal, else
// a line a stage, and one every half minute so that nobody waits in silence.
type stages struct {
	statusLine
	name    string
	started time.Time // the stage
	spoken  time.Time
}

func newStages(w io.Writer) *stages { return &stages{statusLine: newStatusLine(w)} }

// tell shows how far a stage is.
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
