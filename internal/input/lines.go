package input

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Line is a line of an input.
type Line struct {
	Text string // of a valid line
	Err  error  // why the line is invalid
}

const mark = "\uFEFF" // byte order mark

// Unmark removes byte order marks at the start of each line and column of a text. They are inside of files because
// files are concatenated, cut into shards, and joined column by column.
func Unmark(text string) string {
	if !strings.Contains(text, mark) {
		return text
	}
	kept := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		n := len(kept)
		if strings.HasPrefix(text[i:], mark) && (n == 0 || kept[n-1] == '\n' || kept[n-1] == '\t') {
			i += len(mark) - 1
		} else {
			kept = append(kept, text[i])
		}
	}
	return string(kept)
}

// ParseLine checks a line of text, which may have the given number of bytes, without the line ending, LF or CRLF, and
// without byte order marks (Unmark).
func ParseLine(line string, most int) Line {
	text := Unmark(strings.TrimRight(strings.TrimSuffix(line, "\n"), "\r"))
	err := valid(text, most)
	if err == nil && strings.Contains(text, "\r") { // would turn one line into several
		err = errors.New("carriage return inside the line, want lines that end in LF or CRLF")
	}
	if err != nil {
		return Line{Err: err}
	}
	return Line{Text: text}
}

// errTooLong ends an input in strict mode.
var errTooLong = errors.New("too long")

// ReadLine reads a line of at most the given number of bytes. It returns the line, whether there is one, and the error
// after it, io.EOF at the end. In strict mode, the input ends at a line that is too long, because that line may have no
// end.
func ReadLine(r *bufio.Reader, most int, strict bool) (l Line, there bool, err error) {
	var b []byte
	long := false
	for {
		var piece []byte
		piece, err = r.ReadSlice('\n')
		there = there || len(piece) > 0
		// A line that is too long is discarded; it is longer by its line ending and a byte order mark at most.
		if long = long || len(b)+len(piece) > most+len(mark+"\r\n"); !long {
			b = append(b, piece...)
		} else if b = nil; strict {
			return Line{Err: tooLong(most)}, true, errTooLong
		}
		if err != bufio.ErrBufferFull {
			break
		}
	}
	if long {
		return Line{Err: tooLong(most)}, there, err
	}
	return ParseLine(string(b), most), there, err
}

// EachLine calls visit with each line of r, of at most the given number of bytes, and its number, from 1, until visit
// returns io.EOF.
//
// Errors: an *Error with the given name for an invalid line and for any other error of visit; an error of r, wrapped.
func EachLine(r io.Reader, name string, most int, visit func(number int, text string) error) error {
	lines := bufio.NewReaderSize(r, 1<<16)
	for number := 1; ; number++ {
		l, there, end := ReadLine(lines, most, true)
		if there && l.Err == nil {
			l.Err = visit(number, l.Text)
		}
		switch {
		case l.Err == io.EOF:
			return nil
		case l.Err != nil:
			return &Error{Name: name, Line: number, Err: l.Err}
		case end == io.EOF:
			return nil
		case end != nil:
			return fmt.Errorf("%s: %w", name, end)
		}
	}
}

// Check returns an *Error for a text that is longer than most bytes or is invalid UTF-8. name and line are its source.
func Check(name string, line int, text string, most int) error {
	if err := valid(text, most); err != nil {
		return &Error{Name: name, Line: line, Err: err}
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
