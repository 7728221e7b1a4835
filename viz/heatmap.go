// Package viz draws attention weights: on a terminal, as SVG, PNG or a web page
// that needs no network, and writes them as CSV, JSON and NPY.
//
// All of these draw a Figure, whose rows are queries and whose columns are the keys that
// they attend to. Heatmap draws one matrix with characters and does nothing else. A Chart
// draws lines: numbers that depend on another.
package viz

import (
	"fmt"
	"io"
	"strings"

	"github.com/attn-go/attn/internal/cells"
	"github.com/attn-go/attn/tensor"
)

// Heatmap is a matrix of weights with the tokens of its axes.
type Heatmap struct {
	Rows    []string       // the tokens of the queries
	Columns []string       // the tokens of the keys that they attend to
	Weights *tensor.Tensor // [len(Rows) len(Columns)], 0 to 1
}

// shades are five degrees of ink for weights up to 1/8, 1/4, 1/2, 3/4 and
// above.
var shades = []struct {
	below float32
	ink   string
}{{1. / 8, "··"}, {1. / 4, "░░"}, {1. / 2, "▒▒"}, {3. / 4, "▓▓"}, {2, "██"}}

// Text draws the map in shades of characters, one line for each row, the
// columns' tokens written downwards above them. A cell is two characters wide.
// It returns an error if the tokens are not as many as the weights.
func (m Heatmap) Text(w io.Writer) error {
	if s := m.Weights.Shape(); len(s) != 2 || s[0] != len(m.Rows) || s[1] != len(m.Columns) {
		return fmt.Errorf("viz: weights have shape %v, want [%d %d] for the tokens", s, len(m.Rows), len(m.Columns))
	}
	d := &drawing{extent: extent{top: 1}, unit: Figure{}.unit()}
	d.full(Panel{Rows: m.Rows, Columns: m.Columns, Values: m.Weights.Data()})
	_, err := io.WriteString(w, d.String())
	return err
}

// Legend explains the shades of Text in one line.
func Legend() string {
	var b strings.Builder
	from := "0"
	for _, s := range shades {
		fmt.Fprintf(&b, "%s from %s  ", s.ink, from)
		from = fmt.Sprintf("%.3g", s.below)
	}
	return strings.TrimSpace(b.String())
}

// writeHeads writes the columns' tokens downwards, their ends at the bottom.
func writeHeads(b *strings.Builder, columns []string, margin, most int) {
	heads := make([][]string, len(columns)) // characters as people see them
	height := 0
	for j, token := range columns {
		heads[j] = cells.Clusters(label(token, most))
		height = max(height, len(heads[j]))
	}
	for line := range height {
		pad(b, margin+1)
		for _, h := range heads {
			c := " "
			if at := line - (height - len(h)); at >= 0 {
				c = h[at]
			}
			b.WriteString(c)
			pad(b, 2-cells.Width(c))
		}
		b.WriteByte('\n')
	}
}

// ink returns the shade of a weight.
func ink(weight float32) string {
	for _, s := range shades {
		if weight < s.below {
			return s.ink
		}
	}
	return "??" // NaN, or no weight at all
}

func pad(b *strings.Builder, n int) {
	for range max(n, 0) {
		b.WriteByte(' ')
	}
}
