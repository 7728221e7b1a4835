package seq2seq

import (
	"math"
	"slices"
	"testing"

	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

func TestAlign(t *testing.T) {
	for _, c := range toyConfigs() {
		m := newToy(t, c, toyBatch)
		a := m.Align("abc", "fe")
		if want := []string{"a", "b", "c", "<eos>"}; !slices.Equal(a.Source, want) {
			t.Errorf("%s: source %q, want %q", c.name(), a.Source, want)
		}
		if want := []string{"f", "e", "<eos>"}; !slices.Equal(a.Target, want) {
			t.Errorf("%s: target %q, want %q", c.name(), a.Target, want)
		}
		names := []string{"decoder.0.cross", "decoder.1.cross"}
		if c.Arch == GRU {
			names = names[:1] // one, however many layers
		}
		if len(a.Layers) != len(names) {
			t.Fatalf("%s: %d layers, want %q", c.name(), len(a.Layers), names)
		}
		for i, l := range a.Layers {
			if l.Name != names[i] {
				t.Errorf("%s: layer %q, want %q", c.name(), l.Name, names[i])
			}
			if want := []int{max(c.Heads, 1), 3, 4}; !slices.Equal(l.Weights.Shape(), want) {
				t.Errorf("%s: weights %v, want %v", c.name(), l.Weights.Shape(), want)
			}
			rowsSumToOne(t, c.name(), l.Weights)
			mean := a.Mean(i - len(a.Layers))
			tensortest.Same(t, c.name()+": mean", mean.Data(), a.Mean(i).Data())
			rowsSumToOne(t, c.name()+": mean", mean)
		}
	}
}

func rowsSumToOne(t *testing.T, name string, weights *tensor.Tensor) {
	t.Helper()
	for row := range slices.Chunk(weights.Data(), weights.Dim(-1)) {
		sum := 0.0
		for _, w := range row {
			sum += float64(w)
		}
		if math.Abs(sum-1) > 1e-5 || slices.Min(row) < 0 {
			t.Errorf("%s: weights %v, want numbers from 0 that sum to 1", name, row)
		}
	}
}

// To watch changes nothing, and what is told of one step is what is told of all.
func TestObserving(t *testing.T) {
	for _, c := range toyConfigs() {
		m := newToy(t, c, toyBatch)
		const l = 4
		start, ids := toyState(m, toyBatch, l)
		silent, _ := decode(m.net, nil, start, ids, l, nil)
		var last *tensor.Tensor
		keep := func(layer string, w *tensor.Tensor) { last = w.Clone() } // the last layer's, crossing
		watched, _ := decode(m.net, nil, start, ids, l, keep)
		tensortest.Same(t, c.name()+": logits while watched", watched.Data(), silent.Data())

		all := last
		s := start
		for i := range l {
			_, s = decode(m.net, nil, s, column(ids, len(toyBatch), l, i, i+1), 1, keep)
			want := tensor.Slice(nil, all, 2, i, i+1)
			wide := make([]float64, want.Len())
			for j, v := range want.Data() {
				wide[j] = float64(v)
			}
			tensortest.Close(t, c.name()+": weights of a step", last.Data(), wide, 1e-6)
		}
	}
}
