package train

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/quote"
)

// LineFormat describes the lines of a file of texts. If Least is 0, a line is one text, which
// may contain tabs.
type LineFormat struct {
	Want        string // for errors: "a text, or two, and a class"
	Least, Most int    // number of columns
}

// Tabs describes the separator if there are several columns.
func (f LineFormat) Tabs() string {
	if f.Least == 0 {
		return ""
	}
	return ", with tabs between them"
}

// Line is a line of data for a pretrained model.
type Line struct {
	Number  int
	Columns []string
	Value   float64 // of the last column if it is a number; ReadLines leaves it 0
}

// ReadLines reads at most the given number of lines. It skips blank ones.
func ReadLines(path string, format LineFormat, most int) ([]Line, error) {
	file, err := openText(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var lines []Line
	err = eachLine(file, path, func(number int, line []byte) error {
		columns, err := format.columns(string(line))
		if columns != nil {
			lines = append(lines, Line{Number: number, Columns: columns})
		}
		if len(lines) == most {
			return io.EOF
		}
		return err
	})
	if err == nil && len(lines) == 0 {
		err = input.Errorf(path, "no texts")
	}
	if err != nil {
		return nil, err
	}
	return lines, nil
}

// columns returns the columns of a line, or nil if it is blank.
func (f LineFormat) columns(line string) ([]string, error) {
	text := strings.TrimSpace(line)
	if text == "" {
		return nil, nil
	}
	columns := []string{text}
	if f.Least > 0 { // of the untrimmed line: a tab at its start follows an empty column
		columns = strings.Split(strings.TrimRightFunc(line, unicode.IsSpace), "\t")
		if n := len(columns); n < f.Least || n > f.Most {
			return nil, fmt.Errorf("has %s, want %s%s", quote.Counted(n, "column", "columns"), f.Want, f.Tabs())
		}
	}
	for i, c := range columns {
		if columns[i] = strings.TrimSpace(c); columns[i] == "" && i < max(f.Least, 1) {
			return nil, fmt.Errorf("column %d is empty, want %s", i+1, f.Want)
		}
	}
	return columns, nil
}

// openText opens a file of lines.
func openText(path string) (*os.File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err == nil && info.IsDir() {
		file.Close()
		return nil, input.Errorf(path, "is a folder, want a file")
	}
	return file, nil
}

// maxLine is the longest line in bytes. Sentences are far shorter: a longer line means that the file is something else,
// and an error is better than training on a part of it.
const maxLine = 1 << 20

// eachLine calls visit with each line of r and its number, from 1, until visit returns io.EOF. A byte order mark at the
// start is removed.
//
// Errors: an *input.Error with the given name for any other error of visit and for an invalid or too long line; an error
// of r, wrapped.
func eachLine(r io.Reader, name string, visit func(number int, line []byte) error) error {
	lines := bufio.NewScanner(r)
	// The scanner needs room for the newline too, and stops when the buffer is full.
	lines.Buffer(make([]byte, 0, 64<<10), maxLine+2)
	number := 0
	for lines.Scan() {
		number++
		line := lines.Bytes()
		if number == 1 {
			line = bytes.TrimPrefix(line, []byte("\uFEFF"))
		}
		err := checkLine(line)
		if err == nil {
			err = visit(number, line)
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return &input.Error{Name: name, Line: number, Err: err}
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return &input.Error{Name: name, Line: number + 1, Err: errTooLong}
	} else if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

var errTooLong = fmt.Errorf("line longer than %d bytes", maxLine)

// checkLine returns an error if a line is too long or not text.
func checkLine(line []byte) error {
	if len(line) > maxLine {
		return errTooLong
	}
	if !utf8.Valid(line) {
		return errors.New("invalid UTF-8")
	}
	return nil
}
