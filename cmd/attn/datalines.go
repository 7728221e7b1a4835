package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/quote"
)

// lineFormat says what a line of a file of texts holds. Without a number of columns it is one
// text, tabs and all.
type lineFormat struct {
	want        string // "a text, or two, and a class"
	least, most int    // columns
}

// tabs says how columns are told apart, where there are several.
func (f lineFormat) tabs() string {
	if f.least == 0 {
		return ""
	}
	return ", with tabs between them"
}

// dataLine is a line of the data of a pretrained model.
type dataLine struct {
	number  int
	columns []string
	value   float64 // of the last column, where that is a number
}

// longestDataLine is in bytes, more than any model takes: a longer line is another kind of file.
const longestDataLine = 1 << 20

// readLines reads at most most lines. Blank ones are skipped.
func readLines(path string, format lineFormat, most int) ([]dataLine, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.IsDir() {
		return nil, input.Errorf(path, "is a folder, want a file")
	}
	scanner := bufio.NewScanner(file)
	scanner.Buffer(make([]byte, 0, 1<<16), longestDataLine)
	var lines []dataLine
	number := 0
	bad := func(text string, args ...any) ([]dataLine, error) {
		return nil, &input.Error{Name: path, Line: number, Err: fmt.Errorf(text, args...)}
	}
	for len(lines) < most && scanner.Scan() {
		number++
		line := scanner.Bytes()
		if number == 1 {
			line = bytes.TrimPrefix(line, []byte("\uFEFF"))
		}
		if !utf8.Valid(line) {
			return bad("invalid UTF-8")
		}
		text := strings.TrimSpace(string(line))
		if text == "" {
			continue
		}
		columns := []string{text}
		if format.least > 0 { // a tab in front stands behind an empty column
			if columns = strings.Split(strings.TrimRightFunc(string(line), unicode.IsSpace), "\t"); len(columns) < format.least || len(columns) > format.most {
				return bad("has %s, want %s%s", quote.Counted(len(columns), "column", "columns"), format.want, format.tabs())
			}
		}
		for i, c := range columns {
			if columns[i] = strings.TrimSpace(c); columns[i] == "" && i < max(format.least, 1) {
				return bad("column %d is empty, want %s", i+1, format.want)
			}
		}
		lines = append(lines, dataLine{number: number, columns: columns})
	}
	if err := scanner.Err(); errors.Is(err, bufio.ErrTooLong) {
		number++
		return bad("line longer than %d bytes", longestDataLine)
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(lines) == 0 {
		return nil, input.Errorf(path, "no texts")
	}
	return lines, nil
}
