package viz

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
)

// Graph draws nodes, and edges that lead upwards: wider for a larger value, orange for a positive one and blue for a
// negative one.
type Graph struct {
	Title string
	Nodes []Node
	Edges []Edge
	// Ports are names of the ways into a node, at most three: edges enter side by side, in different dashes.
	Ports              []string
	Positive, Negative string // what the colours mean, for the legend
	Note               string // below the legend
}

// Node is a node at a place of a grid, of which rows and columns without a node are left out. Row 0 is at the bottom.
type Node struct {
	Name        string
	Row, Column int
}

// Edge leads from a node to one of a higher row.
type Edge struct {
	From, To int // numbers of nodes
	Value    float64
	Port     int // of To, or -1 for its middle
}

// SVG draws the graph as a vector picture. An edge shows its nodes and value under the pointer.
//
// Errors: no nodes; an edge of other nodes, downwards, to another port, or whose value is not finite.
func (g Graph) SVG(w io.Writer) error { return writeSVG(w, g) }

// PNG draws the same picture as SVG, with scale pixels for each CSS pixel.
//
// Errors: those of SVG, and a picture of more than 64 Mi pixels.
func (g Graph) PNG(w io.Writer, scale float64) error { return writePNG(w, g, scale) }

// HTML draws the picture of SVG as a web page without scripts and links to other files.
//
// Errors: those of SVG.
func (g Graph) HTML(w io.Writer) error {
	var picture bytes.Buffer
	if err := g.SVG(&picture); err != nil {
		return err
	}
	return writePage(w, g.Title, picture.String(), "Point at an edge to see its value.")
}

func (g Graph) check() error {
	n := len(g.Nodes)
	if n == 0 || len(g.Ports) > len(portDashes) {
		return fmt.Errorf("viz: a graph of %d nodes with %d ports, want at least one node and at most %d ports", n, len(g.Ports), len(portDashes))
	}
	for i, e := range g.Edges {
		if min(e.From, e.To) < 0 || max(e.From, e.To) >= n || e.Port < -1 || e.Port >= len(g.Ports) || g.Nodes[e.From].Row >= g.Nodes[e.To].Row || !finite(e.Value) {
			return fmt.Errorf("viz: edge %d %+v, want one of the %d nodes to one in a higher row, to a port less than %d, with a finite value", i, e, n, len(g.Ports))
		}
	}
	return nil
}

// Sizes of a graph.
const (
	nodeHeight = 16.
	rowStep    = 34.
	columnGap  = 16.
	widestEdge = 6.
	keyGap     = 32. // after a text of the legend, which a reader's font may make wider
)

var portDashes = [3][]float64{{6, 4}, {1.5, 3}, nil}

func (g Graph) layout() (*sheet, error) {
	if err := g.check(); err != nil {
		return nil, err
	}
	rows, columns, half := map[int]float64{}, map[int]float64{}, 0.
	for _, n := range g.Nodes {
		rows[n.Row], columns[n.Column] = 0, 0
		half = max(half, textWidth(n.Name, legendSize)/2+5)
	}
	s := &sheet{title: g.Title}
	x, top := edge, edge
	if g.Title != "" {
		title := fit(g.Title, titleSize, 600)
		s.write(caption{text: title, x: edge, y: edge + titleSize, size: titleSize, bold: true})
		s.width, top = textWidth(title, titleSize)*boldly+2*edge, top+titleSize+8
	}
	for _, i := range slices.Sorted(maps.Keys(columns)) {
		columns[i] = x + half
		x += 2*half + columnGap
	}
	y := top
	for _, i := range slices.Backward(slices.Sorted(maps.Keys(rows))) {
		rows[i] = y + nodeHeight/2
		y += rowStep
	}
	largest := 0.
	for _, e := range g.Edges {
		largest = max(largest, math.Abs(e.Value))
	}
	order := slices.Clone(g.Edges)
	slices.SortStableFunc(order, func(a, b Edge) int { return cmp.Compare(math.Abs(a.Value), math.Abs(b.Value)) }) // the strongest on top
	for _, e := range order {
		from, to := g.Nodes[e.From], g.Nodes[e.To]
		a := point{columns[from.Column], rows[from.Row] - nodeHeight/2}
		b := point{columns[to.Column], rows[to.Row] + nodeHeight/2}
		name, share, bow := from.Name+" → "+to.Name, 0., 0.
		l := edgeLine(e.Value, e.Port)
		if e.Port >= 0 {
			b.x += half * (float64(2*e.Port+1)/float64(len(g.Ports)) - 1)
			name += ", " + g.Ports[e.Port]
		}
		if largest > 0 {
			share = math.Abs(e.Value) / largest
		}
		if from.Column == to.Column { // beside the nodes between them
			bow = min((a.y-b.y)/6, half+columnGap/2)
		}
		l.width, l.opacity, l.title = 0.5+(widestEdge-0.5)*share, 0.35+0.6*math.Sqrt(share), name+": "+fourDigits(e.Value)
		l.paths = [][]point{curve(a, b, bow)}
		s.shapes = append(s.shapes, l)
	}
	for _, n := range g.Nodes {
		x, y := columns[n.Column], rows[n.Row]
		box := [][]point{moved([]point{{-half, -8}, {half, -8}, {half, 8}, {-half, 8}, {-half, -8}}, x, y)}
		s.shapes = append(s.shapes, shape{paths: box, filled: true, tint: paperTint}, shape{paths: box, tint: axisTint, width: 1})
		s.write(caption{text: n.Name, x: x, y: y + 0.34*legendSize, size: legendSize, anchor: middle})
	}
	s.width, y = max(s.width, x-columnGap+edge), y+4
	x = edge
	sample := func(l shape, name string) {
		if name == "" {
			return
		}
		l.paths = [][]point{{{x, y - 3}, {x + sampleSize, y - 3}}}
		s.shapes = append(s.shapes, l)
		s.write(caption{text: name, x: x + sampleSize + 6, y: y, size: legendSize, grey: true})
		x += sampleSize + 6 + textWidth(name, legendSize) + keyGap
		s.width = max(s.width, x-keyGap+edge)
	}
	sample(edgeLine(1, -1), g.Positive)
	sample(edgeLine(-1, -1), g.Negative)
	for i, name := range g.Ports {
		sample(edgeLine(0, i), name)
	}
	if g.Note != "" {
		y += legendSize + 6
		s.write(caption{text: g.Note, x: edge, y: y, size: legendSize, grey: true})
		s.width = max(s.width, edge+textWidth(g.Note, legendSize)+edge)
	}
	s.height = y + edge
	return s, nil
}

// edgeLine returns a line in the colour of a value, with the dashes of a port.
func edgeLine(value float64, port int) shape {
	l := shape{tint: lineTint(Grey), width: 2}
	if port >= 0 {
		l.dash = portDashes[port]
	}
	if value > 0 {
		l.tint = lineTint(2)
	} else if value < 0 {
		l.tint = lineTint(1)
	}
	return l
}

// curve returns a Bézier curve that leaves a upwards and reaches b from below, with its middle moved to the right by bow.
func curve(a, b point, bow float64) (path []point) {
	const n = 20
	pull := 0.45 * (a.y - b.y)
	for i := range n + 1 {
		t := (1 - math.Cos(math.Pi*float64(i)/n)) / 2 // closer where it bends
		p := [4]float64{(1 - t) * (1 - t) * (1 - t), 3 * t * (1 - t) * (1 - t), 3 * t * t * (1 - t), t * t * t}
		path = append(path, point{
			p[0]*a.x + p[1]*(a.x+bow*4/3) + p[2]*(b.x+bow*4/3) + p[3]*b.x,
			p[0]*a.y + p[1]*(a.y-pull) + p[2]*(b.y+pull) + p[3]*b.y,
		})
	}
	return path
}
