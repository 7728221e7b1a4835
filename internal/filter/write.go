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
		return e.Encode(failure{l.Err.Error()})
	}
	return e.Encode(l.Value)
}

type failure struct {
	Error string `json:"error"`
}

// Text returns a Write of plain text, in which a line that could not be processed is
// {"error": "…"}. A line break within the text becomes a space.
func Text[V any](text func(V) string) func(io.Writer, *Line[V]) error {
	return func(w io.Writer, l *Line[V]) error {
		if l.Err != nil {
			return JSON(w, l)
		}
		_, err := fmt.Fprintln(w, oneLine.Replace(text(l.Value)))
		return err
	}
}

// TSV returns a Write of columns with tabs between them: as many as there are, and behind
// them the error, empty if there is none. In a column, \t, \n, \r and \\ stand for tab,
// line breaks and backslash.
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
