package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/attn-go/attn/internal/filter"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/shards"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/train"
)

// lineStream maps the lines of an input, which has a name, to as many lines.
type lineStream func(ctx context.Context, in io.Reader, name string, out io.Writer) (filter.Stats, error)

// lineCommand is a command that maps lines to lines: it keeps the contract of package
// filter.
type lineCommand interface {
	// streams returns an error unless the flags ask for lines.
	streams() error
	// modelDir returns the directory of the model, and modelFiles those of its files from
	// which all results follow.
	modelDir() string
	modelFiles() ([]string, error)
	// stream loads the model.
	stream(c console) (lineStream, error)
}

// newStream returns the stream of a filter. It says at the end how many lines could not
// be processed.
func newStream[V any](f filter.Filter[V], c console) lineStream {
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

// runLines maps the lines of a file, or without a path those of standard input.
func runLines(ctx context.Context, c console, cmd lineCommand, path, invitation string) error {
	s, err := cmd.stream(c)
	if err != nil {
		return err
	}
	_, err = runStream(ctx, c, s, path, invitation)
	return err
}

// runStream is runLines for a stream that is at hand.
func runStream(ctx context.Context, c console, s lineStream, path, invitation string) (filter.Stats, error) {
	in, name := c.in, "standard input"
	if path == "" || path == "-" {
		c.invite(invitation + "; " + endOfInput() + " ends the input")
	} else {
		f, err := os.Open(path)
		if err != nil {
			return filter.Stats{}, err
		}
		defer f.Close()
		in, name = f, path
	}
	return s(ctx, in, name, c.out)
}

// pairOf returns the pair of a line, or why there is none that can be processed.
func pairOf(line string) (seq2seq.Pair, error) {
	p, err := train.ParsePair(line)
	if err == nil && train.TooLong(p) {
		err = fmt.Errorf("a text of more than %d bytes", train.LongestText)
	}
	return p, err
}

// pairsOf returns the pairs of a batch, and the lines that they are of; the others get
// their errors.
func pairsOf[V any](batch []*filter.Line[V]) (pairs []seq2seq.Pair, of []*filter.Line[V]) {
	for _, l := range batch {
		p, err := pairOf(l.Text)
		if err != nil {
			l.Err = err
			continue
		}
		pairs, of = append(pairs, p), append(of, l)
	}
	return pairs, of
}

// errNotLines says which commands map lines to lines.
var errNotLines = errors.New("want translate without texts and --map, embed or tokenize without files and texts, or eval or heads with --per-line")

// followsFrom returns what the lines of a command's output follow from.
func followsFrom(cmd lineCommand, args []string) (shards.Identity, error) {
	files, err := cmd.modelFiles()
	if err != nil {
		return shards.Identity{}, err
	}
	return shards.NewIdentity(version(), args, cmd.modelDir(), files)
}

var pretrainedFiles = shards.PretrainedFiles
