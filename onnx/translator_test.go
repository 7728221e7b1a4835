package onnx_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/tokenizer"
)

// stepper runs the model of a translator step by step, as the Python code of docs/onnx.md
// does.
type stepper struct {
	model *Model
	in    arrays
}

// newStepper returns the model of m in front of a batch of sources.
func newStepper(t *testing.T, m *models.Model, opset int, src [][]int) (*stepper, func(tokens []int, l int) arrays) {
	t.Helper()
	exported, err := m.ONNX(opset)
	if err != nil {
		t.Fatal(err)
	}
	var file strings.Builder
	if err := exported.Write(&file); err != nil {
		t.Fatal(err)
	}
	s := &stepper{}
	if s.model, err = Read([]byte(file.String())); err != nil {
		t.Fatal(err)
	}
	b, longest := len(src), 0
	lens := models.Batch{IDs: src}.Lens()
	for _, n := range lens {
		longest = max(longest, n)
	}
	ids := make([]int, b*longest)
	for i, list := range src {
		copy(ids[i*longest:], list)
	}
	s.in = arrays{"source": whole(ids, b, longest), "source_lengths": whole(lens, b)}
	for _, p := range s.model.Graph.Inputs {
		if strings.HasPrefix(p.Name, "past.") {
			x := &Array{Shape: []int{}}
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
	return s, func(tokens []int, l int) arrays {
		s.in["target"] = whole(tokens, b, l)
		return s.in
	}
}

// next hands the state of one step to the next.
func (s *stepper) next(out arrays) {
	for name, x := range out {
		if what, ok := strings.CutPrefix(name, "present."); ok {
			s.in["past."+what] = x
		}
	}
}

// checkONNX compares some steps of a model with those of the network.
func checkONNX(t *testing.T, m *models.Model) {
	t.Helper()
	for _, opset := range []int{17, 23} {
		if opset == 17 && testing.Short() {
			continue // onnx_test.go tests its layers
		}
		t.Run(fmt.Sprint(opset), func(t *testing.T) {
			exported, err := m.ONNX(opset)
			if err != nil {
				t.Fatal(err)
			}
			var src [][]int
			for _, text := range []string{"abcdef", "ga", "bcfa", "e"} {
				src = append(src, encoded(t, m, text))
			}
			state, err := models.NewState(m, len(src), attn.CacheConfig{})
			if err != nil {
				t.Fatal(err)
			}
			x := models.Batch{IDs: src}
			s, inputs := newStepper(t, m, opset, src)
			lengths := []int{1, 1, 1}
			if m.Family.Type == "attn-transformer" {
				lengths = []int{2, 1, 3} // as many tokens at once
			}
			rng := rand.New(rand.NewPCG(7, 8))
			for n, l := range lengths {
				tokens := make([]int, len(src)*l)
				for i := range tokens {
					tokens[i] = rng.IntN(m.Sizes().Decoder.Vocabulary)
				}
				x.Targets = slices.Collect(slices.Chunk(tokens, l))
				want := array(m.Head().Logits(nil, m.Hidden(nil, x, models.Run{State: state})))
				x.IDs = nil // the state has read them
				t.Run(fmt.Sprint("step ", n), func(t *testing.T) {
					_, out := Check(t, exported, inputs(tokens, l), arrays{"logits": want})
					s.next(out)
				})
			}
		})
	}
}

// toyTransformer is the configuration of a small transformer.
func toyTransformer(score string, layers int) models.TranslatorConfig {
	return models.TranslatorConfig{
		Arch: models.Transformer, Score: score, Width: 12, Heads: 3, Layers: layers, Hidden: 10,
	}
}

// encoded returns the tokens of a source.
func encoded(t *testing.T, m *models.Model, text string) []int {
	t.Helper()
	e, err := m.Encode(text, "")
	if err != nil {
		t.Fatal(err)
	}
	return e.IDs
}

// shaken returns an untrained translator all of whose parameters count.
func shaken(t *testing.T, c models.TranslatorConfig) *models.Model {
	t.Helper()
	letters := seq2seq.BuildVocabulary([]string{"abcdefg"}, seq2seq.Chars, 0)
	rng := rand.New(rand.NewPCG(9, 10))
	m, err := models.NewTranslator(c, letters, letters, rng)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range m.Params() {
		for i := range p.Data() {
			p.Data()[i] += 0.2 * float32(rng.NormFloat64())
		}
	}
	return m
}

func TestONNX(t *testing.T) {
	for _, score := range score.Kinds().Names() {
		for _, c := range []models.TranslatorConfig{
			toyTransformer(score, 2),
			{Arch: models.GRU, Score: score, Width: 12, Layers: 2},
			{Arch: models.GRU, Score: score, Width: 12, Heads: 3, Layers: 1},
		} {
			name := fmt.Sprintf("%s with %s scores and %d heads", c.Arch, c.Score, c.Heads)
			t.Run(name, func(t *testing.T) { checkONNX(t, shaken(t, c)) })
		}
	}
}

// Layers may have few heads, or none.
func TestONNXPruned(t *testing.T) {
	for _, c := range []struct {
		name string
		of   models.TranslatorConfig
		kept map[string][]int
	}{
		{"some", toyTransformer("scaled", 2), map[string][]int{
			"encoder.0.self": {}, "encoder.1.self": {1},
			"decoder.0.self": {}, "decoder.0.cross": {0, 2}, "decoder.1.cross": {},
		}},
		{"none", toyTransformer("cosine", 1), map[string][]int{
			"encoder.0.self": {}, "decoder.0.self": {}, "decoder.0.cross": {},
		}},
		{
			"gru", models.TranslatorConfig{Arch: models.GRU, Score: "scaled", Width: 12, Heads: 3, Layers: 1},
			map[string][]int{"decoder.0.cross": {}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := shaken(t, c.of).Keep(c.kept)
			if err != nil {
				t.Fatal(err)
			}
			checkONNX(t, m)
		})
	}
}

// Greedy search with the ONNX model gives the translator's output.
func TestONNXTranslates(t *testing.T) {
	for _, c := range []models.TranslatorConfig{
		{Arch: models.Transformer, Score: "scaled", Width: 12, Heads: 3, Layers: 1, Hidden: 10},
		{Arch: models.GRU, Score: "additive", Width: 12, Layers: 1},
	} {
		m := shaken(t, c)
		src := encoded(t, m, "bcfa")
		s, inputs := newStepper(t, m, 23, [][]int{src})
		var written []int
		for token := seq2seq.BOS; token != seq2seq.EOS && len(written) < 2*len(src)+20; {
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
		want, err := m.Translate(t.Context(), []string{"bcfa"}, 1)
		if got := m.Decode(written); err != nil || got != want[0] {
			t.Errorf("%s writes %q, want %q, %v", c.Arch, got, want, err)
		}
	}
}

func TestONNXMetadata(t *testing.T) {
	m := shaken(t, toyTransformer("scaled", 2))
	s, _ := newStepper(t, m, 0, [][]int{{seq2seq.EOS}})
	c, _ := m.TranslatorConfig()
	text, err := json.Marshal(c)
	if got := s.model.Metadata["config"]; err != nil || got != string(text) {
		t.Errorf("config is %q, want %q, %v", got, text, err)
	}
	tok, err := m.Tokenizer()
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]*tokenizer.Tokenizer{"source_vocabulary": tok, "target_vocabulary": tok.Target()} {
		got, err := tokenizer.Read(strings.NewReader(s.model.Metadata[key]))
		if err != nil || !got.Same(want) {
			t.Errorf("%s is %q, %v", key, s.model.Metadata[key], err)
		}
	}
	if s.model.Opset != 23 {
		t.Errorf("opset %d, want 23", s.model.Opset)
	}
	if _, err := m.ONNX(18); err == nil || err.Error() != "models: onnx: opset 18, want 17, 23 or 27" {
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
