package main

// Rules for what people read: one line a message, lower case, no period at the
// end; progress only while it changes, and nothing but data on standard output.

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/viz"
)

// progress shows how training goes: a bar on a terminal, else a line an epoch,
// and one every half minute so that nobody waits in silence.
type progress struct {
	w      io.Writer
	bar    *progressbar.ProgressBar // nil unless w is a terminal
	bars   bool
	spoken time.Time
	tokens float64 // per second, smoothed
	first  int     // steps that an earlier run has made
	digits int     // of the last epoch: the columns of all lines agree
	start  time.Time
}

func newProgress(w io.Writer) *progress {
	return &progress{w: w, bars: isTerminal(w), spoken: time.Now(), start: time.Now(), first: -1}
}

// step shows one step.
func (p *progress) step(s seq2seq.Progress) {
	p.digits = len(strconv.Itoa(s.Epochs))
	done, all := (s.Epoch-1)*s.Steps+s.Step, s.Epochs*s.Steps
	if p.first < 0 {
		p.first = done - 1
	}
	rate := float64(s.Tokens) / s.Time.Seconds()
	if p.tokens == 0 {
		p.tokens = rate
	}
	p.tokens += 0.05 * (rate - p.tokens)
	if p.bars {
		if p.bar == nil {
			p.bar = newBar(p.w, all, "")
			_ = p.bar.Set(p.first)
		}
		p.bar.Describe(fmt.Sprintf("epoch %d/%d  loss %.4f  %.1fk tokens/s", s.Epoch, s.Epochs, s.Loss, p.tokens/1000))
		_ = p.bar.Set(done) // a terminal that cannot be written to is no reason to stop
		return
	}
	if time.Since(p.spoken) > 30*time.Second && !s.EpochDone {
		p.spoken = time.Now()
		left := time.Duration(float64(time.Since(p.start)) * float64(all-done) / float64(done-p.first))
		fmt.Fprintf(p.w, "epoch %d/%d  step %d/%d  loss %.4f  %.1fk tokens/s  %v left\n",
			s.Epoch, s.Epochs, s.Step, s.Steps, s.Loss, p.tokens/1000, left.Round(time.Second))
	}
}

// epoch shows the end of one.
func (p *progress) epoch(m epochMetrics) {
	if p.bars {
		_ = p.bar.Clear()
	}
	p.spoken = time.Now()
	fmt.Fprintf(p.w, "epoch %-*d  loss %.4f  valid %.4f  %5.1fk tokens/s  %.1f s\n",
		p.digits, m.Epoch, m.TrainLoss, m.ValidLoss, float64(m.Tokens)/m.Seconds/1000, m.Seconds)
}

// stop takes the bar away.
func (p *progress) stop() {
	if p.bar != nil {
		_ = p.bar.Clear()
		p.bar = nil
	}
}

// newBar returns a bar for a terminal, of work that is done when all is reached.
func newBar(w io.Writer, all int, description string) *progressbar.ProgressBar {
	return progressbar.NewOptions(all, progressbar.OptionSetWriter(w), progressbar.OptionSetPredictTime(true),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetElapsedTime(false), progressbar.OptionFullWidth(), progressbar.OptionSetDescription(description))
}

// isTerminal reports whether an input or output of the command is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// quoted returns a file's name as it can be pasted into a shell.
func quoted(path string) string {
	plain := func(r rune) bool {
		return r >= 0x80 || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || strings.ContainsRune(`/\:._-+,@%=`, r)
	}
	if strings.IndexFunc(path, func(r rune) bool { return !plain(r) }) < 0 {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// invite says on a terminal what is read from standard input and how to end it, because
// waiting in silence looks like work.
func (c console) invite(text string) {
	if isTerminal(c.in) {
		fmt.Fprintln(c.err, text)
	}
}

// endOfInput is the key that ends what is typed.
func endOfInput() string {
	if runtime.GOOS == "windows" {
		return "Ctrl-Z and Enter"
	}
	return "Ctrl-D"
}

// tryHint is a command to go on with: it translates a text and shows its map. A text
// that does not fit in a line of a shell is left to the reader.
func tryHint(dir, text string) string {
	const fits = 60
	if text == "" || text[0] == '-' || len(text) > fits || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		text = "TEXT"
	}
	return fmt.Sprintf("try: attn translate --model %s --map %s", quoted(dir), quoted(text))
}

// endMark stands for the end of a text.
const endMark = "∎"

// drawAlignment draws what the last layer of cross attention attends to, on average
// over its heads.
func drawAlignment(w io.Writer, t viz.Terminal, m *seq2seq.Translator, source, target string) error {
	record, err := m.Record(source, target, heads.RecorderOptions{Kinds: []heads.Kind{heads.Cross}})
	if err != nil {
		return err
	}
	l := &record.Layers[len(record.Layers)-1]
	// Both end in the end mark, whose name would stand tall above the map.
	l.Queries[len(l.Queries)-1], l.Keys[len(l.Keys)-1] = endMark, endMark
	f := viz.Figure{Panels: []viz.Panel{newPanel(l, viz.Mean, l.Mean())}}
	return f.Text(w, t)
}
