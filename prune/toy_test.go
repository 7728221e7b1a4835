package prune

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/stats"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/observe"
	"github.com/attn-go/attn/tensor"
)

// toy is a model that is computed by hand. Its layers run side by side and their outputs are added; if
// deep, each layer processes the output of the previous one. An example's loss is Σ y·out over its tokens,
// or Σ y·(out + out²) if deep.
type toy struct {
	layers []*attn.MultiHead
	data   []text
	cuts   []int // examples in each batch
	deep   bool
}

// text has tokens x and y [length 2].
type text struct{ x, y []float32 }

func (m *toy) Layers() []attn.LayerHeads { return Layers(m.layers) }
func (m *toy) Batches() []int            { return m.cuts }

func (m *toy) Run(t *tensor.Tape, i int, p Pass) Outcome {
	first := 0
	for _, n := range m.cuts[:i] {
		first += n
	}
	batch := m.data[first : first+m.cuts[i]]
	longest, terms, lens := 0, 0, make([]int, len(batch))
	for b, s := range batch {
		lens[b] = len(s.x) / 2
		terms += lens[b]
		longest = max(longest, lens[b])
	}
	x, y := tensor.Full(1e3, len(batch), longest, 2), tensor.Zeros(len(batch), longest, 2) // the padding is 1e3
	for b, s := range batch {
		copy(x.Data()[b*longest*2:], s.x)
		copy(y.Data()[b*longest*2:], s.y)
	}
	out := tensor.Zeros(x.Shape()...)
	for _, l := range m.layers {
		o := attn.Options{Mask: mask.Lengths(lens...)}
		if p.Observe != nil {
			o.Observers = []attn.Observer{observe.Weights(p.Observe)}
		}
		if p.Gates != nil {
			o.Gates = p.Gates(l.Config().Name)
		}
		head := l.Forward(t, x, x, x, o).Out
		if m.deep {
			x = tensor.Add(t, x, head)
			out = x
		} else {
			out = tensor.Add(t, out, head)
		}
	}
	if m.deep {
		out = tensor.Add(t, out, tensor.Square(t, out))
	}
	return Outcome{
		Loss: tensor.Sum(t, tensor.Mul(t, out, y)), Terms: terms,
		Queries: func(string) []int { return lens },
	}
}

func (m *toy) Without(heads []Head) (*toy, error) {
	rest := *m
	rest.layers = slices.Clone(m.layers)
	for i, l := range m.layers {
		kept := slices.DeleteFunc(stats.Numbers(l.Config().Heads), func(h int) bool {
			return slices.Contains(heads, Head{l.Config().Name, h})
		})
		var err error
		if rest.layers[i], err = l.Keep(kept); err != nil {
			return nil, err
		}
	}
	return &rest, nil
}

// uniformLayer returns a layer of heads of size 1 whose queries are 0, so that each head returns the mean
// of its values. v is [groups 2] and out [2 heads].
func uniformLayer(t *testing.T, name string, groups, heads int, v, out []float32) *attn.MultiHead {
	t.Helper()
	l, err := attn.NewMultiHead(attn.MultiHeadConfig{Name: name, Width: 2, Heads: heads, KVHeads: groups, HeadSize: 1}, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	clear(l.Q.Weight.Data())
	copy(l.V.Weight.Data(), v)
	copy(l.Out.Weight.Data(), out)
	return l
}

// paper is the model for the numbers in importance_test.go.
//
// Layer a: head h is the mean m_h of x_h; columns of the output projection (3 4) and (0 2).
// Layer b: both heads are the mean m of x_0 + x_1; columns (1 0) and (0 −1).
//
//	example  tokens      m_a     m_b  Σ y    dL/dgate a             dL/dgate b
//	0        (1 0) (3 2)  (2 1)   3    (1 1)  2·(3+4) = 14, 1·2 = 2  3·1 = 3, 3·(−1) = −3
//	1        (−2 4)       (−2 4)  2    (0 1)  −2·4 = −8, 4·2 = 8     0, 2·(−1) = −2
//
// The loss is linear in the gates: it is 16 + 0 + (0 − 2) = 14 on all 3 tokens.
func paper(t *testing.T, cuts ...int) *toy {
	return &toy{
		layers: []*attn.MultiHead{
			uniformLayer(t, "a", 2, 2, []float32{1, 0, 0, 1}, []float32{3, 0, 4, 2}),
			uniformLayer(t, "b", 1, 2, []float32{1, 1}, []float32{1, 0, 0, -1}),
		},
		data: []text{
			{x: []float32{1, 0, 3, 2}, y: []float32{1, 0, 0, 1}},
			{x: []float32{-2, 4}, y: []float32{0, 1}},
		},
		cuts: cuts,
	}
}

// drawn is a model with random weights and data, a sequence of layers.
func drawn(t *testing.T, cuts ...int) *toy {
	t.Helper()
	rng := rand.New(rand.NewPCG(3, 5))
	m := &toy{deep: true, cuts: cuts}
	for i, groups := range []int{3, 1} {
		l, err := attn.NewMultiHead(attn.MultiHeadConfig{
			Name: fmt.Sprint("layer ", i), Width: 2, Heads: 3, KVHeads: groups, HeadSize: 2, ValueSize: 5,
		}, rng)
		if err != nil {
			t.Fatal(err)
		}
		m.layers = append(m.layers, l)
	}
	for _, n := range []int{3, 1, 4, 2, 5} {
		m.data = append(m.data, text{tensor.Randn(rng, n, 2).Data(), tensor.Randn(rng, n, 2).Data()})
	}
	return m
}

// wantScores fails unless the scores equal the given scores within a relative error.
func wantScores(t *testing.T, what string, got, want map[string][]float64, within float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: scores %v, want %v", what, got, want)
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		same := slices.EqualFunc(got[name], want[name], func(g, w float64) bool {
			return g == w || math.Abs(g-w) <= within*math.Abs(w) || g != g && w != w
		})
		if !same {
			t.Errorf("%s: layer %s has scores %v, want %v", what, name, got[name], want[name])
		}
	}
}
