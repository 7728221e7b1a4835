package main

// Rules for messages: one line, lower case, no period at the end. Standard output is for data only.

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"unicode"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/figures"
	"github.com/attn-go/attn/internal/app/filter"
	"github.com/attn-go/attn/internal/app/guard"
	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/probe"
	"github.com/attn-go/attn/viz"
)

// console groups the standard streams of a command.
type console struct {
	in       io.Reader
	out, err io.Writer
	// writes lists the files that the command overwrites. The command must not read them.
	writes guard.Outputs
}

// say writes a message of one line to standard error. Control characters in it are escaped,
// because file names, flags and server responses are untrusted.
func (c console) say(format string, args ...any) {
	fmt.Fprintln(c.err, quote.Message(fmt.Sprintf(format, args...)))
}

// width returns the width of standard output if that is a terminal, otherwise 0.
func (c console) width() int {
	if !isTerminal(c.out) {
		return 0
	}
	return columns(c.out)
}

// invite prints what to type, if standard input is a terminal: without it, waiting for input looks
// like computing.
func (c console) invite(text string) {
	if isTerminal(c.in) {
		fmt.Fprintln(c.err, text)
	}
}

// text returns a text of the command line or, if it is nil, the first line of standard input, of at most
// longest bytes.
func (c console) text(ctx context.Context, given *string, invitation string, longest int) (string, error) {
	if given != nil {
		return *given, checkText("argument", 1, *given, longest)
	}
	c.invite(invitation)
	text, err := filter.First(ctx, c.in, "standard input", longest)
	if err == io.EOF {
		err = input.Errorf("standard input", "no text")
	}
	return text, err
}

// writeFiles writes the files that have a path, all of them or none. "-" is standard output. It reports
// whether there is any.
func (c console) writeFiles(files ...atomicfile.File) (written bool, err error) {
	files = slices.DeleteFunc(files, func(f atomicfile.File) bool { return f.Path == "" })
	standard := func(f atomicfile.File) bool { return f.Path == "-" }
	at := slices.IndexFunc(files, standard)
	err = atomicfile.WriteAll(slices.DeleteFunc(slices.Clone(files), standard)...)
	if err == nil && at >= 0 {
		err = files[at].Write(c.out)
	}
	return len(files) > 0, err
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
	record, err := probe.RecordTexts(context.Background(), m, source, target, heads.RecorderOptions{Kinds: []heads.Kind{heads.Cross}})
	if err != nil {
		return err
	}
	return figures.Alignment(record).Text(w, t)
}
