// Package viz draws attention weights. So far it draws for the terminal.
package viz

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/rivo/uniseg"

	"github.com/attn-go/attn/tensor"
)

// Heatmap is a matrix of weights with the tokens of its axes.
type Heatmap struct {
	Rows    []string       // the tokens that look: queries
	Columns []string       // the tokens that are looked at: keys
	Weights *tensor.Tensor // [len(Rows) len(Columns)], 0 to 1
}

// shades are five degrees of ink for weights up to 1/8, 1/4, 1/2, 3/4 and
// above.
var shades = []struct {
	below float32
	ink   string
}{{1. / 8, "··"}, {1. / 4, "░░"}, {1. / 2, "▒▒"}, {3. / 4, "▓▓"}, {2, "██"}}

// longestLabel bounds the cells of a label; what is longer is cut.
const longestLabel = 16

// Text draws the map in shades of characters, one line for each row, the
// columns' tokens written downwards above them. A cell is two characters wide.
// It returns an error if the tokens are not as many as the weights.
func (m Heatmap) Text(w io.Writer) error {
	if s := m.Weights.Shape(); len(s) != 2 || s[0] != len(m.Rows) || s[1] != len(m.Columns) {
		return fmt.Errorf("viz: weights have shape %v, want [%d %d] for the tokens", s, len(m.Rows), len(m.Columns))
	}
	rows := make([]string, len(m.Rows))
	margin := 0
	for i, token := range m.Rows {
		rows[i] = label(token)
		margin = max(margin, uniseg.StringWidth(rows[i]))
	}
	var b strings.Builder
	writeHeads(&b, m.Columns, margin)
	for i, token := range rows {
		pad(&b, margin-uniseg.StringWidth(token))
		b.WriteString(token)
		b.WriteByte(' ')
		for j := range m.Columns {
			b.WriteString(ink(m.Weights.At(i, j)))
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
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
func writeHeads(b *strings.Builder, columns []string, margin int) {
	heads := make([][]string, len(columns)) // characters as people see them
	height := 0
	for j, token := range columns {
		for g := uniseg.NewGraphemes(label(token)); g.Next(); {
			heads[j] = append(heads[j], g.Str())
		}
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
			pad(b, 2-uniseg.StringWidth(c))
		}
		b.WriteByte('\n')
	}
}

// label is a token as it stands beside the map: nothing that moves the cursor,
// and not too long.
func label(token string) string {
	token = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp) {
			return '�'
		}
		return r
	}, token)
	if uniseg.StringWidth(token) <= longestLabel {
		return token
	}
	var b strings.Builder
	width := 0
	for g := uniseg.NewGraphemes(token); g.Next() && width+g.Width() < longestLabel; width += g.Width() {
		b.WriteString(g.Str())
	}
	return b.String() + "…"
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
