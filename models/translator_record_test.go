package models

import (
	"reflect"
	"slices"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/observe"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

func TestRecord(t *testing.T) {
	src, write, read := []string{"a", "b", "c", "<eos>"}, []string{"f", "e", "<eos>"}, []string{"<bos>", "f", "e"}
	type layer struct {
		name          string
		kind          heads.Kind
		index         int
		queries, keys []string
	}
	all := []layer{
		{"encoder.0.self", heads.Encoder, 0, src, src}, {"encoder.1.self", heads.Encoder, 1, src, src},
		{"decoder.0.self", heads.Decoder, 0, write, read}, {"decoder.1.self", heads.Decoder, 1, write, read},
		{"decoder.0.cross", heads.Cross, 0, write, src}, {"decoder.1.cross", heads.Cross, 1, write, src},
	}
	for _, c := range toyConfigs() {
		want := all
		if c.Arch == GRU {
			want = all[4:5] // one, however many layers
		}
		r, err := newToy(t, c, toyBatch).Record(t.Context(), "abc", "fe", heads.RecorderOptions{})
		if err != nil {
			t.Fatalf("%s: %v", c.name(), err)
		}
		if r.Source != "abc" || r.Target != "fe" || !slices.Equal(r.Special, []string{"<bos>", "<eos>"}) {
			t.Errorf("%s: texts %q, %q, special tokens %q", c.name(), r.Source, r.Target, r.Special)
		}
		var got []layer
		for i := range r.Layers {
			l := &r.Layers[i]
			got = append(got, layer{l.Name, l.Kind, l.Index, l.Queries, l.Keys})
			if problems := l.Check(); problems != nil || l.Heads != max(c.Heads, 1) {
				t.Errorf("%s: %s has %d heads and the problems %v", c.name(), l.Name, l.Heads, problems)
			}
			if l.Kind == heads.Decoder && (l.Head(1)[0] != 1 || l.Head(1)[1] != 0 || l.Head(1)[5] != 0) {
				t.Errorf("%s: %s sees what is not written yet: %v", c.name(), l.Name, l.Head(1))
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: layers\n%v, want\n%v", c.name(), got, want)
		}
	}
}

// Weights recorded for a whole text equal those recorded during translation.
func TestRecordIsWhatGreedySees(t *testing.T) {
	for _, c := range toyConfigs() {
		m := newToy(t, c, toyBatch)
		want, err := m.Record(t.Context(), "abcdef", "fedc", heads.RecorderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		r := heads.NewRecorder(heads.RecorderOptions{Sequence: 1})
		watch := Run{Observers: []attn.Observer{r}}
		e := exampleOfPair(t, m, seq2seq.Pair{Source: "abcdef", Target: "fedc"})
		s := newReader(t, m, [][]int{exampleOfPair(t, m, seq2seq.Pair{Source: "ga"}).IDs, e.IDs})
		for _, id := range e.Reads {
			s.read([][]int{{id}, {id}}, watch)
		}
		texts := heads.Texts{SourceTokens: want.Layer(heads.Cross, 0).Keys, TargetTokens: want.Layer(heads.Cross, 0).Queries}
		got, err := r.Record(texts)
		if err != nil {
			t.Fatalf("%s: %v", c.name(), err)
		}
		for i := range want.Layers {
			wide := make([]float64, len(want.Layers[i].Weights))
			for j, w := range want.Layers[i].Weights {
				wide[j] = float64(w)
			}
			tensortest.Close(t, c.name()+": "+want.Layers[i].Name, got.Layers[i].Weights, wide, 1e-6)
		}
	}
}

func TestRecordAtNothing(t *testing.T) {
	m := newToy(t, TranslatorConfig{Arch: GRU, Score: "dot", Width: 12, Layers: 1}, toyBatch)
	_, err := m.Record(t.Context(), "a", "", heads.RecorderOptions{Kinds: []heads.Kind{heads.Encoder}})
	if want := "heads: none of the selected layers was observed"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// Observing changes nothing, and the weights of one step equal those of all steps at once.
func TestObserving(t *testing.T) {
	for _, c := range toyConfigs() {
		m := newToy(t, c, toyBatch)
		const l = 4
		start, ids := toyReader(t, m, toyBatch, l)
		silent := start.read(ids, Run{})
		var last *tensor.Tensor
		// The last layer's, crossing.
		keep := Run{Observers: []attn.Observer{observe.Weights(func(layer string, w *tensor.Tensor) { last = w.Clone() })}}
		start, _ = toyReader(t, m, toyBatch, l)
		watched := start.read(ids, keep)
		tensortest.Same(t, c.name()+": logits while watched", watched.Data(), silent.Data())

		all := last
		s, _ := toyReader(t, m, toyBatch, l)
		for i := range l {
			s.read(tokensAt(ids, i, i+1), keep)
			want := tensor.Slice(nil, all, 2, i, i+1)
			tensortest.Close(t, c.name()+": weights of a step", last.Data(), wide(want.Data()), 1e-6)
		}
	}
}
