// Package filter maps lines to lines, for commands that other programs drive: through
// pipes, on schedulers, in Spark.
//
// The contract: one line out for each line in, in the same order, whatever the line holds.
// A line that cannot be processed, or makes the program panic, has an error in its place, or
// ends the run if that is asked for. What a line becomes does not depend on its neighbours, as long as the work on
// a batch does not. Memory is bounded, however long the input or a line of it.
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

// Line is a line of the input and what became of it.
type Line[V any] struct {
	Number int    // from 1
	Text   string // without its end
	Value  V
	Err    error // why there is no value
}

// Filter says how lines become lines.
type Filter[V any] struct {
	// Name is that of the input, for errors.
	Name string
	// MaxBytes is the length of the longest line; longer ones cannot be processed. 0
	// means 1 MiB.
	MaxBytes int
	// Batch is how many lines are worked on at a time at most; 0 means 64.
	Batch int
	// Room bounds a batch of more than one line: the number of its lines times the length
	// of the longest. 0 means no bound.
	Room int
	// Prepare is called once for each line before the work on it. It returns the line's
	// length, in the units that work depends on, or why it cannot be processed; what it
	// has found out may wait in the line's value. Lines of similar length come into one
	// batch. Nil means a length in bytes.
	Prepare func(l *Line[V]) (length int, err error)
	// Work sets the value or the error of every line of a batch. Its own error ends the
	// run: it is not about a line.
	Work func(ctx context.Context, batch []*Line[V]) error
	// Write writes a line, which has been worked on, with its end.
	Write func(w io.Writer, l *Line[V]) error
	// Strict ends the run at the first line that cannot be processed, with an *input.Error.
	Strict bool
	// Rejected, if it is not nil, is told of lines that cannot be processed.
	Rejected func(err *input.Error)
}

// Stats are what a run has done.
type Stats struct {
	Lines    int // that were written
	Rejected int // of them, those with an error
}

// Lines are gathered in windows, in which they are sorted by length: a large window makes
// for batches with little padding, and is what memory is needed for. The first is small, and
// they grow until the work on one takes about patience: what is done is then soon written,
// also if the run is interrupted.
const (
	leastLines  = 64
	patience    = time.Second
	windowLines = 2048
	windowBytes = 4 << 20
	// gathering is how long a window waits for more lines, when some have come: somebody
	// may be typing, and then what has come is to be answered.
	gathering = 10 * time.Millisecond
)

// Run reads lines until the input or ctx ends. All that it has written is flushed when it
// returns, and whenever it waits for more input.
//
// Errors: an *input.Error if it is strict, and those of in, out, Work and ctx; the lines before
// are then written.
func (f Filter[V]) Run(ctx context.Context, in io.Reader, out io.Writer) (s Stats, err error) {
	f.setDefaults()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // the reader ends too, when what it reads next has come
	waiting := read(ctx, in, f.MaxBytes, f.Strict)
	w := bufio.NewWriterSize(out, 1<<16)
	defer func() {
		if failed := w.Flush(); err == nil {
			err = failed
		}
	}()
	least := max(f.Batch, leastLines)
	size := least // of a window
	for number := 0; ; {
		window, end := waiting.take(ctx)
		lines := make([]*Line[V], len(window))
		for i, l := range window {
			number++
			lines[i] = &Line[V]{Number: number, Text: l.text, Err: l.err}
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
	if f.Prepare == nil {
		f.Prepare = func(l *Line[V]) (int, error) { return len(l.Text), nil }
	}
}

// Texts is Run for texts that are at hand. It is strict.
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

// window works on some lines and writes them.
func (f Filter[V]) window(ctx context.Context, lines []*Line[V], w io.Writer, s *Stats) error {
	todo := make([]*Line[V], 0, len(lines))
	length := make(map[*Line[V]]int, len(lines))
	for _, l := range lines {
		if err := ctx.Err(); err != nil {
			return err
		}
		if l.Err == nil {
			l.Err = guarded(func() (err error) { length[l], err = f.Prepare(l); return err })
		}
		if l.Err == nil {
			todo = append(todo, l)
		} else if f.Strict {
			break // nothing behind it is needed
		}
	}
	slices.SortStableFunc(todo, func(a, b *Line[V]) int { return cmp.Compare(length[a], length[b]) })
	for len(todo) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := 1
		for n < min(len(todo), f.Batch) && (f.Room == 0 || (n+1)*length[todo[n]] <= f.Room) {
			n++
		}
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
		if l.Err != nil { // of the writing too
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

// work works on a batch. If that panics it works on each line alone, as Prepare left it: those
// that panic again get the error.
func (f Filter[V]) work(ctx context.Context, batch []*Line[V]) error {
	prepared := make([]Line[V], len(batch))
	for i, l := range batch {
		prepared[i] = *l
	}
	err := guarded(func() error { return f.Work(ctx, batch) })
	if !isPanic(err) {
		return err
	}
	for i, l := range batch {
		*l = prepared[i]
		if len(batch) == 1 {
			l.Err = err
		} else if err := f.work(ctx, batch[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

// write writes a line to a buffer. If that panics the line gets the error, and nothing is written.
func (f Filter[V]) write(b *bytes.Buffer, l *Line[V]) error {
	err := guarded(func() error { return f.Write(b, l) })
	if isPanic(err) && l.Err == nil {
		b.Reset()
		l.Err = err
		return nil
	}
	return err
}
