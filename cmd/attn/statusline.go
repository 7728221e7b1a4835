package main

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// statusLine is a line of a terminal that is drawn over itself.
type statusLine struct {
	w       io.Writer
	columns func() int // of the terminal; nil if w is none
	drawn   int        // characters on the line
	shown   time.Time
}

func newStatusLine(w io.Writer) statusLine {
	l := statusLine{w: w}
	if isTerminal(w) {
		l.columns = func() int { return columns(w) }
	}
	return l
}

// due reports whether there is a terminal whose line is old enough to be drawn again.
func (l *statusLine) due() bool {
	return l.columns != nil && time.Since(l.shown) > 100*time.Millisecond
}

// bar draws which share of the work is done, and texts on both sides of the bar.
func (l *statusLine) bar(before, after string, share float64) {
	columns := l.columns() - 1 // a terminal breaks a line that fills it
	before = fmt.Sprintf("%s %3.0f%% |", before, 100*share)
	room := max(0, columns-utf8.RuneCountInString(before+after)-2)
	full := max(0, min(int(float64(room)*share), room))
	line := before + strings.Repeat("█", full) + strings.Repeat(" ", room-full) + "| " + after
	l.draw(line[:cutAt(line, columns)])
}

// draw replaces the line.
func (l *statusLine) draw(line string) {
	n := utf8.RuneCountInString(line)
	// Spaces and no control characters: a log that takes this for a terminal stays readable.
	fmt.Fprintf(l.w, "\r%s%s", line, strings.Repeat(" ", max(0, l.drawn-n)))
	l.drawn, l.shown = n, time.Now()
}

// clear erases the line.
func (l *statusLine) clear() {
	if l.drawn > 0 {
		l.draw("")
		fmt.Fprint(l.w, "\r")
		l.shown = time.Time{}
	}
}

// cutAt returns how many bytes the first characters of a text have.
func cutAt(text string, characters int) int {
	for i := range text {
		if characters--; characters < 0 {
			return i
		}
	}
	return len(text)
}

// timeLeft estimates how long the rest of the work takes, from the part that is done.
func timeLeft(begun time.Time, done, all int) time.Duration {
	return time.Duration(float64(time.Since(begun)) * float64(all-done) / float64(done))
}
