package filter

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/input"
)

// rawLine is a line of the input, or the reason why it is invalid.
type rawLine struct {
	text string
	err  error
}

// queue contains lines that have been read but not taken, up to a window, so that the next window is ready when one
// is done.
type queue struct {
	mu    sync.Mutex
	lines []rawLine
	bytes int
	end   error         // the error after the last line; io.EOF if there is none
	more  chan struct{} // signals that lines or the end have arrived
	room  chan struct{} // signals that lines have been taken
}

// read reads lines in the background, so that an interruption need not wait for typed input. In strict mode, it ends
// at a line that is too long, because that line may have no end.
func read(ctx context.Context, in io.Reader, most int, strict bool) *queue {
	q := &queue{more: make(chan struct{}, 1), room: make(chan struct{}, 1)}
	go func() {
		r := bufio.NewReaderSize(in, 1<<16)
		for {
			l, there, err := readLine(r, most, strict)
			if !q.put(ctx, l, there, err) || err != nil {
				return
			}
		}
	}()
	return q
}

// put adds a line once there is room, and reports whether the queue is still in use.
func (q *queue) put(ctx context.Context, l rawLine, there bool, end error) bool {
	for {
		q.mu.Lock()
		if !q.full() {
			break
		}
		q.mu.Unlock()
		select {
		case <-q.room:
		case <-ctx.Done():
			return false
		}
	}
	if there {
		q.lines = append(q.lines, l)
		q.bytes += len(l.text)
	}
	q.end = end
	q.mu.Unlock()
	notify(q.more)
	return true
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // a signal is already pending
	}
}

// full reports whether the queue contains enough lines for a window.
func (q *queue) full() bool { return len(q.lines) >= windowLines || q.bytes >= windowBytes }

// take returns the lines of a window, and the error after them if the input has ended.
func (q *queue) take(ctx context.Context) ([]rawLine, error) {
	var patience <-chan time.Time // nil blocks until the first line arrives
	for waited := false; ; {
		q.mu.Lock()
		some := len(q.lines) > 0
		if q.end != nil || q.full() || some && waited {
			lines, end := q.lines, q.end
			q.lines, q.bytes = nil, 0
			q.mu.Unlock()
			notify(q.room)
			return lines, end
		}
		q.mu.Unlock()
		if some && patience == nil {
			patience = time.After(gathering)
		}
		select {
		case <-q.more:
		case <-patience:
			waited = true
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
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
