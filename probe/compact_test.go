package probe_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/observe"
	"github.com/attn-go/attn/probe"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/statedict"
	"github.com/attn-go/attn/tensor"
)

// compactable are directories of every family whose layers can have fewer heads.
var compactable = []string{
	"bert_words", "bert_text", "roberta_words", "xlm_roberta_words", "camembert_words", "distilbert_words", "decoders/gpt2", "decoders/llama3",
	"decoders/llama_biases", "decoders/mistral", "decoders/qwen2", "decoders/qwen3_bias", "decoders/gemma", "decoders/gemma2", "decoders/gemma3",
	"decoders/gemma3_multimodal", "decoders/granite", "decoders/phi3_part", "decoders/smollm3", "decoders/starcoder2",
	"decoders/mixtral", "decoders/qwen3_moe", "decoders/ministral3", "decoders/mistral3", "eurobert_words", "decoders/qwen3_5",
	"decoders/qwen3_5_multimodal", "decoders/falcon_h1",
}

// removals select the heads to remove: of one layer only, so that layers differ; the same number of each
// layer; all of the first layer and some of the last.
var removals = map[string]func(layer, layers, groups int) []int{
	"uneven": func(layer, layers, groups int) []int {
		if layer == layers-1 {
			return []int{groups - 1}
		}
		return nil
	},
	"even": func(_, _, groups int) []int { return []int{groups / 2} },
	"empty": func(layer, layers, groups int) []int {
		switch layer {
		case 0:
			return slices.Collect(func(yield func(int) bool) {
				for g := range groups {
					if !yield(g) {
						return
					}
				}
			})
		case layers - 1:
			return []int{0}
		}
		return nil
	},
}

// gone returns the heads of a removal. A group shares keys and values.
func gone(layers []attn.LayerHeads, removal func(layer, layers, groups int) []int) (list []prune.Head) {
	for i, l := range layers {
		if l.Heads == 0 {
			continue
		}
		for _, g := range removal(i, len(layers), l.Heads/l.Group) {
			for h := range l.Group {
				list = append(list, prune.Head{Layer: l.Name, Number: g*l.Group + h})
			}
		}
	}
	return list
}

// writeCompact writes the compact form of a pruned model, and loads it.
func writeCompact(t *testing.T, p *probe.Probe, dir string, o models.Options) (*models.Compact, *models.Model) {
	t.Helper()
	c, err := p.Compact()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), c.Config, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Write(filepath.Join(dir, "model.safetensors"), c.Write); err != nil {
		t.Fatal(err)
	}
	m, err := models.Load(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return c, m
}

func without(t *testing.T, p *probe.Probe, list []prune.Head) *probe.Probe {
	t.Helper()
	less, err := p.Without(list)
	if err != nil {
		t.Fatal(err)
	}
	return less
}

// TestCompact writes models without some heads, loads them, and compares predictions with those of the model
// with gates of 0 for these heads. If ATTN_PRUNED_CASES names a folder, the directories are kept there for
// testdata/pruned_check.py.
func TestCompact(t *testing.T) {
	families := map[string]bool{}
	for _, f := range models.Families() {
		if f.Pruning != models.NoPruning {
			families[f.Type] = true
		}
	}
	for _, name := range fewer(compactable) {
		p := loadProbe(t, name)
		m := p.Model()
		delete(families, m.Family.Type)
		for kind, removal := range removals {
			at := fmt.Sprintf("%s %s", name, kind)
			list := gone(p.Layers(), removal)
			if kind == "even" && len(list) == p.Model().Sizes().Layers*p.Model().Sizes().Heads {
				continue // all heads share their keys and values
			}
			less := without(t, p, list)
			dir := t.TempDir()
			if folder := os.Getenv("ATTN_PRUNED_CASES"); folder != "" && !m.Settings.Has("vision_config") { // whose tensors the file lacks
				dir = filepath.Join(folder, strings.ReplaceAll(filepath.Base(name)+"-"+kind, "/", "-"))
				if err := os.MkdirAll(dir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if left := less.Layers()[0]; left.Heads == 0 && left.Signed {
				if _, err := less.Compact(); err == nil || !strings.Contains(err.Error(), "want at least one") {
					t.Errorf("%s: error %v, want that heads with a state cannot all be removed", at, err)
				}
				continue
			}
			compact, small := writeCompact(t, less, dir, models.Options{Trainable: true})
			uniform := m.Family.Pruning == models.HeadCounts && equal(less.Layers())
			if got := strings.Contains(string(compact.Config), `"pruned_heads"`); got == uniform {
				t.Errorf("%s: pruned_heads in config.json is %v", at, got)
			}
			checkSmaller(t, at, less, small, uniform)
			again, err := p.Of(small)
			if err != nil {
				t.Fatal(err)
			}
			reference, err := probe.NewReference(context.Background(), less)
			if err != nil {
				t.Fatal(err)
			}
			if largest, scale, err := reference.Difference(context.Background(), again); err != nil || !(largest <= 3e-6*max(1, scale)) {
				t.Errorf("%s: outputs differ by %v of %v (%v)", at, largest, scale, err)
			}
			checkWeights(t, at, m, small, less.Kept())
			cut, err := m.Keep(less.Kept()) // in memory
			if err != nil {
				t.Fatal(err)
			}
			written := maps.Collect(small.Params())
			for name, p := range cut.Params() {
				if w := written[name]; w == nil || !slices.Equal(w.Shape(), p.Shape()) || !slices.Equal(w.Data(), p.Data()) {
					t.Errorf("%s: %s differs in the file", at, name)
				}
				delete(written, name)
			}
			if len(written) > 0 {
				t.Errorf("%s: %d tensors of the file are missing", at, len(written))
			}
			x := models.Batch{IDs: [][]int{{1, 5, 7, 2, 3, 11, 13}}}
			logits := func(m *models.Model) *tensor.Tensor { return m.Head().Logits(nil, m.Hidden(nil, x, models.Run{})) }
			got := logits(small)
			if slices.Equal(got.Data(), logits(m).Data()) {
				t.Errorf("%s: the heads do not matter", at)
			}
			packed, err := models.Load(dir, models.Options{})
			if err != nil {
				t.Fatal(err)
			}
			near(t, at+" packed", logits(packed), got)
			note(t, dir, m, list, p.Layers(), x, got)
		}
	}
	delete(families, "attn-transformer") // TestKeepIsMaskedIsGates
	delete(families, "attn-gru")
	if len(families) > 0 && !testing.Short() {
		t.Errorf("not tested: %v", slices.Collect(maps.Keys(families)))
	}
}

func near(t *testing.T, what string, got, want *tensor.Tensor) {
	t.Helper()
	for i, v := range want.Data() {
		if d := math.Abs(float64(v - got.Data()[i])); !(d <= 3e-6*max(1, math.Abs(float64(v)))) {
			t.Errorf("%s: logit %d is %v, want %v", what, i, got.Data()[i], v)
			return
		}
	}
}

// equal reports whether all layers with a softmax have equally many heads, and all others as well.
func equal(layers []attn.LayerHeads) bool {
	heads := map[bool]int{}
	for _, l := range layers {
		if n, ok := heads[l.Signed]; ok && n != l.Heads || l.Heads == 0 {
			return false
		}
		heads[l.Signed] = l.Heads
	}
	return true
}

// checkSmaller compares the layers of a compact model with the remaining heads.
func checkSmaller(t *testing.T, at string, less *probe.Probe, small *models.Model, renumbered bool) {
	t.Helper()
	left := less.Layers()
	for i, got := range small.HeadLayers() {
		if want := left[i]; got.Heads != want.Heads || got.KeyHeads != want.KeyHeads || !slices.Equal(got.Out.Weight.Data(), want.Out.Weight.Data()) {
			t.Errorf("%s: layer %s has %d heads and %d of keys, want %d and %d, and their columns", at, got.Name, got.Heads, got.KeyHeads, want.Heads, want.KeyHeads)
		}
		if numbers := small.HeadNumbers(got.Name); !renumbered && !slices.Equal(numbers, less.Kept()[got.Name]) {
			t.Errorf("%s: heads of layer %s are %v, want %v", at, got.Name, numbers, less.Kept()[got.Name])
		}
	}
	if n, want := nn.Count(small), less.Parameters(); n != want || n >= nn.Count(less.Model()) {
		t.Errorf("%s: %d parameters, want %d, less than %d", at, n, want, nn.Count(less.Model()))
	}
}

// checkWeights compares the attention weights of the first layer with heads with those of the unpruned model.
// No heads are removed before that layer, so the bits are the same.
func checkWeights(t *testing.T, at string, whole, small *models.Model, kept map[string][]int) {
	t.Helper()
	x := models.Batch{IDs: [][]int{{1, 5, 7, 2, 3, 11, 13}}}
	first := whole.HeadLayers()[0].Name
	observed := func(m *models.Model) (all *tensor.Tensor) {
		m.Hidden(nil, x, models.Run{Observers: []attn.Observer{observe.Weights(func(layer string, w *tensor.Tensor) {
			if layer == first {
				all = w.Clone()
			}
		})}})
		return all
	}
	if len(kept[first]) == 0 {
		return
	}
	want := tensor.Gather(nil, tensor.Reshape(nil, observed(whole), whole.HeadLayers()[0].Heads, 7*7), kept[first])
	if got := observed(small); !slices.Equal(got.Data(), want.Data()) {
		t.Errorf("%s: the attention weights of the first layer are not those of the heads that are left", at)
	}
}

// TestCompactAgain prunes a pruned model. The numbers of heads in config.json are those of the model with
// all heads. Families with HeadCounts need none if all layers have the same number of heads again.
func TestCompactAgain(t *testing.T) {
	for _, name := range []string{"bert_words", "decoders/gpt2", "decoders/llama3"} {
		p := loadProbe(t, name)
		layers := p.Layers()
		first := gone(layers, removals["uneven"])
		_, once := writeCompact(t, without(t, p, first), t.TempDir(), models.Options{Trainable: true})
		q, err := p.Of(once)
		if err != nil {
			t.Fatal(err)
		}
		// Of each other layer, its last head or group.
		second := gone(layers[:len(layers)-1], func(_, _, groups int) []int { return []int{groups - 1} })
		c, twice := writeCompact(t, without(t, q, second), t.TempDir(), models.Options{Trainable: true})
		want := without(t, p, append(slices.Clone(first), second...))
		for _, l := range twice.Attention() {
			numbers := want.Kept()[l.Config().Name]
			if twice.Family.Pruning == models.HeadCounts { // of which all layers have lost one group
				numbers = []int{0, 1}
			}
			if got := twice.HeadNumbers(l.Config().Name); !slices.Equal(got, numbers) {
				t.Errorf("%s: layer %s has heads %v, want %v", name, l.Config().Name, got, numbers)
			}
		}
		if got := strings.Contains(string(c.Config), "pruned_heads"); got != (twice.Family.Pruning == models.PrunedHeads) {
			t.Errorf("%s: pruned_heads in config.json is %v:\n%s", name, got, c.Config)
		}
		last, err := p.Of(twice)
		if err != nil {
			t.Fatal(err)
		}
		reference, err := probe.NewReference(context.Background(), want)
		if err != nil {
			t.Fatal(err)
		}
		if largest, scale, err := reference.Difference(context.Background(), last); err != nil || !(largest <= 3e-6*max(1, scale)) {
			t.Errorf("%s: outputs differ by %v of %v (%v)", name, largest, scale, err)
		}
	}
}

// Mamba-2 with one group of heads that share queries and keys loses single heads, unless a norm spans them all.
func TestCompactOneGroup(t *testing.T) {
	for _, name := range []string{"decoders/falcon_h1", "decoders/falcon_h1_norm"} {
		p := loadProbe(t, name)
		even := gone(p.Layers(), removals["even"])
		_, once := writeCompact(t, without(t, p, even), t.TempDir(), models.Options{Trainable: true})
		q, err := p.Of(once)
		if err != nil {
			t.Fatal(err)
		}
		less := without(t, q, []prune.Head{{Layer: "decoder.1.mamba", Number: 1}})
		if name == "decoders/falcon_h1_norm" {
			if _, err := less.Compact(); err == nil || !strings.Contains(err.Error(), "norm over all heads") {
				t.Errorf("%s: error %v, want that of a norm over all heads", name, err)
			}
			continue
		}
		c, twice := writeCompact(t, less, t.TempDir(), models.Options{Trainable: true})
		if text := string(c.Config); !strings.Contains(text, `"decoder.1.mamba"`) {
			t.Errorf("%s: config.json does not say which head is missing:\n%s", name, text)
		}
		if got := twice.HeadNumbers("decoder.1.mamba"); !slices.Equal(got, []int{0, 2}) {
			t.Errorf("%s: heads %v are left, want 0 and 2", name, got)
		}
		reference, err := probe.NewReference(context.Background(), less)
		if err != nil {
			t.Fatal(err)
		}
		last, err := p.Of(twice)
		if err != nil {
			t.Fatal(err)
		}
		if largest, scale, err := reference.Difference(context.Background(), last); err != nil || !(largest <= 3e-6*max(1, scale)) {
			t.Errorf("%s: outputs differ by %v of %v (%v)", name, largest, scale, err)
		}
	}
}

// TestCompactSaved saves the parameters as after training, but without training.
func TestCompactSaved(t *testing.T) {
	for _, name := range []string{"bert_pruned", "gpt2_pruned", "distilbert_pruned"} {
		m, err := models.Load(filepath.Join(testdata, name), models.Options{Trainable: true})
		if err != nil {
			t.Fatal(err)
		}
		dir := copyDir(t, m.Dir)
		for _, x := range m.Params() {
			for i := range x.Data() {
				x.Data()[i] *= 1.5
			}
		}
		if err := statedict.Save(filepath.Join(dir, "model.safetensors"), m, statedict.SaveOptions{Names: models.StateDict}); err != nil {
			t.Fatal(err)
		}
		again, err := models.Load(dir, models.Options{Trainable: true})
		if err != nil {
			t.Fatal(err)
		}
		x := models.Batch{IDs: [][]int{{1, 5, 7, 2, 3, 11, 13}}}
		want, got := m.Head().Logits(nil, m.Hidden(nil, x, models.Run{})), again.Head().Logits(nil, again.Hidden(nil, x, models.Run{}))
		if !slices.Equal(want.Data(), got.Data()) {
			t.Errorf("%s: logits have changed", name)
		}
	}
}

// TestCompactGenerates compares the tokens that a compact decoder generates with a KV cache with those of the
// model with gates of 0. A layer without heads also has a cache.
func TestCompactGenerates(t *testing.T) {
	for _, name := range []string{"decoders/llama3", "decoders/gemma2", "decoders/gpt2", "decoders/qwen3_5", "decoders/falcon_h1"} {
		for kind, removal := range removals {
			p := loadProbe(t, name)
			if kind == "empty" && p.Layers()[0].Signed { // of which one head must stay
				continue
			}
			less := without(t, p, gone(p.Layers(), removal))
			_, small := writeCompact(t, less, t.TempDir(), models.Options{})
			prompt := []int{3, 1, 4, 1, 5}
			want, err := less.Write(context.Background(), [][]int{prompt}, models.Generation{Tokens: 20, Ends: []int{}})
			if err != nil {
				t.Fatal(err)
			}
			tokens, err := small.Generate(t.Context(), prompt, models.Generation{Tokens: 20, Ends: []int{}})
			if err != nil {
				t.Fatal(err)
			}
			if got := slices.Collect(tokens); !slices.Equal(got, want[0]) {
				t.Errorf("%s %s: writes %v, want %v", name, kind, got, want)
			}
		}
	}
}

// In the record of a pruned model, heads and shared key/value heads keep their numbers from the unpruned
// model.
func TestCompactRecord(t *testing.T) {
	p := loadProbe(t, "decoders/llama3") // two groups of two heads
	name := p.Layers()[0].Name
	dir := t.TempDir()
	writeCompact(t, without(t, p, []prune.Head{{Layer: name, Number: 0}, {Layer: name, Number: 1}}), dir, models.Options{Trainable: true})
	if err := os.WriteFile(filepath.Join(dir, "tokenizer.json"), []byte(`{"version": "1.0", "pre_tokenizer": {"type": "WhitespaceSplit"},
		"model": {"type": "WordLevel", "vocab": {"w0": 0, "w1": 1, "w2": 2}, "unk_token": "w0"}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	m, err := models.Load(dir, models.Options{Trainable: true})
	if err != nil {
		t.Fatal(err)
	}
	all, err := probe.RecordTexts(t.Context(), m, "w1 w2 w1", "", heads.RecorderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	last, err := probe.RecordTexts(t.Context(), m, "w1 w2 w1", "", heads.RecorderOptions{Heads: func(_ string, head int) bool { return head == 1 }})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		layer         heads.Layer
		numbers, keys []int
	}{
		{all.Layers[0], []int{2, 3}, []int{1, 1}}, {all.Layers[1], nil, []int{0, 0, 1, 1}},
		{last.Layers[0], []int{3}, []int{1}}, {last.Layers[1], []int{1}, []int{0}},
	} {
		if !slices.Equal(want.layer.Chosen, want.numbers) || !slices.Equal(want.layer.KeyHeads, want.keys) {
			t.Errorf("layer %d has heads %v that share %v, want %v and %v", i, want.layer.Chosen, want.layer.KeyHeads, want.numbers, want.keys)
		}
	}
}

// TestProbeNetwork compares the network of the remaining heads with the model with gates of 0 for the removed
// heads.
func TestProbeNetwork(t *testing.T) {
	for _, name := range []string{"bert_words", "decoders/gemma2"} {
		p := loadProbe(t, name)
		list := gone(p.Layers(), removals["uneven"])
		less := without(t, p, list)
		n, err := less.Network()
		if err != nil {
			t.Fatal(err)
		}
		gates := func(layer string) *tensor.Tensor {
			for _, c := range p.Layers() {
				if c.Name == layer {
					g := tensor.Full(1, c.Heads)
					for _, h := range list {
						if h.Layer == layer {
							g.Data()[h.Number] = 0
						}
					}
					return g
				}
			}
			return nil
		}
		x := models.Batch{IDs: [][]int{{1, 5, 7, 2, 3, 11, 13}}}
		near(t, name, n.Hidden(nil, x, models.Run{}), p.Model().Hidden(nil, x, models.Run{Gates: gates}))
		if whole := nn.Count(p.Model()); less.Parameters() >= whole || p.Parameters() != whole {
			t.Errorf("%s: %d of %d parameters", name, less.Parameters(), whole)
		}
	}
	for _, name := range []string{"mpnet_words", "deberta_words", "seq2seq/t5"} {
		p := loadProbe(t, name)
		less := without(t, p, gone(p.Layers(), removals["uneven"]))
		if _, err := less.Network(); err == nil || less.Parameters() != nn.Count(p.Model()) {
			t.Errorf("%s: has fewer heads or parameters", name)
		}
		if _, err := less.Compact(); err == nil || !strings.Contains(err.Error(), "cannot have fewer heads") {
			t.Errorf("%s: error %v, want that it cannot have fewer heads", name, err)
		}
	}
}
