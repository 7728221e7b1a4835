// Package input reads lines, and defines the error for invalid input, which commands report with its position and a
// separate exit code.
package input

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/safetensors"
)

// Error describes an error in the content of an input, with its position.
type Error struct {
	Name string // of the file, or a description of the input; empty if Err names it
	Line int    // counted from 1; 0 means the whole input
	Err  error
}

// Errorf returns an *Error that concerns an input as a whole.
func Errorf(name, format string, args ...any) error {
	return &Error{Name: name, Err: fmt.Errorf(format, args...)}
}

// Error returns "name:line: reason", the format that editors turn into a link.
func (e *Error) Error() string {
	switch {
	case e.Name == "" && e.Line == 0:
		return fmt.Sprint(e.Err)
	case e.Line == 0:
		return fmt.Sprintf("%s: %v", quote.Name(e.Name), e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", quote.Name(e.Name), e.Line, e.Err)
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// Tensors opens a safetensors file of a directory that atomicfile saves. A missing or invalid file gives an *Error.
func Tensors(path string) (*safetensors.Reader, error) {
	r, err := atomicfile.Read(path, safetensors.Open)
	return r, BadFile(path, err)
}

// BadFile converts an error about a missing file, or about the content of a safetensors file, to an *Error.
func BadFile(path string, err error) error {
	var format *safetensors.FormatError
	switch {
	case errors.As(err, &format):
		return Errorf(path, "%v", format.Err) // not wrapped: the file itself exists
	case errors.Is(err, fs.ErrNotExist):
		return Errorf(path, "no such file")
	}
	return err
}

// Line is a line of an input.
type Line struct {
	Text string // of a valid line
	Err  error  // why the line is invalid
}

const mark = "\uFEFF" // byte order mark

var marks = regexp.MustCompile(`(^|[\n\t])` + mark + `+`)

// Unmark removes byte order marks at the start of each line and column of a text. They are inside of files because
// files are concatenated, cut into shards, and joined column by column.
func Unmark(text string) string {
	if !strings.Contains(text, mark) {
		return text
	}
	return marks.ReplaceAllString(text, "$1")
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
