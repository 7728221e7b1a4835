package train

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

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
	err = input.EachLine(file, path, maxLine, func(number int, line string) error {
		columns, err := format.columns(line)
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
