// Package progress shows the progress of long work on standard error. On a terminal it redraws a status
// line; in a log it writes a line for each stage, epoch or file.
package progress

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/app/hub"
	"github.com/attn-go/attn/internal/app/terminal"
	"github.com/attn-go/attn/internal/quote"
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
		rest := time.Duration(float64(time.Since(s.started)) * float64(all-done) / float64(done))
		left = fmt.Sprintf("%v left", rest.Round(time.Second))
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

// Download shows the progress of a download: a bar on a terminal, otherwise a line for each file.
type Download struct {
	line
	begun     time.Time
	first     int64 // bytes that an earlier command downloaded
	have, all int64
}

// NewDownload returns the progress of a download that writes its messages to w.
func NewDownload(w io.Writer) *Download { return &Download{line: newLine(w)} }

// Watch returns the functions to call during the download.
func (d *Download) Watch() hub.Watch { return hub.Watch{Bytes: d.bytes, Whole: d.whole} }

// Size returns the number of bytes downloaded and the total, as text.
func (d *Download) Size() (have, all string) { return quote.Bytes(d.have), quote.Bytes(d.all) }

func (d *Download) bytes(have, all int64) {
	if d.begun.IsZero() {
		d.begun, d.first = time.Now(), have
	}
	d.have, d.all = have, all
	if d.due() {
		rate := float64(have-d.first) / max(time.Since(d.begun).Seconds(), 0.1)
		before, after := quote.Bytes(have)+" of "+quote.Bytes(all), quote.Bytes(int64(rate))+"/s"
		d.bar(before, after, float64(have)/float64(max(all, 1)))
	}
}

func (d *Download) whole(f hub.File) {
	if d.columns == nil {
		fmt.Fprintf(d.w, "%s  %s\n", f.Path, quote.Bytes(f.Size))
	}
}

// Retry reports that a request failed and is repeated after some time.
func (d *Download) Retry(err error, after time.Duration) {
	d.Clear()
	fmt.Fprintf(d.w, "%s; retrying in %v\n", quote.Message(err.Error()), after.Round(time.Second))
}
