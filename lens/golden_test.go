package lens_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/lens"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
)

// golden is a file of testdata/golden.py.
type golden struct {
	Model  string
	IDs    map[string][]int
	Target map[string][]int    // of an encoder–decoder
	Layers map[string][]string // the rows of its tables
	Corpus [][]int
	// Metrics is the logits of plus minus those of minus, at the last position.
	Metrics struct {
		Difference struct{ Plus, Minus, Position int }
	}
	Effects, Attribution map[string]map[string]map[string]json.RawMessage // by metric, what, part
	Readings             *struct {
		Composition struct{ Folded map[string][][][][]float64 }
		Copying     struct{ Folded [][]float64 }
		Lens        struct {
			Tokens [][][]int
			Logits [][][]float64
		}
		Direct struct {
			Difference []float64
			Raw        struct {
				Head      [][][]float64
				MLP       [][]float64
				Embed     []float64
				Positions []float64
			}
		}
	}
}

func readGolden(t *testing.T, name string) (g golden, m *models.Model) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	m, err = models.Load(filepath.Join("..", g.Model), models.Options{Trainable: true})
	if err != nil {
		t.Fatal(err)
	}
	return g, m
}

// table returns the numbers of a table by site: [layers], [layers heads], or with positions.
func (g *golden) table(t *testing.T, m *models.Model, part lens.Part, raw json.RawMessage, positions bool) map[lens.Site]float64 {
	t.Helper()
	all := map[lens.Site]float64{}
	for _, site := range lens.Sites(m, part) {
		_, layer := heads.Place(site.Layer)
		if g.Layers != nil {
			rows, name := g.Layers["attention"], site.Layer
			if part.OfBlock() {
				rows = g.Layers["residual"]
			} else if strings.HasPrefix(name, "encoder") {
				name = strings.TrimSuffix(name, ".self")
			}
			if layer = slices.Index(rows, name); layer < 0 && part == lens.Residual {
				continue
			}
		}
		at := []int{layer}
		if !part.OfBlock() {
			at = append(at, site.Head)
		}
		value := raw
		for _, i := range at {
			var list []json.RawMessage
			if err := json.Unmarshal(value, &list); err != nil || i >= len(list) {
				t.Fatalf("%v: %d of %d, %v", site, i, len(list), err)
			}
			value = list[i]
		}
		var numbers []float64
		if !positions {
			numbers = make([]float64, 1)
			if err := json.Unmarshal(value, &numbers[0]); err != nil {
				t.Fatal(err)
			}
		} else if err := json.Unmarshal(value, &numbers); err != nil {
			t.Fatal(err)
		}
		for p, v := range numbers {
			if site.Position = lens.All; positions {
				site.Position = p
			}
			all[site] = v
		}
	}
	return all
}

// TestGolden compares effects, estimates and readings with those of TransformerLens and of hooks in transformers.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/golden_*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			g, m := readGolden(t, filepath.Base(file))
			d := g.Metrics.Difference
			metrics := map[string]lens.Metric{
				"difference": lens.Logits{Terms: []lens.Logit{{Token: d.Plus, Factor: 1}, {Token: d.Minus, Factor: -1}}, At: lens.All},
				"loss":       lens.Loss{}, "probability": lens.Probability{}, "state": state{2, 4},
			}
			if other := g.IDs["other"]; other != nil {
				mean, err := models.PoolingByName("mean")
				if err != nil {
					t.Fatal(err)
				}
				e := models.NewEmbedder(m, []models.Pooling{mean})
				metrics["similarity"] = lens.Similarity{Embedder: e, Vector: e.Forward(nil, lens.Text(other...)).Data()}
			}
			for name := range g.Effects {
				metric := metrics[name]
				if metric == nil {
					t.Fatal("unknown metric ", name)
				}
				l, err := lens.New(m, metric)
				if err != nil {
					t.Fatal(err)
				}
				g.compare(t, l, m, name)
			}
		})
	}
}

func (g *golden) compare(t *testing.T, l *lens.Lens, m *models.Model, metric string) {
	ctx, a, b := context.Background(), lens.Text(g.IDs["a"]...), lens.Text(g.IDs["b"]...)
	if g.Target != nil {
		a.Targets, b.Targets = [][]int{g.Target["a"]}, [][]int{g.Target["b"]}
	}
	own, err := l.Record(ctx, a, every...)
	if err != nil {
		t.Fatal(err)
	}
	var corpus []models.Batch
	for _, ids := range g.Corpus {
		corpus = append(corpus, lens.Text(ids...))
	}
	if g.Target != nil {
		corpus = []models.Batch{a, b}
	}
	means, err := l.Means(ctx, corpus, lens.Head)
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	compare := func(kind, what string, tables map[string]json.RawMessage, x models.Batch, from lens.Source, within float64) {
		for name, raw := range tables {
			part, positions := strings.CutSuffix(name, "_positions")
			p, err := lens.ParsePart(part)
			if err != nil {
				t.Fatal(err)
			}
			want := g.table(t, m, p, raw, positions)
			var sites []lens.Site
			largest := 0.
			for site, v := range want {
				if what == "softmax" || kind == "effect" || p != lens.Query && p != lens.Key {
					sites, largest = append(sites, site), max(largest, math.Abs(v))
				}
			}
			measure := func() (float64, []lens.Effect, error) { return l.Effects(ctx, x, what, from, sites) }
			if kind == "attribution" {
				measure = func() (float64, []lens.Effect, error) { return l.Attribute(ctx, x, from, sites) }
			}
			_, effects, err := measure()
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range effects {
				if d := math.Abs(e.Effect - want[e.Site]); !(d <= within*(1+largest)) {
					t.Errorf("%s of %s, %s, %v: %v, want %v", kind, metric, what, e.Site, e.Effect, want[e.Site])
				}
				compared++
			}
		}
	}
	for what, source := range map[string]struct {
		x    models.Batch
		from lens.Source
	}{"zero": {a, lens.Zero}, "mean": {a, means.Value}, "patch": {b, own.Value}, "softmax": {b, own.Value}} {
		if what != "softmax" {
			compare("effect", what, g.Effects[metric][what], source.x, source.from, 1e-4)
		}
		compare("attribution", what, g.Attribution[metric][what], source.x, source.from, 1e-4)
	}
	if compared < 100 {
		t.Errorf("only %d numbers were compared", compared)
	}
	if metric == "difference" && g.Readings != nil {
		g.compareReadings(t, l, a)
		g.compareWeights(t, m)
	}
}

// compareWeights compares what is read from weights with TransformerLens, which folds norms into weights.
func (g *golden) compareWeights(t *testing.T, m *models.Model) {
	blocks, gram, err := lens.HeadCircuits(m)
	if err != nil {
		t.Fatal(err)
	}
	near := func(what string, got, want float64) {
		if !(math.Abs(got-want) <= 1e-5) && !(want == 0 && math.IsNaN(got)) { // of a head without weights
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	for i, later := range blocks {
		for h, score := range later.Copying(gram) {
			near(fmt.Sprintf("copying %d.%d", i, h), score, g.Readings.Copying.Folded[i][h])
		}
		for j := range i {
			q, k, v := later.Composition(blocks[j])
			for part, scores := range map[string][][]float64{"Q": q, "K": k, "V": v} {
				for h := range scores {
					for e, score := range scores[h] {
						near(fmt.Sprintf("%s composition of %d.%d with %d.%d", part, i, h, j, e), score, g.Readings.Composition.Folded[part][j][e][i][h])
					}
				}
			}
		}
	}
}

func (g *golden) compareReadings(t *testing.T, l *lens.Lens, a models.Batch) {
	ctx := context.Background()
	states, err := l.LogitLens(ctx, a, 5)
	if err != nil {
		t.Fatal(err)
	}
	for i, layer := range g.Readings.Lens.Logits {
		for p, want := range layer {
			for k, v := range want {
				if got := states[i][p][k]; math.Abs(got.Logit-v) > 1e-4*(1+math.Abs(v)) {
					t.Errorf("logit lens: layer %d, position %d, rank %d: %v, want %v", i, p, k, got, v)
				}
			}
		}
	}
	direct, err := l.Direct(ctx, a)
	if err != nil {
		t.Fatal(err)
	}
	sums := append([]float64(nil), direct.Rest...)
	raw := g.Readings.Direct.Raw
	for _, e := range direct.Parts {
		_, layer := heads.Place(e.Layer)
		want := 0.
		switch e.Part {
		case lens.Head:
			want = raw.Head[layer][e.Head][e.Position]
		case lens.FeedForward:
			want = raw.MLP[layer][e.Position]
		case lens.Residual:
			want = raw.Embed[e.Position] + raw.Positions[e.Position]
		}
		if math.Abs(e.Effect-want) > 1e-4*(1+math.Abs(want)) {
			t.Errorf("direct, %v: %v, want %v", e.Site, e.Effect, want)
		}
		sums[e.Position] += e.Effect
	}
	for p, want := range g.Readings.Direct.Difference {
		if math.Abs(sums[p]-want) > 1e-4*(1+math.Abs(want)) {
			t.Errorf("direct, position %d: the parts add to %v, want %v", p, sums[p], want)
		}
	}
}

// state is a metric of our own: a number of a token's last state.
type state struct{ position, column int }

func (s state) Values(t *tensor.Tape, _ *models.Model, hidden *tensor.Tensor, _ models.Batch) *tensor.Tensor {
	one := tensor.Slice(t, tensor.Slice(t, hidden, 1, s.position, s.position+1), 2, s.column, s.column+1)
	return tensor.Reshape(t, one, hidden.Dim(0), 1)
}

func (state) Last() bool { return false }

func (state) Check(*models.Model, int) error { return nil }
