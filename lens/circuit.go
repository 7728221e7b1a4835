package lens

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/strictjson"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/tensor"
)

// Circuit is a graph of a model: scores of its edges, and the edges that are in the circuit.
type Circuit struct {
	graph  *graph
	scores []float32 // [sources destinations]
	in     []bool
}

// Edge is an edge of a Circuit, such as "input->a0.h0<q>".
type Edge struct {
	From, To string
	Score    float64
	In       bool
}

// String returns the name of the edge.
func (e Edge) String() string { return e.From + "->" + e.To }

// circuit returns the graph with scores: the products of differences [sources N] and slopes [destinations N].
func (g *graph) circuit(differences, slopes *tensor.Tensor, factor float32) *Circuit {
	c := g.empty()
	for layer := range g.layers + 1 { // of each layer only the sources before it
		first := layer * g.reads()
		n := min(g.reads(), g.destinations()-first)
		sources := g.before(first + n - 1)
		y := tensor.MatMulT(nil, differences.Rows(0, sources), slopes.Rows(first, first+n))
		for i := range sources {
			for j := range n {
				if i < g.before(first+j) {
					c.scores[i*g.destinations()+first+j] = factor * y.Data()[i*n+j]
				}
			}
		}
	}
	return c
}

// empty returns the graph without scores and edges.
func (g *graph) empty() *Circuit {
	n := g.sources() * g.destinations()
	return &Circuit{g, make([]float32, n), make([]bool, n)}
}

// each calls do with the place of each edge in scores, in the order of their sources.
func (c *Circuit) each(do func(i int, e Edge)) {
	g := c.graph
	for from := range g.sources() {
		for to := range g.destinations() {
			if i := from*g.destinations() + to; from < g.before(to) {
				do(i, Edge{g.source(from), g.destination(to), float64(c.scores[i]), c.in[i]})
			}
		}
	}
}

// NewCircuit returns the graph of a model, with scores of 0 and no edges in the circuit.
//
// Errors: a model whose blocks do not read the residual stream behind a norm.
func NewCircuit(m *models.Model) (*Circuit, error) {
	g, err := newGraph(m)
	if err != nil {
		return nil, err
	}
	return g.empty(), nil
}

// Edges returns all edges, in the order of their sources.
func (c *Circuit) Edges() (all []Edge) {
	c.each(func(_ int, e Edge) { all = append(all, e) })
	return all
}

// Keep returns a circuit of the edges for which keep returns true.
func (c *Circuit) Keep(keep func(Edge) bool) *Circuit {
	y := &Circuit{c.graph, c.scores, make([]bool, len(c.in))}
	c.each(func(i int, e Edge) { y.in[i] = keep(e) })
	return y
}

// Top returns a circuit of the n edges whose scores have the largest magnitudes.
func (c *Circuit) Top(n int) *Circuit {
	y := &Circuit{c.graph, c.scores, make([]bool, len(c.in))}
	var order []int
	c.each(func(i int, _ Edge) { order = append(order, i) })
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(math.Abs(float64(c.scores[b])), math.Abs(float64(c.scores[a])))
	})
	for _, i := range order[:min(n, len(order))] {
		y.in[i] = true
	}
	return y
}

// Heads returns the heads of queries that have an edge in the circuit, for package prune: with grouped keys, all of a group.
func (c *Circuit) Heads() (all []prune.Head) {
	g := c.graph
	for layer := range g.layers {
		name := g.attention[layer].Config().Name
		each := g.heads / g.shared
		for group := range g.shared {
			used := false
			for h := group * each; h < (group+1)*each; h++ {
				source, first := 1+layer*(g.heads+1)+h, layer*g.reads()
				for d := range g.destinations() {
					used = used || c.in[source*g.destinations()+d]
				}
				for s := range g.sources() {
					row := c.in[s*g.destinations():]
					used = used || row[first+h] || row[first+g.heads+group] || row[first+g.heads+g.shared+group]
				}
			}
			for h := group * each; used && h < (group+1)*each; h++ {
				all = append(all, prune.Head{Layer: name, Number: h})
			}
		}
	}
	return all
}

// The file format of EAP-IG and MIB.
type circuitFile struct {
	Config circuitConfig          `json:"cfg"`
	Nodes  map[string]circuitNode `json:"nodes"`
	Edges  map[string]circuitEdge `json:"edges"`
}

type circuitConfig struct {
	Layers   int  `json:"n_layers"`
	Heads    int  `json:"n_heads"`
	Shared   int  `json:"n_key_value_heads,omitzero"` // of attn: heads of keys and values are as many as they are
	Parallel bool `json:"parallel_attn_mlp"`
	Width    int  `json:"d_model"`
}

type circuitNode struct {
	In bool `json:"in_graph"`
}

type circuitEdge struct {
	Score *float64 `json:"score"`
	In    bool     `json:"in_graph"`
}

// Write writes the circuit as JSON, in the format of EAP-IG and of the benchmark MIB. With grouped keys, cfg has
// n_key_value_heads, and edges of keys and values are those of their heads.
//
// Source: https://github.com/hannamw/EAP-IG; Mueller et al., "MIB: A Mechanistic Interpretability Benchmark", 2025,
// https://arxiv.org/abs/2504.13151.
func (c *Circuit) Write(w io.Writer) error {
	g := c.graph
	f := circuitFile{
		Config: circuitConfig{Layers: g.layers, Heads: g.heads, Parallel: g.parallel, Width: g.width},
		Nodes:  map[string]circuitNode{"logits": {true}}, Edges: map[string]circuitEdge{},
	}
	if g.shared != g.heads {
		f.Config.Shared = g.shared
	}
	for i := range g.sources() {
		f.Nodes[g.source(i)] = circuitNode{slices.Contains(c.in[i*g.destinations():][:g.destinations()], true)}
	}
	for _, e := range c.Edges() {
		f.Edges[e.String()] = circuitEdge{&e.Score, e.In}
	}
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false) // names have ->
	out.SetIndent("", " ")
	return out.Encode(f)
}

// repeatedHead is a head of queries that reads keys or values.
var repeatedHead = regexp.MustCompile(`h(\d+)<([kv])>$`)

// ReadCircuit reads a file of Write, EAP-IG or MIB, for a model. Edges of repeated keys and values are added to those of
// their heads.
//
// Errors: another format; a circuit of a model with other sizes; an edge that the model lacks.
func ReadCircuit(r io.Reader, m *models.Model) (*Circuit, error) {
	c, err := NewCircuit(m)
	if err != nil {
		return nil, err
	}
	var f circuitFile
	data, err := io.ReadAll(r)
	if err == nil {
		err = strictjson.Lenient(data, &f)
	}
	if err != nil {
		return nil, fmt.Errorf("lens: circuit: %w", err)
	}
	if len(f.Edges) == 0 {
		return nil, errors.New("lens: the circuit has no edges, want a JSON object with cfg, nodes and edges")
	}
	g := c.graph
	got, want := f.Config, circuitConfig{Layers: g.layers, Heads: g.heads, Parallel: g.parallel, Width: g.width}
	shared := cmp.Or(got.Shared, g.heads)
	if got.Shared = 0; got != want || shared != g.heads && shared != g.shared {
		return nil, fmt.Errorf("lens: the circuit is of a model of %d layers, %d heads and width %d, want %d, %d and %d", got.Layers, got.Heads, got.Width, g.layers, g.heads, g.width)
	}
	places := map[string]int{}
	c.each(func(i int, e Edge) { places[e.String()] = i })
	for name, e := range f.Edges {
		own := name
		if shared != g.shared {
			own = repeatedHead.ReplaceAllStringFunc(name, func(read string) string {
				parts := repeatedHead.FindStringSubmatch(read)
				h, _ := strconv.Atoi(parts[1]) // digits; one that is too large is no edge
				return fmt.Sprintf("h%d<%s>", h/(g.heads/g.shared), parts[2])
			})
		}
		at, known := places[own]
		if !known {
			return nil, fmt.Errorf("lens: the circuit has an edge %s, which the model lacks", quote.Text(name))
		}
		if e.Score != nil {
			c.scores[at] += float32(*e.Score)
		}
		c.in[at] = c.in[at] || e.In
	}
	return c, nil
}
