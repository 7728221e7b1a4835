// Package progress shows the progress of long work on standard error. On a terminal it redraws a status
// line; in a log it writes a line for each stage, epoch or file.
package progress

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/app/terminal"
)

// line is a status line of a terminal that each update overwrites.
type line struct {
	w       io.Writer
	columns func() int // width of the terminal; nil if w is not a terminal
	drawn   int        // characters on the line
	shown   time.Time
}

func newLine(w io.Writer) line {
	l := line{w: w}
	if terminal.Is(w) {
		l.columns = func() int { return terminal.Columns(w) }
	}
	return l
}

// due reports whether w is a terminal and the line was drawn more than 100 ms ago.
func (l *line) due() bool {
	return l.columns != nil && time.Since(l.shown) > 100*time.Millisecond
}

// bar draws the share of the work that is done, with texts before and after the bar.
func (l *line) bar(before, after string, share float64) {
	columns := l.columns() - 1 // a terminal wraps a line that fills its width
	before = fmt.Sprintf("%s %3.0f%% |", before, 100*share)
	room := max(0, columns-utf8.RuneCountInString(before+after)-2)
	full := max(0, min(int(float64(room)*share), room))
	text := before + strings.Repeat("█", full) + strings.Repeat(" ", room-full) + "| " + after
	l.draw(text[:cutAt(text, columns)])
}

// draw replaces the line.
func (l *line) draw(text string) {
	n := utf8.RuneCountInString(text)
	// Spaces instead of control sequences keep a recorded log readable.
	fmt.Fprintf(l.w, "\r%s%s", text, strings.Repeat(" ", max(0, l.drawn-n)))
	l.drawn, l.shown = n, time.Now()
}

// Clear erases the line.
func (l *line) Clear() {
	if l.drawn > 0 {
		l.draw("")
		fmt.Fprint(l.w, "\r")
		l.shown = time.Time{}
	}
}

// cutAt returns the length in bytes of the first characters of a text.
func cutAt(text string, characters int) int {
	for i := range text {
		if characters--; characters < 0 {
			return i
		}
	}
	return len(text)
}

// timeLeft estimates the time for the rest of the work from the time for the part that is done.
func timeLeft(begun time.Time, done, all int) time.Duration {
	return time.Duration(float64(time.Since(begun)) * float64(all-done) / float64(done))
}
