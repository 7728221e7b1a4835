package main

// Rules for what people read: one line a message, lower case, no period at the
// end; progress only while it changes, and nothing but data on standard output.

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"unicode"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/panels"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/viz"
)

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

// drawAlignment draws what the last layer of cross attention attends to, on average
// over its heads.
func drawAlignment(w io.Writer, t viz.Terminal, m *models.Model, source, target string) error {
	record, err := m.Record(source, target, heads.RecorderOptions{Kinds: []heads.Kind{heads.Cross}})
	if err != nil {
		return err
	}
	l := &record.Layers[len(record.Layers)-1]
	// Both end in the end mark, whose name would stand tall above the map.
	l.Queries[len(l.Queries)-1], l.Keys[len(l.Keys)-1] = panels.EndMark, panels.EndMark
	f := viz.Figure{Panels: []viz.Panel{panels.New(l, viz.Mean, l.Mean())}}
	return f.Text(w, t)
}
