// Package filter maps lines to lines, for commands that other programs run: through pipes, on schedulers, in Spark.
//
// It writes one line for each line of input, in the same order, whatever the line contains. A line that cannot be
// processed, or makes the program panic, is replaced by an error or, in strict mode, ends the run. The result for a
// line does not depend on its neighbours, provided that Work treats the lines of a batch independently. Memory is
// bounded, even for very long input or lines.
package filter

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/attn-go/attn/internal/input"
)

// Line is a line of the input with its result.
type Line[V any] struct {
	Number int    // from 1
	Text   string // without its line ending and a byte order mark at its start
	Value  V
	Err    error // the reason if there is no value
}

// Filter describes how to map lines to lines.
type Filter[V any] struct {
	// Name is the name of the input, for errors.
	Name string
	// MaxBytes is the maximum length of a line; longer lines cannot be processed. 0 means 1 MiB.
	MaxBytes int
	// Batch is the maximum number of lines in a batch; 0 means 64.
	Batch int
	// Mixed batches have lines in the order of the input, because Work sorts them by itself. Others have lines of similar
	// length.
	Mixed bool
	// Work sets the value or the error of every line of a batch. An error that it returns ends the run, because it does
	// not concern a single line.
	Work func(ctx context.Context, batch []*Line[V]) error
	// Write writes a processed line, including its line ending.
	Write func(w io.Writer, l *Line[V]) error
	// Strict ends the run with an *input.Error at the first line that cannot be processed.
	Strict bool
	// Rejected, if not nil, is called for each line that cannot be processed.
	Rejected func(err *input.Error)
}

// Stats counts the lines of a run.
type Stats struct {
	Lines    int // lines written
	Rejected int // lines written with an error
}

// Lines are collected in windows and sorted by length within a window. A large window gives batches with little
// padding, but needs memory. The first window is small, and windows grow until processing one takes about patience.
// Results are therefore written soon, even if the run is interrupted.
const (
	leastLines  = 64
	patience    = time.Second
	windowLines = 2048
	windowBytes = 4 << 20
	// gathering is how long a window waits for more lines after the first: a user may be typing and expects an
	// answer.
	gathering = 10 * time.Millisecond
)

// Run reads lines until the input ends or ctx is cancelled. It flushes its output when it returns, and whenever it
// waits for more input.
//
// Errors: an *input.Error in strict mode, and errors of in, out, Work and ctx. All lines before the error have then
// been written.
func (f Filter[V]) Run(ctx context.Context, in io.Reader, out io.Writer) (s Stats, err error) {
	f.setDefaults()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the reader too, after its current read
	waiting := read(ctx, in, f.MaxBytes, f.Strict)
	w := bufio.NewWriterSize(out, 1<<16)
	defer func() {
		if failed := w.Flush(); err == nil {
			err = failed
		}
	}()
	least := max(leastLines, min(f.Batch, 2*leastLines))
	size := least // size of a window
	for number := 0; ; {
		window, end := waiting.take(ctx)
		lines := make([]*Line[V], len(window))
		for i, l := range window {
			number++
			lines[i] = &Line[V]{Number: number, Text: l.Text, Err: l.Err}
		}
		for len(lines) > 0 {
			n, start := min(size, len(lines)), time.Now()
			if err := f.window(ctx, lines[:n], w, &s); err != nil {
				return s, err
			}
			if err := w.Flush(); err != nil {
				return s, err
			}
			lines = lines[n:]
			switch took := time.Since(start); {
			case took > patience:
				size = max(size/2, least)
			case took < patience/2 && n == size:
				size *= 2
			}
		}
		if end != nil {
			if end == io.EOF {
				end = nil
			}
			return s, end
		}
	}
}

func (f *Filter[V]) setDefaults() {
	if f.MaxBytes == 0 {
		f.MaxBytes = 1 << 20
	}
	if f.Batch == 0 {
		f.Batch = 64
	}
}

// Texts is Run in strict mode for texts in memory.
func (f Filter[V]) Texts(ctx context.Context, texts []string, out io.Writer) error {
	f.setDefaults()
	f.Strict = true
	lines := make([]*Line[V], len(texts))
	for i, text := range texts {
		lines[i] = &Line[V]{Number: i + 1, Text: text}
	}
	w := bufio.NewWriterSize(out, 1<<16)
	return errors.Join(f.window(ctx, lines, w, new(Stats)), w.Flush())
}

// window processes a window of lines and writes the results.
func (f Filter[V]) window(ctx context.Context, lines []*Line[V], w io.Writer, s *Stats) error {
	todo := make([]*Line[V], 0, len(lines))
	for _, l := range lines {
		if l.Err == nil {
			todo = append(todo, l)
		} else if f.Strict {
			break // later lines are not needed
		}
	}
	if !f.Mixed {
		slices.SortStableFunc(todo, func(a, b *Line[V]) int { return cmp.Compare(len(a.Text), len(b.Text)) })
	}
	for len(todo) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(len(todo), f.Batch)
		if err := f.work(ctx, todo[:n]); err != nil {
			return err
		}
		todo = todo[n:]
	}
	var b bytes.Buffer
	for _, l := range lines {
		if l.Err == nil {
			if err := f.write(&b, l); err != nil {
				return err
			}
		}
		if l.Err != nil { // including errors of Write
			e := &input.Error{Name: f.Name, Line: l.Number, Err: l.Err}
			if f.Strict {
				return e
			}
			s.Rejected++
			if f.Rejected != nil {
				f.Rejected(e)
			}
			if err := f.write(&b, l); err != nil {
				return err
			}
		}
		if _, err := b.WriteTo(w); err != nil {
			return err
		}
		s.Lines++
	}
	return nil
}

// work processes a batch. If that panics, it processes each line alone; lines that panic again get the error.
func (f Filter[V]) work(ctx context.Context, batch []*Line[V]) error {
	unprocessed := make([]Line[V], len(batch))
	for i, l := range batch {
		unprocessed[i] = *l
	}
	err := guarded(func() error { return f.Work(ctx, batch) })
	if !isPanic(err) {
		return err
	}
	for i, l := range batch {
		*l = unprocessed[i]
		if len(batch) == 1 {
			l.Err = err
		} else if err := f.work(ctx, batch[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

// write writes a line to a buffer. If Write panics, the line gets the error, and the buffer is unchanged.
func (f Filter[V]) write(b *bytes.Buffer, l *Line[V]) error {
	err := guarded(func() error { return f.Write(b, l) })
	if isPanic(err) && l.Err == nil {
		b.Reset()
		l.Err = err
		return nil
	}
	return err
}
