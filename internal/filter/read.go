package filter

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/input"
)

// rawLine is a line of the input, or the reason why it is invalid.
type rawLine struct {
	text string
	err  error
}

// source is an input that is read in the background, so that an interruption need not wait for typed input.
type source struct {
	parts chan []rawLine // closed after the last line
	end   error          // the error after the last line, io.EOF if there is none; set when parts is closed
}

// Lines that are already in memory are sent together, up to a part of this size. A part may be a single line of the
// maximum length, so only a few are read ahead: with lines of 1 MiB, they need no more memory than a window.
const (
	partLines = 256
	partBytes = 1 << 16
	readAhead = 4
)

// read starts to read lines. In strict mode, it ends at a line that is too long, because that line may have no end.
func read(ctx context.Context, in io.Reader, most int, strict bool) *source {
	s := &source{parts: make(chan []rawLine, readAhead)}
	go func() {
		defer close(s.parts)
		r := bufio.NewReaderSize(in, partBytes)
		var part []rawLine
		for size := 0; s.end == nil; {
			var l rawLine
			var there bool
			if l, there, s.end = readLine(r, most, strict); there {
				part, size = append(part, l), size+len(l.text)
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
func (s *source) take(ctx context.Context) (lines []rawLine, end error) {
	var patience <-chan time.Time // nil blocks until the first line arrives
	for size := 0; len(lines) < windowLines && size < windowBytes; {
		select {
		case part, more := <-s.parts:
			if !more {
				return lines, s.end
			}
			for _, l := range part {
				lines, size = append(lines, l), size+len(l.text)
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
	case lines[0].err != nil:
		return "", &input.Error{Name: name, Line: 1, Err: lines[0].err}
	}
	return lines[0].text, nil
}

// errTooLong ends an input in strict mode.
var errTooLong = errors.New("too long")

// readLine returns the next line, whether there is one, and the error after it.
func readLine(r *bufio.Reader, most int, strict bool) (l rawLine, there bool, err error) {
	var b []byte
	long := false
	for {
		var piece []byte
		piece, err = r.ReadSlice('\n')
		there = there || len(piece) > 0
		// A line that is too long is discarded; two more bytes may be the line ending.
		if long = long || len(b)+len(piece) > most+2; !long {
			b = append(b, piece...)
		} else if b = nil; strict {
			return rawLine{err: tooLong(most)}, true, errTooLong
		}
		if err != bufio.ErrBufferFull {
			break
		}
	}
	b = bytes.TrimRight(bytes.TrimSuffix(b, []byte("\n")), "\r")
	if long {
		return rawLine{err: tooLong(most)}, there, err
	}
	l.text = strings.TrimPrefix(string(b), "\uFEFF")
	l.err = valid(l.text, most)
	if l.err == nil && strings.Contains(l.text, "\r") { // would turn one line into several
		l.err = errors.New("carriage return inside the line, want lines that end in LF or CRLF")
	}
	if l.err != nil {
		l.text = ""
	}
	return l, there, err
}

// Check returns an *input.Error for a text that a filter would reject: it is longer than most bytes or is invalid
// UTF-8. name and line are its source.
func Check(name string, line int, text string, most int) error {
	if err := valid(text, most); err != nil {
		return &input.Error{Name: name, Line: line, Err: err}
	}
	return nil
}

func valid(text string, most int) error {
	switch {
	case len(text) > most:
		return tooLong(most)
	case !utf8.ValidString(text):
		return errors.New("invalid UTF-8")
	}
	return nil
}

func tooLong(most int) error { return fmt.Errorf("longer than %d bytes", most) }
