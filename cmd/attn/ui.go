package main

// Rules for messages: one line, lower case, no period at the end. Standard output is for data only.

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

// invite prints what to type, if standard input is a terminal: without it, waiting for input looks
// like computing.
func (c console) invite(text string) {
	if isTerminal(c.in) {
		fmt.Fprintln(c.err, text)
	}
}

// endOfInput returns the keys that end the input on a terminal.
func endOfInput() string {
	if runtime.GOOS == "windows" {
		return "Ctrl-Z and Enter"
	}
	return "Ctrl-D"
}

// tryHint returns a command to try next: it translates a text and draws its attention map. TEXT
// replaces a text that is too long or not printable.
func tryHint(dir, text string) string {
	const fits = 60
	if text == "" || text[0] == '-' || len(text) > fits || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		text = "TEXT"
	}
	return fmt.Sprintf("try: attn translate --model %s --map %s", quoted(dir), quoted(text))
}

// drawAlignment draws the weights of the last cross-attention layer, averaged over its heads.
func drawAlignment(w io.Writer, t viz.Terminal, m *models.Model, source, target string) error {
	record, err := m.Record(source, target, heads.RecorderOptions{Kinds: []heads.Kind{heads.Cross}})
	if err != nil {
		return err
	}
	l := &record.Layers[len(record.Layers)-1]
	// Both end in the end mark, whose name would be a tall column label.
	l.Queries[len(l.Queries)-1], l.Keys[len(l.Keys)-1] = panels.EndMark, panels.EndMark
	f := viz.Figure{Panels: []viz.Panel{panels.New(l, viz.Mean, l.Mean())}}
	return f.Text(w, t)
}
