package viz

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/cells"
	"github.com/attn-go/attn/npy"
)

// CSV writes the weights as a table with the columns layer, head, kind, query, key, i, j and weight, one line per
// weight. For a mean, the layer or head is "mean"; for Several it is empty.
//
// Tokens may come from untrusted text, and tables are opened in spreadsheets and shown on terminals. So CSV writes an
// apostrophe before a token that a spreadsheet would run as a formula (one that begins with =, +, - or @), and writes
// invisible characters as Go does: \n, \x1b. JSON does not change tokens.
func (f Figure) CSV(w io.Writer) error {
	if _, err := f.check(); err != nil {
		return err
	}
	c := csv.NewWriter(w) // after an error it writes nothing, and Error returns it
	line := []string{"layer", "head", "kind", "query", "key", "i", "j", "weight"}
	_ = c.Write(line)
	for _, p := range f.Panels {
		line[0], line[1], line[2] = numbered(p.Layer), numbered(p.Head), cell(p.Kind)
		for i, row := range p.Rows {
			for j, column := range p.Columns {
				line[3], line[4], line[5], line[6] = cell(row), cell(column), strconv.Itoa(i), strconv.Itoa(j)
				line[7] = shortest(p.Values[i*len(p.Columns)+j])
				_ = c.Write(line)
			}
		}
	}
	c.Flush()
	return c.Error()
}

// numbered writes the number of a layer or head, or its special value.
func numbered(n int) string {
	switch n {
	case Mean:
		return "mean"
	case Several:
		return ""
	}
	return strconv.Itoa(n)
}

// cell makes a text safe for a table: visible, and not a formula. Some programs treat the
// full-width forms of the signs like the signs.
func cell(text string) string {
	text = cells.Visible(text)
	if first, _ := utf8.DecodeRuneInString(text); text != "" && strings.ContainsRune("=+-@＝＋－＠", first) {
		text = "'" + text
	}
	return text
}

// shortest writes the fewest digits that read back as the same number.
func shortest(v float32) string { return strconv.FormatFloat(float64(v), 'g', -1, 32) }

// JSON writes the tokens and the matrices:
//
//	{"title": "le chat → the cat", "panels": [{"title": "head 3",
//	  "kind": "cross", "layer": 0, "head": 3,
//	  "queries": ["the", "cat"], "keys": ["le", "chat"],
//	  "weights": [[0.9, 0.1], [0.2, 0.8]]}]}
//
// Layer and head are null for Mean and Several. A weight that is not a number is null too, because JSON has no NaN.
func (f Figure) JSON(w io.Writer) error {
	if _, err := f.check(); err != nil {
		return err
	}
	type panel struct {
		Title   string   `json:"title"`
		Kind    string   `json:"kind"`
		Layer   *int     `json:"layer"`
		Head    *int     `json:"head"`
		Queries []string `json:"queries"`
		Keys    []string `json:"keys"`
		Weights matrix   `json:"weights"`
	}
	b := bufio.NewWriter(w)
	title, _ := json.Marshal(f.Title) // texts, numbers and a matrix can be encoded
	fmt.Fprintf(b, `{"title":%s,"panels":[`, title)
	for i, p := range f.Panels { // one by one, because they may be large
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
		out := panel{p.Title, p.Kind, &p.Layer, &p.Head, p.Rows, p.Columns, matrix{p.Values, len(p.Columns)}}
		if p.Layer < 0 {
			out.Layer = nil
		}
		if p.Head < 0 {
			out.Head = nil
		}
		data, _ := json.Marshal(out)
		b.Write(data)
	}
	b.WriteString("]}\n")
	return b.Flush()
}

// matrix is encoded as an array of rows.
type matrix struct {
	values  []float32
	columns int
}

// MarshalJSON writes null for values that are not numbers; package json would fail.
func (m matrix) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('[')
	for i, v := range m.values {
		switch {
		case i == 0:
			b.WriteByte('[')
		case i%m.columns == 0:
			b.WriteString("],[")
		default:
			b.WriteByte(',')
		}
		if isNumber(v) {
			b.WriteString(shortest(v))
		} else {
			b.WriteString("null")
		}
	}
	b.WriteString("]]")
	return b.Bytes(), nil
}

// NPY writes the weights as a NumPy array of float32 [panels rows columns], without tokens.
// All panels must have the same shape. For a tensor use npy.Write.
func (f Figure) NPY(w io.Writer) error {
	if _, err := f.check(); err != nil {
		return err
	}
	first := f.Panels[0]
	for i, p := range f.Panels {
		if len(p.Rows) != len(first.Rows) || len(p.Columns) != len(first.Columns) {
			return fmt.Errorf("viz: panel %d is %d×%d and panel 0 is %d×%d, want one shape for an array",
				i, len(p.Rows), len(p.Columns), len(first.Rows), len(first.Columns))
		}
	}
	_, err := w.Write(npy.Header([]int{len(f.Panels), len(first.Rows), len(first.Columns)}))
	for i := 0; i < len(f.Panels) && err == nil; i++ {
		err = binary.Write(w, binary.LittleEndian, f.Panels[i].Values)
	}
	return err
}
