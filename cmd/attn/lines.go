package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/attn-go/attn/internal/app/filter"
	"github.com/attn-go/attn/internal/app/shards"
	"github.com/attn-go/attn/internal/input"
)

// lineCommand is a command that writes one line per input line, by the contract of package filter.
type lineCommand interface {
	// streams reports whether the flags select line-by-line output.
	streams() bool
	// model returns the directory of the model, and whether its weights determine the results.
	model() (dir string, weights bool)
	// stream loads the model.
	stream(c console) (shards.Stream, error)
}

// newStream returns the stream of a filter. At the end, it reports the number of rejected lines.
func newStream[V any](f filter.Filter[V], c console) shards.Stream {
	return func(ctx context.Context, in io.Reader, name string, out io.Writer) (filter.Stats, error) {
		f := f
		f.Name = name
		var first *input.Error
		f.Rejected = func(e *input.Error) {
			if first == nil {
				first = e
			}
		}
		s, err := f.Run(ctx, in, out)
		if first != nil {
			c.say("%d of %d lines could not be processed, the first is %v", s.Rejected, s.Lines, first)
		}
		return s, err
	}
}

// runLines processes the lines of a file, or of standard input if path is empty. On a terminal, the
// invitation says what to type.
func runLines(ctx context.Context, c console, cmd lineCommand, path, invitation string) error {
	s, err := cmd.stream(c)
	if err != nil {
		return err
	}
	_, err = runStream(ctx, c, s, path, invitation)
	return err
}

// runStream is runLines for a loaded model.
func runStream(ctx context.Context, c console, s shards.Stream, path, invitation string) (filter.Stats, error) {
	in, name := c.in, "standard input"
	if path == "" || path == "-" {
		c.invite(invitation + "; " + endOfInput() + " ends the input")
	} else {
		f, err := os.Open(path)
		if err != nil {
			return filter.Stats{}, fmt.Errorf("%w; without a file, attn reads standard input: echo TEXT | attn …", err)
		}
		defer f.Close()
		in, name = f, path
	}
	return s(ctx, in, name, c.out)
}

// errNotLines lists the commands and flags that write one line per input line.
var errNotLines = errors.New("want translate without texts or --map, " +
	"embed, classify, rerank or tokenize without files or texts, or eval or heads with --per-line")

// identityOf returns the identity of a job: everything that determines the output of a command.
func identityOf(cmd lineCommand, args []string) (shards.Identity, error) {
	dir, weights := cmd.model()
	return shards.NewIdentity(version(), args, dir, weights)
}
