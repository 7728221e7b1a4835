package lens

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/attn-go/attn/internal/cells"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/lens"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/viz"
)

// Circuit is what is measured of a circuit.
type Circuit struct {
	*lens.Circuit
	Metric        string
	A, B, Measure float64 // of text A, of text B, and of A with the circuit alone
	Faithful      lens.Faithfulness
	sizes         models.Sizes
}

// ReadCircuit reads the file of a circuit.
//
// Errors: *input.Error.
func ReadCircuit(path string, m *models.Model) (*lens.Circuit, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c, err := lens.ReadCircuit(f, m)
	if err != nil {
		return nil, &input.Error{Name: path, Err: err}
	}
	return c, nil
}

// Circuit measures a circuit for text A: edges outside it carry what text B computes. With a nil c, it scores all edges by
// EAP-IG with a number of steps, or EAP with 0, and takes those with the n largest scores, 0 for a tenth of them.
func (s *Study) Circuit(ctx context.Context, c *lens.Circuit, steps, n int) (*Circuit, error) {
	it := &s.Items[0]
	in, err := s.read(ctx, it)
	if err != nil {
		return nil, it.failed(err)
	}
	l, err := lens.New(s.Model, in.metric)
	if err != nil {
		return nil, usage(err)
	}
	if c == nil {
		s.Progress("scoring edges", 0, 1)
		if c, err = l.Edges(ctx, in.a, *in.b, steps); err != nil {
			return nil, it.failed(err)
		}
		c = c.Top(cmp.Or(n, (len(c.Edges())+9)/10))
	}
	l.Progress = func(done, all int) { s.Progress("measuring circuits", done, all) }
	m, err := l.MeasureCircuits(ctx, in.a, *in.b, c.Top(math.MaxInt), c.Top(0), c)
	if err != nil {
		return nil, it.failed(err)
	}
	y := &Circuit{Circuit: c, Metric: in.name, A: m[0], B: m[1], Measure: m[2], sizes: s.Model.Sizes()}
	if slices.ContainsFunc(c.Edges(), func(e lens.Edge) bool { return e.Score != 0 }) {
		y.Faithful, err = l.Faithfulness(ctx, in.a, *in.b, c)
	}
	return y, err
}

// strongest returns the edges in the circuit, those with the largest scores first.
func (c *Circuit) strongest() []lens.Edge {
	edges := slices.DeleteFunc(c.Edges(), func(e lens.Edge) bool { return !e.In })
	slices.SortStableFunc(edges, func(x, y lens.Edge) int { return cmp.Compare(math.Abs(y.Score), math.Abs(x.Score)) })
	return edges
}

// Graph draws at most the given number of edges of the circuit: a row for the heads of each layer, from the bottom to the top, and one for its network. Edges to
// grouped keys and values lead to each head that reads them.
func (c *Circuit) Graph(most int) viz.Graph {
	edges := c.strongest()
	g := viz.Graph{
		Title: "circuit of " + c.Metric, Ports: []string{"queries", "keys", "values"},
		Positive: "what it carries for text B raises the metric", Negative: "lowers it",
		Note: quote.Counted(len(edges), "edge", "edges") + ", upwards",
	}
	if len(edges) > most {
		g.Note = fmt.Sprintf("the strongest %d of %d edges, upwards", most, len(edges))
		edges = edges[:most]
	}
	numbers := map[string]int{}
	used := func(name string) bool { _, is := numbers[name]; return is }
	node := func(name string) int {
		if used(name) {
			return numbers[name]
		}
		n := viz.Node{Name: name, Column: c.sizes.Heads, Row: 2*c.sizes.Layers + 1}
		layer := 0
		switch _, err := fmt.Sscanf(name, "a%d.h%d", &layer, &n.Column); {
		case err == nil:
			n.Row = 2*layer + 1
		case name == "input":
			n.Row = 0
		case name != "logits":
			n.Column = c.sizes.Heads
			_, _ = fmt.Sscanf(name, "m%d", &n.Row)
			n.Row = 2*n.Row + 2
		}
		numbers[name] = len(g.Nodes)
		g.Nodes = append(g.Nodes, n)
		return numbers[name]
	}
	for _, e := range edges { // the sources first: keys and values are drawn to those of their heads that have another edge
		if to, found := strings.CutSuffix(e.To, "<q>"); found {
			node(to)
		}
		node(e.From)
	}
	for _, e := range edges {
		to, part, _ := strings.Cut(strings.TrimSuffix(e.To, ">"), "<")
		port := slices.Index([]string{"q", "k", "v"}, part)
		targets := []string{to}
		if group := c.sizes.Heads / c.sizes.KVHeads; port > 0 && group > 1 {
			layer, shared, _ := strings.Cut(to, ".h")
			first, _ := strconv.Atoi(shared)
			targets = nil
			for h := first * group; h < (first+1)*group; h++ {
				targets = append(targets, fmt.Sprintf("%s.h%d", layer, h))
			}
			if slices.ContainsFunc(targets, used) {
				targets = slices.DeleteFunc(targets, func(name string) bool { return !used(name) })
			}
		}
		for _, to := range targets {
			g.Edges = append(g.Edges, viz.Edge{From: node(e.From), To: node(to), Value: e.Score, Port: port})
		}
	}
	return g
}

// JSON writes an object for each edge, one on a line.
func (c *Circuit) JSON(w io.Writer) error {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false) // names have ->
	for _, e := range c.Edges() {
		err := out.Encode(struct {
			What     string  `json:"what"`
			Part     string  `json:"part"`
			Edge     string  `json:"edge"`
			Layer    *int    `json:"layer"`
			Head     *int    `json:"head"`
			Position *int    `json:"position"`
			Metric   float64 `json:"metric"`
			Effect   float64 `json:"effect"`
			In       bool    `json:"in_graph"`
		}{What: Attribution, Part: "edge", Edge: e.String(), Metric: c.A + e.Score, Effect: e.Score, In: e.In})
		if err != nil {
			return err
		}
	}
	return nil
}

// Text writes what the circuit keeps of the metric, and its strongest edges.
func (c *Circuit) Text(w io.Writer) error {
	var b strings.Builder
	edges := c.strongest()
	heads := quote.Counted(len(c.Heads()), "head", "heads")
	fmt.Fprintf(&b, "%s\n%9.4f  text A\n%9.4f  text B\n%9.4f  text A with %s of %d and %s of it: %.0f%% of the difference\n", c.Metric, c.A, c.B, c.Measure,
		quote.Counted(len(edges), "edge", "edges"), len(c.Edges()), heads, 100*(c.Measure-c.B)/(c.A-c.B))
	if c.Faithful.Shares != nil {
		b.WriteString("\nlargest edges    kept\n")
		for i, share := range c.Faithful.Shares {
			fmt.Fprintf(&b, "%12.1f%% %6.0f%%\n", 100*share, 100*c.Faithful.Kept[i])
		}
		fmt.Fprintf(&b, "CPR %.3f, CMD %.3f\n\n%-24s %9s\n", c.Faithful.CPR, c.Faithful.CMD, "edge", "score")
		for _, e := range edges[:min(most, len(edges))] {
			fmt.Fprintf(&b, "%-24s %9.4f\n", e, e.Score)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Lens is what the states of text A predict.
type Lens struct {
	tokens      []string
	predictions [][][]lens.Prediction // [layers + 1][L][top]
	name        func(token int) string
}

// Lens reads the residual stream before each layer, and after the last, as the next tokens that the model would predict.
func (s *Study) Lens(ctx context.Context, top int) (*Lens, error) {
	it := &s.Items[0]
	in, err := s.read(ctx, it)
	if err != nil {
		return nil, it.failed(err)
	}
	l, err := lens.New(s.Model, in.metric)
	if err != nil {
		return nil, usage(err)
	}
	y := &Lens{tokens: in.labels, name: func(id int) string { return tokenName(s.Model, id) }}
	y.predictions, err = l.LogitLens(ctx, in.a, top)
	return y, it.failed(err)
}

// JSON writes an object for each layer and position, one on a line.
func (y *Lens) JSON(w io.Writer) error {
	type token struct {
		Token       string  `json:"token"`
		ID          int     `json:"id"`
		Logit       float64 `json:"logit"`
		Probability float64 `json:"probability"`
	}
	out := json.NewEncoder(w)
	for layer, row := range y.predictions {
		for i, list := range row {
			var tokens []token
			for _, p := range list {
				tokens = append(tokens, token{y.name(p.Token), p.Token, p.Logit, p.Probability})
			}
			err := out.Encode(struct {
				What     string  `json:"what"`
				Part     string  `json:"part"`
				Layer    int     `json:"layer"`
				Head     *int    `json:"head"`
				Position int     `json:"position"`
				Tokens   []token `json:"tokens"`
			}{"lens", lens.Residual.String(), layer, nil, i, tokens})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// Text writes a table with a row for each layer and a column for each token: the likeliest token, and its probability.
func (y *Lens) Text(w io.Writer, width int) error {
	const column = 14
	var b strings.Builder
	each := max(1, (cmp.Or(width, math.MaxInt/2)-6)/column)
	for first := 0; first < len(y.tokens); first += each {
		last := min(first+each, len(y.tokens))
		row := func(name string, cell func(i int) string) {
			fmt.Fprintf(&b, "%5s", name)
			for i := first; i < last; i++ {
				text := cells.Cut(cells.Visible(cell(i)), column-1)
				b.WriteString(" " + text + strings.Repeat(" ", column-1-cells.Width(text)))
			}
			b.WriteByte('\n')
		}
		row("layer", func(i int) string { return y.tokens[i] })
		for layer, predictions := range y.predictions {
			row(fmt.Sprint(layer), func(i int) string {
				name := y.name(predictions[i][0].Token)
				if strings.TrimSpace(name) == "" {
					name = strconv.Quote(name)
				}
				return fmt.Sprintf("%s %.0f%%", name, 100*predictions[i][0].Probability)
			})
		}
		b.WriteByte('\n')
	}
	for line := range strings.Lines(strings.TrimSuffix(b.String(), "\n")) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}
