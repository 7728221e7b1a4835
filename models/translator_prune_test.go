package models

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// headed returns the toy networks with heads.
func headed() []TranslatorConfig {
	return slices.DeleteFunc(toyConfigs(), func(c TranslatorConfig) bool { return c.Heads == 0 })
}

// toyKept selects heads of a toy network. Layers keep different heads, and one layer loses all.
func toyKept(c TranslatorConfig) map[string][]int {
	if c.Arch == GRU {
		return map[string][]int{"decoder.0.cross": {1}}
	}
	return map[string][]int{"encoder.0.self": {0, 2}, "encoder.1.self": {}, "decoder.0.self": {1}, "decoder.1.cross": {2}}
}

// newShaken is newToy with all parameters changed at random, including biases.
func newShaken(tb testing.TB, c TranslatorConfig, pairs []seq2seq.Pair) *Model {
	tb.Helper()
	m := newToy(tb, c, pairs)
	rng := rand.New(rand.NewPCG(17, 19))
	for _, p := range m.Params() {
		for i := range p.Data() {
			p.Data()[i] += 0.3 * float32(rng.NormFloat64())
		}
	}
	return m
}

// keepHeads returns the result of m.Keep; an error ends the test.
func keepHeads(tb testing.TB, m *Model, kept map[string][]int) *Model {
	tb.Helper()
	small, err := m.Keep(kept)
	if err != nil {
		tb.Fatal(err)
	}
	return small
}

// saved returns the models of the two forms of a model with some heads, loaded from files.
func saved(t *testing.T, m *Model, kept map[string][]int) (compact, masked *Model) {
	t.Helper()
	small, err := m.Compact(kept)
	if err != nil {
		t.Fatal(err)
	}
	config := m.Config()
	load := func(config []byte, write func(io.Writer) error) *Model {
		dir := t.TempDir()
		if err := m.Save(dir); err != nil {
			t.Fatal(err)
		}
		var weights bytes.Buffer
		if err := cmp.Or(write(&weights), os.WriteFile(filepath.Join(dir, configFile), config, 0o644),
			os.WriteFile(filepath.Join(dir, WeightsFile), weights.Bytes(), 0o644)); err != nil {
			t.Fatal(err)
		}
		return loaded(t, dir)
	}
	return load(small.Config, small.Write), load(config, func(w io.Writer) error { return m.WriteMasked(w, kept) })
}

// allLogits returns the logits of all targets of pairs.
func allLogits(tb testing.TB, m *Model, pairs []seq2seq.Pair, r Run) []float32 {
	logits, _ := predict(nil, m, examplesOf(tb, m, pairs), r)
	return logits.Data()
}

func wide(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

// gatesFor returns gates of 1 for the given heads of each layer of m, and of 0 for the others.
func gatesFor(m *Model, kept map[string][]int) func(string) *tensor.Tensor {
	all := map[string]*tensor.Tensor{}
	for _, l := range m.Attention() {
		name, gates := l.Config().Name, tensor.Full(1, l.Config().Heads)
		if chosen, some := kept[name]; some {
			clear(gates.Data())
			for _, h := range chosen {
				gates.Data()[h] = 1
			}
		}
		all[name] = gates
	}
	return func(layer string) *tensor.Tensor { return all[layer] }
}

// Cutting heads out, in memory and in files, setting their parameters to zero and gates of 0 have the same effect.
func TestKeepIsMaskedIsGates(t *testing.T) {
	for _, c := range headed() {
		m := newShaken(t, c, toyBatch)
		before := allLogits(t, m, toyBatch, Run{})
		small, kept := m, toyKept(c)
		small = keepHeads(t, m, kept)
		compact, masked := saved(t, m, kept)
		want := wide(allLogits(t, m, toyBatch, Run{Gates: gatesFor(m, kept)}))
		tensortest.Close(t, c.name()+": compact", allLogits(t, small, toyBatch, Run{}), want, 2e-6)
		sameParams(t, compact, small)
		if of, want := configOf(t, compact), configOf(t, small); !of.Equal(want) {
			t.Errorf("%s: the file has the config %+v, want %+v", c.name(), of, want)
		}
		tensortest.Close(t, c.name()+": masked", allLogits(t, masked, toyBatch, Run{}), want, 2e-6)
		if slices.Equal(wide(before), want) {
			t.Errorf("%s: the heads make no difference", c.name())
		}
		for _, l := range small.Attention() {
			n, some := len(kept[l.Config().Name]), false
			if _, some = kept[l.Config().Name]; !some {
				n = c.Heads
			}
			if l.Config().Heads != n || l.Q.Weight.Dim(0) != n*4 || l.Out.Weight.Dim(1) != n*4 {
				t.Errorf("%s: %s has %d heads and queries %v", c.name(), l.Config().Name, l.Config().Heads, l.Q.Weight.Shape())
			}
		}
		if of := configOf(t, masked); !of.Equal(configOf(t, m)) {
			t.Errorf("masked, %s is %+v", c.name(), of)
		}
		for _, copied := range []*Model{small, masked} {
			for _, p := range copied.Params() {
				clear(p.Data())
			}
		}
		tensortest.Same(t, c.name()+": the original, when its copies are wiped", allLogits(t, m, toyBatch, Run{}), before)
	}
}

// Pruning twice equals pruning once, with the same head numbers.
func TestKeepComposes(t *testing.T) {
	c := headed()[0]
	m := newShaken(t, c, toyBatch)
	once := keepHeads(t, keepHeads(t, m, map[string][]int{"encoder.0.self": {0, 2}, "decoder.1.cross": {1, 2}}),
		map[string][]int{"encoder.0.self": {1}, "decoder.1.cross": {0, 1}, "decoder.0.self": {}})
	at := keepHeads(t, m, map[string][]int{"encoder.0.self": {2}, "decoder.1.cross": {1, 2}, "decoder.0.self": {}})
	want := map[string][]int{"encoder.0.self": {0, 1}, "decoder.1.cross": {0}, "decoder.0.self": {0, 1, 2}}
	if got, its := configOf(t, once), configOf(t, at); !reflect.DeepEqual(got.PrunedHeads, want) || !got.Equal(its) {
		t.Errorf("pruned are %v and %v, want %v", got.PrunedHeads, its.PrunedHeads, want)
	}
	if got := once.HeadNumbers("encoder.0.self"); !slices.Equal(got, []int{2}) {
		t.Errorf("left is %v, want 2", got)
	}
	sameParams(t, once, at)
	all := keepHeads(t, m, nil)
	if c := configOf(t, all); !c.Equal(configOf(t, m)) {
		t.Errorf("with all heads kept, it is %+v", c)
	}
	sameParams(t, all, m)
}

func TestLayers(t *testing.T) {
	for _, c := range toyConfigs() {
		var names []string
		for _, l := range newToy(t, c, toyBatch).Attention() {
			names = append(names, l.Config().Name)
		}
		want := []string{"encoder.0.self", "encoder.1.self", "decoder.0.self", "decoder.0.cross", "decoder.1.self", "decoder.1.cross"}
		if c.Arch == GRU {
			want = want[3 : 3+min(c.Heads, 1)]
		}
		if !slices.Equal(names, want) {
			t.Errorf("%s: layers %v, want %v", c.name(), names, want)
		}
	}
}

func TestKeepRefuses(t *testing.T) {
	m := newToy(t, headed()[0], toyBatch)
	none := newToy(t, TranslatorConfig{Arch: GRU, Score: "dot", Width: 12, Layers: 1}, toyBatch)
	for _, c := range []struct {
		want  string
		model *Model
		kept  map[string][]int
	}{
		{`layers "encoder.2.self", want only layers of the model`, m, map[string][]int{"encoder.2.self": {0}}},
		{`layers "encoder.0.self", "encoder.2.self", want only`, m, map[string][]int{"encoder.0.self": {0}, "encoder.2.self": {0}}},
		{`attn: Keep: heads [0 3] of layer "decoder.0.self", want ascending numbers below 3`, m, map[string][]int{"decoder.0.self": {0, 3}}},
		{`attn: Keep: heads [-1] of layer "decoder.0.self", want ascending`, m, map[string][]int{"decoder.0.self": {-1}}},
		{`attn: Keep: heads [0 1 1] of layer "decoder.0.self", want ascending`, m, map[string][]int{"decoder.0.self": {0, 1, 1}}},
		{`attn: Keep: heads [0 1] of layer "decoder.0.self", want ascending numbers below 1`, keepHeads(t, m, map[string][]int{"decoder.0.self": {2}}), map[string][]int{"decoder.0.self": {0, 1}}},
		{`layers "decoder.0.cross", want only`, none, map[string][]int{"decoder.0.cross": {}}},
	} {
		_, err := c.model.Keep(c.kept)
		if err == nil || !strings.HasPrefix(err.Error(), "models: Keep: "+c.want) {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
}

// A compact model can be saved, loaded and used for translation, one text at a time or many, with
// the results of the masked model.
func TestCompactModel(t *testing.T) {
	texts := []string{"", "abc", "gfedcba gfedcba", "e"}
	for _, c := range headed() {
		m, kept := newShaken(t, c, toyBatch), toyKept(c)
		if c.Arch == GRU && c.Score == "additive" {
			kept["decoder.0.cross"] = nil
		}
		_, masked := saved(t, m, kept)
		dir := t.TempDir()
		if err := keepHeads(t, m, kept).Save(dir); err != nil {
			t.Fatal(err)
		}
		small := loaded(t, dir)
		if of := configOf(t, small); !reflect.DeepEqual(of, configOf(t, keepHeads(t, m, kept))) {
			t.Errorf("%s: loaded as %+v", c.name(), of)
		}
		for _, d := range []int{1, 3} {
			if got, want := translate(t, small, d, texts...), translate(t, masked, d, texts...); !slices.Equal(got, want) {
				t.Errorf("%s: it writes %q, masked %q", c.name(), got, want)
			}
		}
	}
}

func TestConfigEqual(t *testing.T) {
	c := TranslatorConfig{Arch: Transformer, Score: "scaled", Width: 12, Heads: 3, Layers: 1}
	nothing, other := c, c
	nothing.PrunedHeads = map[string][]int{"encoder.0.self": {}}
	other.PrunedHeads = map[string][]int{"encoder.0.self": {0}}
	if !c.Equal(nothing) || !nothing.Equal(c) || c.Equal(other) || other.Equal(nothing) || !other.Equal(other) {
		t.Error("configurations are told apart by a layer that has lost no head, or not by one that has")
	}
}

func TestConfigPruned(t *testing.T) {
	transformer, gru := headed()[0], headed()[1]
	for _, c := range []struct {
		want   string // in the error; empty: none
		from   TranslatorConfig
		pruned map[string][]int
	}{
		{"", transformer, map[string][]int{"encoder.1.self": {0, 2}, "decoder.0.cross": {0, 1, 2}, "decoder.1.self": {}}},
		{"", gru, map[string][]int{"decoder.0.cross": {0, 1, 2}}},
		{`pruned_heads has layer "encoder.2.self", want one of encoder.0.self, `, transformer, map[string][]int{"encoder.2.self": {0}}},
		{`pruned_heads has layer "encoder.0.self", want one of decoder.0.cross`, gru, map[string][]int{"encoder.0.self": {0}}},
		{`pruned_heads is {"decoder.0.cross":[0]}, want {} or none`, toyConfigs()[1], map[string][]int{"decoder.0.cross": {0}}},
		{`pruned_heads of layer decoder.1.self is [3], want numbers from 0 to 2, each once`, transformer, map[string][]int{"decoder.1.self": {3}}},
		{`pruned_heads of layer decoder.1.self is [-1], want`, transformer, map[string][]int{"decoder.1.self": {-1}}},
		{`pruned_heads of layer decoder.1.self is [1 1], want`, transformer, map[string][]int{"decoder.1.self": {1, 1}}},
	} {
		c.from.SourceVocab, c.from.TargetVocab, c.from.PrunedHeads = 9, 7, c.pruned
		err := c.from.Validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%v: error %v, want %q", c.pruned, err, c.want)
		}
		if same := c.from; c.want == "" {
			data, err := json.Marshal(c.from)
			if err == nil {
				same = TranslatorConfig{}
				err = json.Unmarshal(data, &same)
			}
			if err != nil || !same.Equal(c.from) {
				t.Errorf("written and read again: %+v, %v", same, err)
			}
			same.PrunedHeads = maps.Clone(same.PrunedHeads)
			same.PrunedHeads["decoder.0.cross"] = []int{1}
			if same.Equal(c.from) || c.from.Equal(same) {
				t.Error("other heads pruned, and equal all the same")
			}
		}
	}
	if wider := transformer; !wider.Equal(transformer) {
		t.Error("a configuration differs from itself")
	} else if wider.Width++; wider.Equal(transformer) {
		t.Error("another width, and equal all the same")
	}
}
