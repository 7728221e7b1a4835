package probe_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/probe"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/tensor"
)

// probed are directories with heads of every kind.
var probed = []string{"bert_words", "roberta_words", "bert_text", "bert_next", "deberta_words", "decoders/llama3", "decoders/gemma2", "decoders/gpt2"}

// randomExamples returns examples of different lengths.
func randomExamples(m *models.Model, n int) []probe.Example {
	rng := rand.New(rand.NewPCG(3, 5))
	var list []probe.Example
	for i := range n {
		var e probe.Example
		for range 2 + i%7 {
			e.IDs = append(e.IDs, rng.IntN(m.Sizes().Vocabulary))
		}
		switch task := m.Head().Task; {
		case !task.PerToken():
			e.Targets = []int{rng.IntN(len(m.Head().Labels))}
		case task == models.NextWord:
			e.Targets = append(slices.Clone(e.IDs[1:]), probe.Ignore)
		default:
			e.Targets = slices.Repeat([]int{probe.Ignore}, len(e.IDs))
			e.Targets[i%len(e.IDs)] = rng.IntN(m.Sizes().Vocabulary)
		}
		list = append(list, e)
	}
	return list
}

func loadProbe(t *testing.T, name string) *probe.Probe {
	t.Helper()
	m, err := models.Load(filepath.Join(testdata, name), models.Options{Trainable: true})
	if err != nil {
		t.Fatal(err)
	}
	examples := randomExamples
	if m.Sizes().Decoder != nil {
		examples = translationExamples
	}
	p, err := probe.New(m, examples(m, 23))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func lossOf(t *testing.T, p *probe.Probe) float64 {
	t.Helper()
	loss, err := p.Loss(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return loss
}

// TestProbeLoss compares a probe's loss with −ln softmax of the logits of each example alone.
func TestProbeLoss(t *testing.T) {
	for _, name := range probed {
		p := loadProbe(t, name)
		m := p.Model()
		want, terms := 0., 0
		for _, e := range randomExamples(m, 23) {
			logits := m.Head().Of(nil, m.Hidden(nil, models.Batch{IDs: [][]int{e.IDs}}, models.Run{}), models.Batch{IDs: [][]int{e.IDs}})
			width := logits.Dim(-1)
			for i, target := range e.Targets {
				if target == probe.Ignore {
					continue
				}
				row, sum := logits.Data()[i*width:(i+1)*width], 0.
				for _, v := range row {
					sum += math.Exp(float64(v))
				}
				want += math.Log(sum) - float64(row[target])
				terms++
			}
		}
		if got := lossOf(t, p); math.Abs(got-want/float64(terms)) > 1e-5*want {
			t.Errorf("%s: loss %v, want %v", name, got, want/float64(terms))
		}
	}
}

// TestProbeImportance scores heads by every method, and again without some of them.
func TestProbeImportance(t *testing.T) {
	for _, name := range fewer(probed) {
		p := loadProbe(t, name)
		first := p.Layers()[0]
		var gone []prune.Head // a group of heads with the same keys and values
		for h := range first.Group {
			gone = append(gone, prune.Head{Layer: first.Name, Number: h})
		}
		less, err := p.Without(gone)
		if err != nil {
			t.Fatal(err)
		}
		var confidence [2][]float64 // of the first layer, in which a head does not depend on others
		for i, s := range []*probe.Probe{p, less} {
			scores, err := prune.Importance(context.Background(), s, prune.ImportanceOptions{})
			if err != nil {
				t.Fatal(name, err)
			}
			for _, list := range scores {
				if list.Method == prune.Confidence {
					confidence[i] = list.Values[first.Name]
				}
				for _, v := range list.Flat(s.Layers()) {
					if math.IsNaN(v) {
						t.Errorf("%s: %v has %v", name, list.Method, list.Values)
						break
					}
				}
			}
			// Leave-one-out is the loss without a head, less that with it; a group of one only.
			if c := s.Layers()[1]; c.Group == 1 {
				other, err := s.Without([]prune.Head{{Layer: c.Name, Number: 1}})
				if err != nil {
					t.Fatal(err)
				}
				if got, want := scores[0].Values[c.Name][1], lossOf(t, other)-lossOf(t, s); math.Abs(got-want) > 1e-5 {
					t.Errorf("%s: leave-one-out says %v, the loss %v", name, got, want)
				}
			}
		}
		if got, want := confidence[1], confidence[0][len(gone):]; !slices.Equal(got, want) {
			t.Errorf("%s: without heads the others have confidence %v, want %v", name, got, want)
		}
		if lossOf(t, less) == lossOf(t, p) {
			t.Errorf("%s: without heads the loss is the same", name)
		}
		if got, want := fmt.Sprint(less.Kept()[first.Name]), len(gone); less.Kept()[first.Name][0] != want {
			t.Errorf("%s: heads %v of the first layer are left", name, got)
		}
	}
}

// TestProbeGates runs single sequences with separate gates, next to removed heads.
func TestProbeGates(t *testing.T) {
	p := loadProbe(t, "bert_words")
	layer := p.Layers()[0].Name
	less, err := p.Without([]prune.Head{{Layer: layer, Number: 0}})
	if err != nil {
		t.Fatal(err)
	}
	none, err := less.Without([]prune.Head{{Layer: layer, Number: 0}, {Layer: layer, Number: 1}})
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range less.Batches() {
		closed := less.Run(nil, i, prune.Pass{Gates: func(name string) *tensor.Tensor {
			if name != layer {
				return nil
			}
			return tensor.Zeros(n, 2)
		}})
		if got, want := closed.Loss.Item(), none.Run(nil, i, prune.Pass{}).Loss.Item(); got != want {
			t.Errorf("with gates of 0 the loss is %v, without the heads %v", got, want)
		}
	}
}

// TestProbePrune removes half of the heads, in whole groups if they share keys and values.
func TestProbePrune(t *testing.T) {
	for _, name := range fewer(probed) {
		p := loadProbe(t, name)
		pruned, err := prune.Heads(context.Background(), p, prune.Options[*probe.Probe]{
			Method: prune.Gradient, Keep: 4, EmptyLayers: true, Step: 1, Rescore: true,
		})
		if err != nil || !pruned.Reached {
			t.Errorf("%s: %v, %v", name, pruned.Removed, err)
		}
	}
}

func TestProbeRefuses(t *testing.T) {
	load := func(name string) *models.Model {
		m, err := models.Load(filepath.Join(testdata, name), models.Options{Trainable: true})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	words := load("bert_words")
	for name, c := range map[string]struct {
		m    *models.Model
		list []probe.Example
		want string
	}{
		"no head":       {load("bert"), nil, "probe: New: the model has no head, want one for any of masked words, next word and classes of a text"},
		"spans":         {load("bert_answers"), nil, "probe: New: the model's head is for the span of an answer, want one for any of masked words, next word and classes of a text"},
		"no examples":   {words, nil, "probe: New: no examples, want one or more"},
		"too long":      {words, []probe.Example{{IDs: make([]int, 14)}}, "probe: New: example 0 has 14 tokens, want at most 13"},
		"targets":       {words, []probe.Example{{IDs: []int{1, 2}, Targets: []int{3}}}, "probe: New: example 0 has 1 targets, want 2"},
		"other targets": {words, []probe.Example{{IDs: []int{1}, Targets: []int{43}}}, "probe: New: example 0 has target 43, want 0 to 42"},
		"no targets":    {words, []probe.Example{{IDs: []int{1}, Targets: []int{probe.Ignore}}}, "probe: New: example 0 has nothing to predict"},
	} {
		if _, err := probe.New(c.m, c.list); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	p := loadProbe(t, "bert_words")
	for _, gone := range [][]prune.Head{{{Layer: "none", Number: 0}}, {{Layer: "encoder.0.self", Number: 3}}} {
		if _, err := p.Without(gone); err == nil {
			t.Errorf("without %v: no error", gone)
		}
	}
	grouped := loadProbe(t, "decoders/llama3")
	if _, err := grouped.Without([]prune.Head{{Layer: "decoder.0.self", Number: 0}}); err == nil {
		t.Error("half of a group may go")
	}
}

// TestProbePadding compares confidence, a mean over queries, with that of each example alone: padding does
// not count as queries.
func TestProbePadding(t *testing.T) {
	m := loadProbe(t, "bert_words").Model()
	list := []probe.Example{
		{IDs: []int{5, 7}, Targets: []int{3, probe.Ignore}},
		{IDs: []int{2, 3, 5, 7, 11, 13, 17}, Targets: []int{3, -1, -1, -1, -1, -1, -1}},
	}
	confidence := func(list ...probe.Example) float64 {
		p, err := probe.New(m, list)
		if err != nil {
			t.Fatal(err)
		}
		scores, err := prune.Importance(context.Background(), p, prune.ImportanceOptions{Methods: []prune.Method{prune.Confidence}})
		if err != nil {
			t.Fatal(err)
		}
		return scores[0].Flat(p.Layers())[4]
	}
	got, want := confidence(list...), (2*confidence(list[0])+7*confidence(list[1]))/9
	if math.Abs(got-want) > 1e-6 {
		t.Errorf("confidence %v, want %v", got, want)
	}
}

// TestTextExample masks tokens of texts.
func TestTextExample(t *testing.T) {
	dir := copyDir(t, "../models/testdata/bert_words")
	data, err := os.ReadFile("../models/testdata/sentence_dense/tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "tokenizer.json"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	m, err := models.Load(dir, models.Options{Trainable: true})
	if err != nil {
		t.Fatal(err)
	}
	const mask = 4
	seen := map[string]bool{}
	for text, masks := range map[string]int{"cat": 1, "the cat sat on the mat in a sun": 1, "the cat sat on the mat in a sun .": 2} {
		e, err := m.Encode(text, "")
		if err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(29) {
			x, err1 := probe.TextExample(m, text, rand.New(rand.NewPCG(seed, 0)))
			again, err2 := probe.TextExample(m, text, rand.New(rand.NewPCG(seed, 0)))
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(x, again) {
				t.Error("the same seed gives other masks")
			}
			seen[fmt.Sprint(x.Targets)] = true
			n := 0
			for i, id := range x.IDs {
				switch {
				case x.Targets[i] == probe.Ignore && id == e.IDs[i]:
				case x.Targets[i] == e.IDs[i] && id == mask && !e.Special[i]:
					n++
				default:
					t.Errorf("%q: token %d is %d with target %d, want %d", text, i, id, x.Targets[i], e.IDs[i])
				}
			}
			if n != masks {
				t.Errorf("%q: %d masks, want %d", text, n, masks)
			}
		}
	}
	if len(seen) < 12 {
		t.Errorf("%d seeds give %d choices of masks", 3*29, len(seen))
	}
	for text, want := range map[string]string{
		"": "the text has no tokens, want one or more",
		"cat cat cat cat cat cat cat cat cat cat cat cat": "the text has more than 13 tokens, the limit of the model",
	} {
		if _, err := probe.TextExample(m, text, rand.New(rand.NewPCG(1, 1))); err == nil || err.Error() != want {
			t.Errorf("%q: error %v, want %s", text, err, want)
		}
	}
	if _, err := probe.LabelExample(m, "cat", "", "x"); err == nil {
		t.Error("a model of masked words has classes of texts")
	}
}

// A head for texts with no class, or with several, needs another loss and is rejected.
func TestLabelExampleWantsClasses(t *testing.T) {
	for _, c := range []struct {
		change map[string]any
		want   string // "" if it is taken
	}{
		{map[string]any{"problem_type": nil}, ""},
		{map[string]any{"problem_type": "single_label_classification"}, ""},
		{map[string]any{"problem_type": "multi_label_classification"}, `config.json: has problem_type "multi_label_classification" and 3 classes, want single_label_classification and two or more`},
		{map[string]any{"problem_type": "regression"}, `has problem_type "regression" and 3 classes`},
	} {
		dir := edit(t, "bert_text", c.change)
		tokenizer, err := os.ReadFile("../models/testdata/sentence_dense/tokenizer.json")
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "tokenizer.json"), string(tokenizer))
		m, err := models.Load(dir, models.Options{Trainable: true})
		if err != nil {
			t.Fatal(err)
		}
		_, err = probe.LabelExample(m, "cat", "", m.Head().Labels[1])
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v: error %v, want %q", c.change, err, c.want)
		}
	}
}
