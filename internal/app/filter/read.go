package filter

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"time"

	"github.com/attn-go/attn/internal/input"
)

// reader is an input that is read in the background, so that an interruption need not wait for typed input.
type reader struct {
	parts chan []input.Line // closed after the last line
	end   error             // the error after the last line, io.EOF if there is none; set when parts is closed
}

// Lines that are already in memory are sent together, up to a part of this size. A part may be a single line of the
// maximum length, so only a few are read ahead: with lines of 1 MiB, they need no more memory than a window.
const (
	partLines = 256
	partBytes = 1 << 16
	readAhead = 4
)

// read starts to read lines. In strict mode, it ends at a line that is too long, because that line may have no end.
func read(ctx context.Context, in io.Reader, most int, strict bool) *reader {
	s := &reader{parts: make(chan []input.Line, readAhead)}
	go func() {
		defer close(s.parts)
		r := bufio.NewReaderSize(in, partBytes)
		var part []input.Line
		for size := 0; s.end == nil; {
			var l input.Line
			var there bool
			if l, there, s.end = input.ReadLine(r, most, strict); there {
				part, size = append(part, l), size+len(l.Text)
			}
			next, _ := r.Peek(r.Buffered())
			more := s.end == nil && bytes.IndexByte(next, '\n') >= 0
			if len(part) == 0 || more && len(part) < partLines && size < partBytes {
				continue
			}
			select {
			case s.parts <- part:
				part, size = nil, 0
			case <-ctx.Done():
				s.end = ctx.Err()
			}
		}
	}()
	return s
}

// take returns the lines of a window, and the error after them if the input has ended.
func (s *reader) take(ctx context.Context) (lines []input.Line, end error) {
	var patience <-chan time.Time // nil blocks until the first line arrives
	for size := 0; len(lines) < windowLines && size < windowBytes; {
		select {
		case part, more := <-s.parts:
			if !more {
				return lines, s.end
			}
			for _, l := range part {
				lines, size = append(lines, l), size+len(l.Text)
			}
			if patience == nil {
				patience = time.After(gathering)
			}
		case <-patience:
			return lines, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return lines, nil
}

// First returns the first line of an input.
//
// Errors: an *input.Error if the line cannot be processed, io.EOF if there is none, and errors of in and ctx.
func First(ctx context.Context, in io.Reader, name string, most int) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lines, end := read(ctx, in, most, true).take(ctx)
	switch {
	case len(lines) == 0:
		return "", end
	case lines[0].Err != nil:
		return "", &input.Error{Name: name, Line: 1, Err: lines[0].Err}
	}
	return lines[0].Text, nil
}
