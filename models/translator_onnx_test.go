package models

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/internal/onnxtest"
	"github.com/attn-go/attn/seq2seq"
)

// arrayOf returns integers of a shape as an interpreter has them.
func arrayOf(list []int, shape ...int) *onnxtest.Array {
	a := &onnxtest.Array{Shape: shape}
	for _, v := range list {
		a.Data = append(a.Data, float64(v))
	}
	return a
}

// stepper runs the model of a translator step by step, as the Python code of docs/onnx.md
// does.
type stepper struct {
	model *onnxtest.Model
	in    map[string]*onnxtest.Array
}

// newStepper returns the model of m in front of a batch of sources.
func newStepper(t *testing.T, m *Model, opset int, src Batch) (*stepper, func(tokens []int, l int) map[string]*onnxtest.Array) {
	t.Helper()
	exported, err := m.ONNX(opset)
	if err != nil {
		t.Fatal(err)
	}
	var file strings.Builder
	if _, err := exported.WriteTo(&file); err != nil {
		t.Fatal(err)
	}
	s := &stepper{}
	if s.model, err = onnxtest.Read([]byte(file.String())); err != nil {
		t.Fatal(err)
	}
	b := len(src.IDs)
	s.in = map[string]*onnxtest.Array{"source": arrayOf(src.ids(), b, src.longest()), "source_lengths": arrayOf(src.Lens(), b)}
	for _, p := range s.model.Graph.Inputs {
		if strings.HasPrefix(p.Name, "past.") {
			x := &onnxtest.Array{Shape: []int{}}
			n := 1
			for _, a := range p.Axes {
				size, fixed := a.(int)
				if !fixed && a == "batch" {
					size = b
				}
				x.Shape = append(x.Shape, size)
				n *= size
			}
			x.Data = make([]float64, n)
			s.in[p.Name] = x
		}
	}
	return s, func(tokens []int, l int) map[string]*onnxtest.Array {
		s.in["target"] = arrayOf(tokens, b, l)
		return s.in
	}
}

// next hands the state of one step to the next.
func (s *stepper) next(out map[string]*onnxtest.Array) {
	for name, x := range out {
		if what, ok := strings.CutPrefix(name, "present."); ok {
			s.in["past."+what] = x
		}
	}
}

// checkONNX compares some steps of a model with those of the network.
func checkONNX(t *testing.T, m *Model) {
	t.Helper()
	for _, opset := range []int{17, 23} {
		if opset == 17 && testing.Short() {
			continue // package onnx tests its layers
		}
		t.Run(fmt.Sprint(opset), func(t *testing.T) {
			exported, err := m.ONNX(opset)
			if err != nil {
				t.Fatal(err)
			}
			var src [][]int
			for _, e := range examplesOf(t, m, toyBatch) {
				src = append(src, e.IDs)
			}
			state := newReader(t, m, src)
			s, inputs := newStepper(t, m, opset, Batch{IDs: src})
			lengths := []int{1, 1, 1}
			if m.Translator.Config.Arch == Transformer {
				lengths = []int{2, 1, 3} // as many tokens at once
			}
			rng := rand.New(rand.NewPCG(7, 8))
			for n, l := range lengths {
				tokens := make([]int, len(src)*l)
				for i := range tokens {
					tokens[i] = rng.IntN(m.Translator.Config.TargetVocab)
				}
				logits := state.read(slices.Collect(slices.Chunk(tokens, l)), Run{})
				want := &onnxtest.Array{Shape: logits.Shape()}
				for _, v := range logits.Data() {
					want.Data = append(want.Data, float64(v))
				}
				t.Run(fmt.Sprint("step ", n), func(t *testing.T) {
					_, out := onnxtest.Check(t, exported, inputs(tokens, l), map[string]*onnxtest.Array{"logits": want})
					s.next(out)
				})
			}
		})
	}
}

// shaken returns an untrained translator all of whose parameters count.
func shaken(t *testing.T, c TranslatorConfig) *Model {
	t.Helper()
	m := newToy(t, c, toyPairs(5))
	rng := rand.New(rand.NewPCG(9, 10))
	for _, p := range m.Params() {
		for i := range p.Data() {
			p.Data()[i] += 0.2 * float32(rng.NormFloat64())
		}
	}
	return m
}

func TestONNX(t *testing.T) {
	for _, c := range toyConfigs() {
		t.Run(c.name(), func(t *testing.T) { checkONNX(t, shaken(t, c)) })
	}
}

// Layers may have few heads, or none.
func TestONNXPruned(t *testing.T) {
	for _, c := range []struct {
		name string
		of   TranslatorConfig
		kept map[string][]int
	}{
		{"some", TranslatorConfig{Arch: Transformer, Score: "scaled", Width: 12, Heads: 3, Layers: 2, Hidden: 10}, map[string][]int{
			"encoder.0.self": {}, "encoder.1.self": {1}, "decoder.0.self": {}, "decoder.0.cross": {0, 2}, "decoder.1.cross": {},
		}},
		{"none", TranslatorConfig{Arch: Transformer, Score: "cosine", Width: 12, Heads: 3, Layers: 1, Hidden: 10}, map[string][]int{
			"encoder.0.self": {}, "decoder.0.self": {}, "decoder.0.cross": {},
		}},
		{"gru", TranslatorConfig{Arch: GRU, Score: "scaled", Width: 12, Heads: 3, Layers: 1}, map[string][]int{"decoder.0.cross": {}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			checkONNX(t, keepHeads(t, shaken(t, c.of), c.kept))
		})
	}
}

// Greedy search with the model writes what the translator writes.
func TestONNXTranslates(t *testing.T) {
	for _, c := range []TranslatorConfig{
		{Arch: Transformer, Score: "scaled", Width: 12, Heads: 3, Layers: 1, Hidden: 10},
		{Arch: GRU, Score: "additive", Width: 12, Layers: 1},
	} {
		m := shaken(t, c)
		src := exampleOfPair(t, m, seq2seq.Pair{Source: "bcfa"}).IDs
		s, inputs := newStepper(t, m, 23, Batch{IDs: [][]int{src}})
		var written []int
		for token := seq2seq.BOS; token != seq2seq.EOS && len(written) < targetTokens(src); {
			out, err := s.model.Run(inputs([]int{token}, 1))
			if err != nil {
				t.Fatal(err)
			}
			s.next(out)
			logits := out["logits"].Data
			token = seq2seq.EOS
			for i := seq2seq.EOS; i < len(logits); i++ {
				if logits[i] > logits[token] {
					token = i
				}
			}
			if token != seq2seq.EOS {
				written = append(written, token)
			}
		}
		if got, want := m.Translator.Target.Decode(written), translate(t, m, 1, "bcfa"); got != want[0] {
			t.Errorf("%s writes %q, want %q", c.name(), got, want[0])
		}
	}
}

func TestONNXMetadata(t *testing.T) {
	m := newToy(t, toyConfigs()[0], toyPairs(5))
	s, _ := newStepper(t, m, 0, Batch{IDs: [][]int{{seq2seq.EOS}}})
	for key, want := range map[string]any{"config": m.Translator.Config, "source_vocabulary": m.Translator.Source, "target_vocabulary": m.Translator.Target} {
		if got := s.model.Metadata[key]; got != string(compactJSON(want)) {
			t.Errorf("%s is %q", key, got)
		}
	}
	if s.model.Opset != 23 {
		t.Errorf("opset %d, want 23", s.model.Opset)
	}
	if _, err := m.ONNX(18); err == nil || err.Error() != "models: onnx: opset 18, want 17 or 23" {
		t.Errorf("error %v", err)
	}
	var sources []string
	for _, p := range s.model.Graph.Inputs {
		if !strings.HasPrefix(p.Name, "past.") {
			sources = append(sources, p.Name)
		}
	}
	if want := []string{"source", "source_lengths", "target"}; !slices.Equal(sources, want) {
		t.Errorf("inputs %q, want %q", sources, want)
	}
}
