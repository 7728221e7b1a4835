package models

import (
	"fmt"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/observe"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// Weights recorded for a whole text equal those recorded during translation.
func TestRecordIsWhatGreedySees(t *testing.T) {
	for _, c := range toyConfigs() {
		m := newToy(t, c, toyBatch)
		e := exampleOfPair(t, m, seq2seq.Pair{Source: "abcdef", Target: "fedc"})
		texts := heads.Texts{SourceTokens: numbered("s", e.IDs), TargetTokens: numbered("w", e.Targets), ReadTokens: numbered("r", e.Reads)}
		all := heads.NewRecorder(heads.RecorderOptions{})
		m.Hidden(nil, Batch{IDs: [][]int{e.IDs}, Targets: [][]int{e.Reads}}, Run{Observers: []attn.Observer{all}})
		want, err := all.Record(texts)
		if err != nil {
			t.Fatalf("%s: %v", c.name(), err)
		}
		r := heads.NewRecorder(heads.RecorderOptions{Sequence: 1})
		watch := Run{Observers: []attn.Observer{r}}
		s := newReader(t, m, [][]int{exampleOfPair(t, m, seq2seq.Pair{Source: "ga"}).IDs, e.IDs})
		for _, id := range e.Reads {
			s.read([][]int{{id}, {id}}, watch)
		}
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

// numbered returns a name for each token of a sequence.
func numbered(name string, ids []int) (list []string) {
	for i := range ids {
		list = append(list, fmt.Sprint(name, i))
	}
	return list
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
