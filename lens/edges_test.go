package lens_test

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/lens"
	"github.com/attn-go/attn/models"
)

// TestCircuits: all edges are the clean run, none the corrupted one, and a small difference of texts makes edges exact.
func TestCircuits(t *testing.T) {
	ctx, a, b := context.Background(), lens.Text(3, 9, 4, 11, 2, 8), lens.Text(7, 1, 12, 5, 6, 10)
	for _, name := range []string{"gpt2", "llama3", "qwen2", "qwen3", "gpt_neox", "gemma", "phi3", "starcoder2"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := models.Load("../models/testdata/decoders/"+name, models.Options{Trainable: true})
			if err != nil {
				t.Fatal(err)
			}
			l, err := lens.New(m, logits)
			if err != nil {
				t.Fatal(err)
			}
			c, err := l.Edges(ctx, a, b, 0)
			if err != nil {
				t.Fatal(err)
			}
			n := len(c.Edges())
			got, err := l.MeasureCircuits(ctx, a, b, c.Top(n), c.Top(0))
			if err != nil {
				t.Fatal(err)
			}
			for i, x := range []models.Batch{a, b} {
				r, err := l.Record(ctx, x)
				if err != nil {
					t.Fatal(err)
				}
				if math.Abs(got[i]-r.Metric) > 1e-5 {
					t.Errorf("%v, want %v", got[i], r.Metric)
				}
			}
			var file bytes.Buffer
			if err := c.Top(5).Write(&file); err != nil {
				t.Fatal(err)
			}
			text := file.String()
			read, err := lens.ReadCircuit(&file, m)
			if err != nil {
				t.Fatal(err)
			}
			in := 0
			for i, e := range read.Edges() {
				if want := c.Edges()[i]; e.String() != want.String() || e.Score != want.Score {
					t.Fatalf("edge %v, want %v", e, want)
				}
				if e.In {
					in++
				}
			}
			if in != 5 {
				t.Errorf("%d edges in the circuit, want 5", in)
			}
			if _, err := lens.ReadCircuit(strings.NewReader(strings.Replace(text, "input->a0.h0<q>", "a1.h0->a0.h0<q>", 1)), m); err == nil || !strings.Contains(err.Error(), "a1.h0->a0.h0<q>") {
				t.Errorf("an edge backwards: %v", err)
			}
		})
	}
}

// TestEdgesGolden compares scores of edges, exact ones too, and what circuits keep with those of EAP-IG.
func TestEdgesGolden(t *testing.T) {
	for _, name := range []string{"induction", "trained", "qwen2", "llama"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var g struct {
				Model   string
				Repeats int
				Grouped map[string]map[string]map[string]float64
				IDs     map[string][]int
				Steps   int
				Metrics struct {
					Difference struct{ Plus, Minus int }
				}
				Edges    []string
				Scores   map[string]map[string][]float64
				Truth    *struct{ Edges []string }
				Circuits map[string]struct {
					Edges    []string
					Patching struct{ Circuit, Faithfulness float64 }
				}
				Faithfulness map[string]struct{ CPR, CMD float64 }
			}
			data, err := os.ReadFile("testdata/edges_" + name + ".json")
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(data, &g); err != nil {
				t.Fatal(err)
			}
			m, err := models.Load("../"+g.Model, models.Options{Trainable: true})
			if err != nil {
				t.Fatal(err)
			}
			if g.Grouped != nil { // heads of keys and values are not repeated
				g.Edges = slices.Sorted(maps.Keys(g.Grouped["ab"]["eap"]))
				for direction, scores := range g.Grouped {
					for score, by := range scores {
						g.Scores[direction][score] = nil
						for _, name := range g.Edges {
							g.Scores[direction][score] = append(g.Scores[direction][score], by[name])
						}
					}
				}
			}
			d := g.Metrics.Difference
			l, err := lens.New(m, lens.Logits{Terms: []lens.Logit{{Token: d.Plus, Factor: 1}, {Token: d.Minus, Factor: -1}}, At: lens.All})
			if err != nil {
				t.Fatal(err)
			}
			ctx, a, b := context.Background(), lens.Text(g.IDs["a"]...), lens.Text(g.IDs["b"]...)
			near := func(what string, got, want []float64, within float64) {
				t.Helper()
				largest := 0.
				for _, v := range want {
					largest = max(largest, math.Abs(v))
				}
				for i, v := range want {
					if !(math.Abs(got[i]-v) <= within*largest) {
						t.Errorf("%s: %s: %v, want %v", what, g.Edges[i], got[i], v)
					}
				}
			}
			var ig *lens.Circuit
			for direction, texts := range map[string][2]models.Batch{"ab": {a, b}, "ba": {b, a}} {
				for score, steps := range map[string]int{"eap": 0, "eap_ig": g.Steps} {
					c, err := l.Edges(ctx, texts[0], texts[1], steps)
					if err != nil {
						t.Fatal(err)
					}
					near(direction+" "+score, inOrder(t, c, g.Edges), g.Scores[direction][score], 1e-3)
					l.Memory = 1 // one step after another
					apart, err := l.Edges(ctx, texts[0], texts[1], steps)
					if l.Memory = 0; err != nil || !slices.Equal(inOrder(t, apart, g.Edges), inOrder(t, c, g.Edges)) {
						t.Errorf("%s %s depends on the limit of memory, error %v", direction, score, err)
					}
					if direction == "ab" && steps > 0 {
						ig = c
					}
				}
			}
			all := ig.Top(len(g.Edges))
			circuits := []*lens.Circuit{all}
			for _, edge := range g.Edges {
				circuits = append(circuits, all.Keep(func(e lens.Edge) bool { return e.String() != edge }))
			}
			metrics, err := l.MeasureCircuits(ctx, a, b, circuits...)
			if err != nil {
				t.Fatal(err)
			}
			exact := metrics[1:]
			for i := range exact {
				exact[i] -= metrics[0]
			}
			if g.Grouped == nil { // otherwise exact effects of repeated heads do not sum
				near("exact", exact, g.Scores["ab"]["exact"], 1e-4)
			}
			for name, c := range g.Circuits {
				got, err := l.MeasureCircuits(ctx, a, b, all.Keep(func(e lens.Edge) bool { return slices.Contains(c.Edges, e.String()) }))
				if err != nil {
					t.Fatal(err)
				}
				if want := c.Patching.Circuit; math.Abs(got[0]-want) > 1e-4*(1+math.Abs(want)) {
					t.Errorf("circuit %s: %v, want %v", name, got[0], want)
				}
			}
			if name == "trained" { // in the other, equal scores leave the order open
				f, err := l.Faithfulness(ctx, a, b, ig)
				if err != nil {
					t.Fatal(err)
				}
				want := g.Faithfulness["eap_ig_absolute"]
				if math.Abs(f.CPR-want.CPR) > 1e-4 || math.Abs(f.CMD-want.CMD) > 1e-4 {
					t.Errorf("CPR %v and CMD %v, want %v and %v", f.CPR, f.CMD, want.CPR, want.CMD)
				}
			}
			if g.Truth != nil {
				for what, scores := range map[string][]float64{"exact": exact, "EAP-IG": inOrder(t, ig, g.Edges)} {
					if roc := area(g.Edges, scores, g.Truth.Edges); roc != 1 {
						t.Errorf("area under ROC of %s: %v, want 1", what, roc)
					}
				}
			}
		})
	}
}

// inOrder returns the scores of the edges of the given names.
func inOrder(t *testing.T, c *lens.Circuit, names []string) (scores []float64) {
	t.Helper()
	by := map[string]float64{}
	for _, e := range c.Edges() {
		by[e.String()] = e.Score
	}
	if len(by) != len(names) {
		t.Errorf("%d edges, want %d", len(by), len(names))
	}
	for _, name := range names {
		score, ok := by[name]
		if !ok {
			t.Fatal("no edge ", name)
		}
		scores = append(scores, score)
	}
	return scores
}

// area returns the area under the ROC of absolute scores: the share of pairs of a true edge and another in which the true
// one has the larger score.
func area(names []string, scores []float64, truth []string) float64 {
	right, all := 0., 0.
	for i, a := range names {
		for j, b := range names {
			if slices.Contains(truth, a) && !slices.Contains(truth, b) {
				all++
				switch x, y := math.Abs(scores[i]), math.Abs(scores[j]); {
				case x > y:
					right++
				case x == y:
					right += 0.5
				}
			}
		}
	}
	return right / all
}

// TestCircuitFile reads files that EAP-IG has written.
func TestCircuitFile(t *testing.T) {
	for _, name := range []string{"induction", "trained"} {
		m, err := models.Load("testdata/"+name, models.Options{Trainable: true})
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile("testdata/circuit_" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		c, err := lens.ReadCircuit(bytes.NewReader(data), m)
		if err != nil {
			t.Fatal(err)
		}
		var file struct {
			Edges map[string]struct {
				Score   float64
				InGraph bool `json:"in_graph"`
			}
		}
		if err := json.Unmarshal(data, &file); err != nil {
			t.Fatal(err)
		}
		for _, e := range c.Edges() {
			if want, ok := file.Edges[e.String()]; !ok || want.InGraph != e.In || math.Abs(want.Score-e.Score) > 1e-6*(1+math.Abs(want.Score)) {
				t.Errorf("%s: %v, want %+v", name, e, want)
			}
		}
		if len(c.Edges()) != len(file.Edges) || len(c.Heads()) == 0 {
			t.Errorf("%s: %d edges, want %d; heads %v", name, len(c.Edges()), len(file.Edges), c.Heads())
		}
		other, err := models.Load("../models/testdata/decoders/gpt2", models.Options{Trainable: true})
		if err != nil {
			t.Fatal(err)
		}
		for text, want := range map[string]string{
			"0.1":              "lens: circuit: has a number where an object is wanted",
			`{"x": 1}`:         "lens: the circuit has no edges, want a JSON object with cfg, nodes and edges",
			string(data) + "x": "lens: circuit: something follows the JSON value",
		} {
			if _, err := lens.ReadCircuit(strings.NewReader(text), m); err == nil || err.Error() != want {
				t.Errorf("%s: %v, want %s", name, err, want)
			}
		}
		if _, err := lens.ReadCircuit(bytes.NewReader(data), other); err == nil || !strings.Contains(err.Error(), "of a model of 2 layers, 4 heads") {
			t.Errorf("a circuit of another model: %v", err)
		}
	}
}
