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

// rawLine is a line of the input, or what is wrong with it.
type rawLine struct {
	text string
	err  error
}

// queue holds lines that have been read and not taken: a window of them, so that the next
// is there when one is done.
type queue struct {
	mu    sync.Mutex
	lines []rawLine
	bytes int
	end   error         // what is behind the last line; io.EOF if nothing is
	more  chan struct{} // there is something new
	room  chan struct{} // something has been taken
}

// read reads lines in the background, so that an interruption need not wait for somebody
// who types. An input that is strict ends at a line that is too long: it may have no end.
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

// put adds a line, when there is room, and reports whether somebody still wants it.
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
	default: // that there is something is known
	}
}

// full reports whether there are enough lines for a window.
func (q *queue) full() bool { return len(q.lines) >= windowLines || q.bytes >= windowBytes }

// take returns the lines of a window, and the error behind them if the input has ended.
func (q *queue) take(ctx context.Context) ([]rawLine, error) {
	var patience <-chan time.Time // nil is for ever, before the first line
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
// Errors: an *input.Error if it cannot be processed, io.EOF if there is none, and those of in
// and ctx.
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

// errTooLong ends an input that is strict.
var errTooLong = errors.New("too long")

// readLine returns the next line, if there is one, and the error behind it.
func readLine(r *bufio.Reader, most int, strict bool) (l rawLine, there bool, err error) {
	var b []byte
	long := false
	for {
		var piece []byte
		piece, err = r.ReadSlice('\n')
		there = there || len(piece) > 0
		// Of a line that is too long nothing is kept; two more may be its end.
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
	switch {
	case long || len(b) > most:
		l.err = tooLong(most)
	case !utf8.Valid(b):
		l.err = errors.New("invalid UTF-8")
	default:
		l.text = string(b)
		if strings.Contains(l.text, "\r") { // of many lines we would make one
			l = rawLine{err: errors.New("carriage return inside the line, want lines that end in LF or CRLF")}
		}
	}
	return l, there, err
}

func tooLong(most int) error { return fmt.Errorf("longer than %d bytes", most) }
