package viz

import (
	"bytes"
	"image/png"
	"math"
	"strings"
	"testing"
)

// graph has edges with each port and sign, drawn in the order of their strength.
func graph() Graph {
	return Graph{
		Title: "a <graph>", Ports: []string{"q", "k"}, Positive: "more", Negative: "less", Note: "4 edges",
		Nodes: []Node{{"low", 0, 7}, {"middle", 3, 2}, {"high", 100, 7}},
		Edges: []Edge{{0, 2, -2, -1}, {0, 1, 0.5, 0}, {1, 2, 1, 1}, {0, 1, 0, -1}},
	}
}

func TestGraph(t *testing.T) {
	var b bytes.Buffer
	if err := graph().SVG(&b); err != nil {
		t.Fatal(err)
	}
	text, last := b.String(), -1
	for _, want := range []string{ // the weakest first, with its width, and the nodes above all edges
		`class="c0"`, `stroke-width="0.5"`, "<title>low → middle: 0</title>",
		`class="c2"`, `stroke-dasharray="6 4"`, "<title>low → middle, q: 0.5</title>",
		`stroke-dasharray="1.5 3"`, "<title>middle → high, k: 1</title>",
		`class="c1"`, `stroke-width="6"`, "<title>low → high: -2</title>",
		`class="paper"`, ">a &lt;graph&gt;</text>", ">low</text>", ">high</text>", ">more</text>", ">less</text>", ">q</text>", ">k</text>", ">4 edges</text>",
	} {
		at := strings.Index(text[last+1:], want)
		if at < 0 {
			t.Fatalf("no %s behind byte %d of %s", want, last, text)
		}
		last += 1 + at
	}
	// Rows and columns without a node take no room: all of it is about as high as three rows.
	s, err := graph().layout()
	if err != nil || s.height > 6*rowStep || s.width > 400 {
		t.Errorf("%v: %v × %v", err, s.width, s.height)
	}
	for _, sh := range s.shapes {
		for _, path := range sh.paths {
			for _, p := range path {
				if p.x < 0 || p.x > s.width || p.y < 0 || p.y > s.height || sh.title != "" && path[0].y < path[len(path)-1].y {
					t.Errorf("%v of %q is outside of %v × %v, or leads down", p, sh.title, s.width, s.height)
				}
			}
		}
	}
	b.Reset()
	if err := graph().PNG(&b, 2); err != nil {
		t.Fatal(err)
	}
	if img, err := png.Decode(&b); err != nil || img.Bounds().Dx() != int(math.Ceil(2*s.width)) {
		t.Errorf("%v: %v", err, img.Bounds())
	}
	b.Reset()
	if err := graph().HTML(&b); err != nil || !strings.Contains(b.String(), "<title>a &lt;graph&gt;</title>") || !strings.Contains(b.String(), "low → high: -2") {
		t.Errorf("%v: %s", err, b.String())
	}
	long := graph()
	long.Title = strings.Repeat("title ", 1000)
	if s, err := long.layout(); err != nil || s.width > 700 {
		t.Errorf("%v: a title of %v", err, s.width)
	}
	for what, change := range map[string]func(*Graph){
		"want at least one node":      func(g *Graph) { g.Nodes = nil },
		"at most 3 ports":             func(g *Graph) { g.Ports = make([]string, 4) },
		"edge 0 {From:2 To:0":         func(g *Graph) { g.Edges[0].From, g.Edges[0].To = 2, 0 },
		"edge 1 {From:-1":             func(g *Graph) { g.Edges[1].From = -1 },
		"edge 2 {From:1 To:3":         func(g *Graph) { g.Edges[2].To = 3 },
		"to a port less than 2":       func(g *Graph) { g.Edges[3].Port = 2 },
		"Value:NaN":                   func(g *Graph) { g.Edges[3].Value = math.NaN() },
		"of the 3 nodes to one in a ": func(g *Graph) { g.Edges[0].To = 0 },
	} {
		g := graph()
		change(&g)
		if err := g.SVG(&b); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("error %v, want one with %q", err, what)
		}
	}
}
