package chart

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"
	"time"

	"github.com/attn-go/attn/internal/curve"
	"github.com/attn-go/attn/internal/strictjson"
	"github.com/attn-go/attn/viz"
)

// Fact is a name with a value.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Page is the content of a page about a run.
type Page struct {
	Status string       `json:"status"`
	Over   bool         `json:"over"` // nothing will change unless the run is resumed
	Facts  []Fact       `json:"facts"`
	Chart  string       `json:"chart"` // SVG; empty if there is nothing to draw
	Note   string       `json:"note"`  // about the chart
	Film   FilmSummary  `json:"film"`
	Sample curve.Sample `json:"sample"`
}

// FilmSummary describes the film of the run.
type FilmSummary struct {
	Steps  []int          `json:"steps"` // empty if there is no film
	Losses []curve.Number `json:"losses"`
	Title  string         `json:"title"` // of the pictures
	Text   string         `json:"text"`  // that the model reads and writes
	Error  string         `json:"error,omitempty"`
}

// Frame is a frame of a film.
type Frame struct {
	Picture string `json:"picture"` // SVG
	Text    string `json:"text"`    // numbers of its heads
}

// silence is how old the progress of a run may be before the page says so.
const silence = 15 * time.Second

// ReadPage returns the content of a page about the run in a directory, see NewPage. A directory without a run is no
// error: training may start later.
func ReadPage(dir string, now time.Time, width float64) (Page, error) {
	run, err := curve.Read(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return Page{Status: "no run here yet", Facts: []Fact{}}, nil
	} else if err != nil {
		return Page{}, err
	}
	return NewPage(run, now, width)
}

// NewPage returns the content of a page about a run, of the given width at a given time.
func NewPage(r curve.Run, now time.Time, width float64) (p Page, err error) {
	p.Status, p.Over = status(r, now)
	p.Facts = facts(r)
	if r.Drawable() {
		var b strings.Builder
		all := stacked(append(chartsOf(r.History, width), speed(r.History, width)))
		all.Charts[0].Inline = true
		err = all.SVG(&b)
		p.Chart = b.String()
	}
	return p, err
}

// status describes the state of the run.
func status(r curve.Run, now time.Time) (text string, over bool) {
	switch {
	case r.Live != nil && now.Sub(r.Live.Time) > silence:
		return fmt.Sprintf("no update for %v", now.Sub(r.Live.Time).Round(time.Second)), false
	case r.Live != nil && r.Live.Step == r.Live.Steps:
		return "measuring", false
	case r.Live != nil:
		return "training", false
	case r.Final != nil:
		return "done", true
	}
	return "not running", true
}

// facts lists the numbers of the run.
func facts(r curve.Run) []Fact {
	var list []Fact
	add := func(name, format string, values ...any) {
		list = append(list, Fact{name, fmt.Sprintf(format, values...)})
	}
	loss, lr, rate := strictjson.NaN, math.NaN(), strictjson.NaN
	if n := len(r.Steps); n > 0 {
		s := r.Steps[n-1]
		loss, lr, rate = s.TrainLoss, s.LR, curve.Number(s.Rate())
		if r.Live == nil {
			add("step", "%d", s.Step)
		}
	}
	if n := len(r.Epochs); n > 0 && r.Live == nil { // a whole epoch is more precise than the last point
		loss, rate = r.Epochs[n-1].TrainLoss, curve.Number(r.Epochs[n-1].Rate())
	}
	if l := r.Live; l != nil {
		add("epoch", "%d of %d", l.Epoch, l.Epochs)
		add("step", "%d of %d", l.Step, l.Steps)
		loss, lr, rate = l.TrainLoss, l.LR, l.Rate
	}
	if loss.Known() {
		add("training loss", "%.4f", loss)
	}
	if n := len(r.Epochs); n > 0 && r.Epochs[n-1].ValidLoss.Known() {
		add("validation loss", "%.4f", r.Epochs[n-1].ValidLoss)
	}
	if lr == lr {
		add("learning rate", "%.3g", lr)
	}
	if rate.Known() {
		add("tokens per second", "%.1fk", rate/1000)
	}
	if l := r.Live; l != nil && l.Left > 0 {
		add("left", "%v", l.Left.Round(time.Second))
	}
	if f := r.Final; f != nil {
		add("exact match", "%.1f%%", 100*f.ExactMatch)
		add("BLEU", "%.1f", f.BLEU)
		add("perplexity", "%.3f", f.Perplexity)
	}
	return list
}

// speed draws tokens per second.
func speed(h curve.History, width float64) viz.Chart {
	var l viz.Line
	for _, s := range h.Steps {
		l.X, l.Y = append(l.X, float64(s.Step)), append(l.Y, s.Rate())
	}
	return chartOf(h, width, rateHeight, "tokens per second", l)
}
