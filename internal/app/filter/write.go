package filter

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// JSON writes the value of a line as JSON, or {"error": "…"}.
func JSON[V any](w io.Writer, l *Line[V]) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	if l.Err != nil {
		return e.Encode(map[string]string{"error": l.Err.Error()})
	}
	return e.Encode(l.Value)
}

// Text returns a Write function for plain text. A line that could not be processed becomes {"error": "…"}, and a line
// break within the text becomes a space.
func Text[V any](text func(V) string) func(io.Writer, *Line[V]) error {
	return func(w io.Writer, l *Line[V]) error {
		if l.Err != nil {
			return JSON(w, l)
		}
		_, err := fmt.Fprintln(w, oneLine.Replace(text(l.Value)))
		return err
	}
}

// TSV returns a Write function for tab-separated columns, followed by a column with the error, which is empty if
// there is none. Within a column, tab, line breaks and backslash are written as \t, \n, \r and \\.
func TSV[V any](columns int, values func(V) []string) func(io.Writer, *Line[V]) error {
	return func(w io.Writer, l *Line[V]) error {
		cells := make([]string, columns+1)
		if l.Err == nil {
			copy(cells[:columns], values(l.Value))
		} else {
			cells[columns] = l.Err.Error()
		}
		for i, cell := range cells {
			cells[i] = escape.Replace(cell)
		}
		_, err := fmt.Fprintln(w, strings.Join(cells, "\t"))
		return err
	}
}

var (
	oneLine = strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ")
	escape  = strings.NewReplacer("\\", `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`)
)
