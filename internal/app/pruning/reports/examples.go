package reports

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/cells"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/viz"
)

// Examples is the result of attn heads --examples, in the format of its JSON output.
type Examples struct {
	Model     string         `json:"model"`
	Data      string         `json:"data"`
	Criterion string         `json:"criterion"` // "sharp"
	Texts     int            `json:"texts"`
	Tokens    int            `json:"tokens"`
	Layers    []ExampleLayer `json:"layers"`
}

// ExampleLayer has the examples of each head of a layer, the best first.
type ExampleLayer struct {
	Layer
	Examples [][]Example `json:"examples"`
}

// Example is a query of a head in a text, with its weights.
type Example struct {
	Score   float64   `json:"score"`
	Weight  float64   `json:"weight"` // of the key
	Line    int       `json:"line"`
	Query   int       `json:"query"`
	Key     int       `json:"key"`
	Queries []string  `json:"queries"`
	Keys    []string  `json:"keys"`
	Special []string  `json:"special"`
	Weights []float32 `json:"weights"`
	Source  string    `json:"source"`
	Target  string    `json:"target,omitempty"`
}

// Write writes a table of examples: all of the chosen heads, or the best one of every head if chosen is nil.
func (r Examples) Write(w io.Writer, t viz.Terminal, chosen map[string][]int) error {
	d := drawing{t: t}
	d.flow("examples of "+quote.Name(r.Criterion), fmt.Sprintf("in %s", quote.Counted(r.Texts, "text", "texts")),
		fmt.Sprintf("of %s,", r.Data), quote.Counted(r.Tokens, "token", "tokens")+";", "»query« and [key]")
	d.line("")
	d.line(fmt.Sprintf("%-13s %7s %6s %7s  text", "head", "score", "weight", "line"))
	for _, l := range r.Layers {
		for h, list := range l.Examples {
			if chosen == nil {
				list = list[:min(1, len(list))]
			}
			name := fmt.Sprintf("%-7s %5s", l.Kind, viz.ShortHeadName(l.Index, h))
			for _, x := range list {
				before := fmt.Sprintf("%-13s %7.3f %6.3f %7d  ", name, x.Score, x.Weight, x.Line)
				d.line(before + x.text(max(20, d.width()-len(before)), t))
				name = ""
			}
			if len(list) == 0 && slices.Contains(chosen[l.Name], h) {
				d.line(name + "       –")
			}
		}
	}
	_, err := io.WriteString(w, d.String())
	return err
}

// text returns the part of the text around the query and the key that fits the given number of columns. Between two
// texts, the key's follows an arrow. Tokens have the colours of their weights.
func (x Example) text(columns int, t viz.Terminal) string {
	keys := x.pieces(x.Keys)
	mark := func(list []string, at int, before, after string) {
		body := strings.TrimLeft(list[at], " ")
		list[at] = list[at][:len(list[at])-len(body)] + before + cmp.Or(body, "▁") + after
	}
	mark(keys, x.Key, "[", "]")
	paint := func(j int) string { return t.Paint(float64(x.Weights[j]), keys[j]) }
	if slices.Equal(x.Queries, x.Keys) {
		mark(keys, x.Query, "»", "«")
		return around(keys, columns, paint, x.Query, x.Key)
	}
	queries := x.pieces(x.Queries)
	mark(queries, x.Query, "»", "«")
	half := (columns - 3) / 2
	return around(queries, half, func(i int) string { return queries[i] }, x.Query) + " ← " + around(keys, half, paint, x.Key)
}

// pieces returns the tokens as they are written, with the space before a word.
func (x Example) pieces(tokens []string) []string {
	r := heads.Record{Layers: []heads.Layer{{Queries: x.Queries, Keys: x.Keys}}, Special: x.Special}
	list := r.Labels(tokens)
	letters := !slices.ContainsFunc(tokens, func(token string) bool {
		return utf8.RuneCountInString(token) > 1 && !slices.Contains(x.Special, token)
	})
	for _, word := range r.Words(tokens) {
		for i := word.From; i < word.To; i++ {
			label, space := strings.CutPrefix(list[i], "▁")
			if list[i] = cells.Label(label, 40); i > 0 && (space || i == word.From && !letters && !strings.Contains(list[i], "'")) {
				list[i] = " " + list[i]
			}
		}
	}
	return list
}

// around joins the pieces nearest to some of them that fit the given number of columns, with an ellipsis for the others.
func around(pieces []string, columns int, paint func(i int) string, centres ...int) string {
	shown := make([]bool, len(pieces))
	for d := range pieces {
		for _, c := range centres {
			for _, i := range []int{c - d, c + d} {
				if i < 0 || i >= len(pieces) || shown[i] {
					continue
				}
				if columns -= cells.Width(pieces[i]); columns < 4 && d > 0 {
					return joined(shown, paint)
				}
				shown[i] = true
			}
		}
	}
	return joined(shown, paint)
}

func joined(shown []bool, paint func(i int) string) string {
	var b strings.Builder
	for i, on := range shown {
		if on {
			b.WriteString(paint(i))
		} else if i == 0 || shown[i-1] {
			b.WriteString(" …")
		}
	}
	return strings.TrimSpace(b.String())
}
