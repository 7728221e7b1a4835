package models

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/tensor"
)

// loaded loads a model with parameters.
func loaded(t *testing.T, dir string) *Model {
	t.Helper()
	m, err := Load(dir, Options{Trainable: true})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// configOf returns the configuration of a translator.
func configOf(t *testing.T, m *Model) TranslatorConfig {
	t.Helper()
	c, ok := m.TranslatorConfig()
	if !ok {
		t.Fatalf("a %s is no translator of attn train", m.Family.Name)
	}
	return c
}

// layersOf returns the names of the multi-head layers of a configuration without pruned heads.
func layersOf(t *testing.T, c TranslatorConfig) (names []string) {
	t.Helper()
	c.PrunedHeads = nil
	for _, l := range newToy(t, c, toyPairs(9)).Attention() {
		names = append(names, l.Config().Name)
	}
	return names
}

func TestSaveAndLoad(t *testing.T) {
	pairs := toyPairs(30)
	texts := []string{"", "ab", "gfedcba gfedcba", "zz unknown Zeichen 漢字"}
	for i, c := range toyConfigs() {
		if testing.Short() && i%3 > 0 {
			continue
		}
		m := newToy(t, c, pairs)
		dir := filepath.Join(t.TempDir(), "not yet", "there")
		if err := m.Save(dir); err != nil {
			t.Fatal(err)
		}
		got := loaded(t, dir)
		if of, want := configOf(t, got), configOf(t, m); !of.Equal(want) {
			t.Errorf("config %+v, want %+v", of, want)
		}
		sameParams(t, got, m)
		for _, d := range []int{1, 3} {
			if got, want := translate(t, got, d, texts...), translate(t, m, d, texts...); !slices.Equal(got, want) {
				t.Errorf("%s: loaded, it writes %q, want %q", c.name(), got, want)
			}
		}
		if files := contents(t, dir); len(files) != 4 {
			t.Errorf("%d files, want 4", len(files))
		}
	}
}

// TestSaveAndLoadAny draws configurations of every architecture, with any heads pruned. What is saved can be loaded, and
// the number of parameters that limits a new network is exact.
func TestSaveAndLoadAny(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 2))
	scores := score.Kinds().Names()
	draws := 200
	if testing.Short() {
		draws = 20
	}
	for i := range draws {
		c := TranslatorConfig{
			Arch: []string{Transformer, GRU}[i%2], Score: scores[rng.IntN(len(scores))],
			Heads: rng.IntN(5), Layers: 1 + rng.IntN(3),
		}
		c.Width = 2 * max(1, c.Heads) * (1 + rng.IntN(3))
		if c.Arch == Transformer {
			c.Heads, c.Hidden = max(1, c.Heads), 1+rng.IntN(9)
		}
		c.PrunedHeads = map[string][]int{}
		rate := []float64{0, 0.5, 1}[rng.IntN(3)]
		for _, layer := range layersOf(t, c) {
			for h := range c.Heads {
				if rng.Float64() < rate {
					c.PrunedHeads[layer] = append(c.PrunedHeads[layer], h)
				}
			}
		}
		letters := make([]rune, 1+rng.IntN([]int{3, 2000}[rng.IntN(2)]))
		for i := range letters {
			letters[i] = 'א' + rune(i)
		}
		m := newToy(t, c, []seq2seq.Pair{{Source: string(letters), Target: "ab"}})
		c = configOf(t, m)

		dir := t.TempDir()
		if _, b, err := c.build(nil); err != nil || b.size != nn.Count(m) {
			t.Errorf("%+v: %d parameters, have %d, %v", c, b.size, nn.Count(m), err)
		}
		if err := m.Save(dir); err != nil {
			t.Fatal(err)
		}
		got := loaded(t, dir)
		if of := configOf(t, got); !of.Equal(c) {
			t.Errorf("config %+v, want %+v", of, c)
		}
		sameParams(t, got, m)
	}
}

// Weights from other programs have no metadata about the config.
func TestLoadForeignWeights(t *testing.T) {
	m := newToy(t, toyConfigs()[0], toyPairs(30))
	dir := t.TempDir()
	if err := m.Save(dir); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, WeightsFile)
	f, err := safetensors.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	f.Metadata = nil
	if err := f.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	sameParams(t, loaded(t, dir), m)
}

func TestNewRefuses(t *testing.T) {
	v := seq2seq.BuildVocabulary([]string{"abc"}, seq2seq.Chars, 0)
	_, err := NewTranslator(TranslatorConfig{Arch: GRU, Score: "dot", Width: 5, Layers: 1}, v, v, rand.New(rand.NewPCG(1, 2)))
	if err == nil || !strings.HasPrefix(err.Error(), "models: width 5") {
		t.Errorf("error %v, want one about the width", err)
	}
}

// edit replaces text in a file.
func edit(t *testing.T, path, old, new string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), old) {
		t.Fatalf("%s does not have %s", path, old)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(data), old, new, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestLoadRefuses corrupts one part of a directory at a time. The error names the file, and memory of the
// claimed size is not allocated.
func TestLoadRefuses(t *testing.T) {
	pairs := toyPairs(30)
	c := TranslatorConfig{Arch: Transformer, Score: "scaled", Width: 12, Heads: 3, Layers: 2, Hidden: 10}
	m := newToy(t, c, pairs)
	gru := newToy(t, TranslatorConfig{Arch: GRU, Score: "additive", Width: 12, Layers: 1}, pairs)
	// Of a network without heads, little is in the file, however wide it is.
	headless := newToy(t, TranslatorConfig{
		Arch: Transformer, Score: "bilinear", Width: 1024, Heads: 1, Layers: 1, Hidden: 1,
		PrunedHeads: map[string][]int{"encoder.0.self": {0}, "decoder.0.self": {0}, "decoder.0.cross": {0}},
	}, pairs)

	less, err := json.Marshal(seq2seq.BuildVocabulary([]string{"abcdef"}, seq2seq.Chars, 0))
	if err != nil {
		t.Fatal(err)
	}
	rewrite := func(f func(*safetensors.File)) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			file, err := safetensors.Read(path)
			if err != nil {
				t.Fatal(err)
			}
			f(file)
			if err := file.WriteFile(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	editing := func(old, new string) func(*testing.T, string) {
		return func(t *testing.T, path string) { edit(t, path, old, new) }
	}
	remove := func(t *testing.T, path string) {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	content := func(text string) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		name   string
		model  *Model
		file   string // that is spoilt
		spoil  func(*testing.T, string)
		blamed string // the file in the error, if it is another
		want   string
	}{
		{"no config", m, configFile, remove, ".", "has no config.json, so it is not the directory of a model"},
		{"no vocabulary", m, tokenizerFile, remove, ".", "has no tokenizer.json"},
		{"no vocabulary of the target", m, targetFile, editing(`"model": {`, `"modell": {`), "", "modell"},
		{"no weights", m, WeightsFile, remove, ".", "has no model.safetensors"},
		{"empty config", m, configFile, content(""), "", "is empty, want JSON"},
		{"config of nothing", m, configFile, content("null"), "", "has no model_type"},
		{"config without a type", m, configFile, editing(`"model_type": "attn-transformer"`, `"arch": "transformer"`), "", "has no model_type"},
		{"config with a field too many", m, configFile, editing(`"width"`, `"depth": 3, "width"`), "", "setting depth = 3 is not known for model_type attn-transformer"},
		{"config twice", m, configFile, editing("}", "}{}"), "", "something follows the JSON value"},
		{"width not divisible", m, configFile, editing(`"heads": 3`, `"heads": 5`), "", "width 12 is not divisible by 5 heads"},
		{"absurd width", m, configFile, editing(`"width": 12`, `"width": 3000000000`), "", "width 3000000000, want an even number"},
		{"large width", m, configFile, editing(`"width": 12`, `"width": 6000`), WeightsFile, `"source.weight" has shape [11 12], want [11 6000]`},
		{"absurd hidden layer", m, configFile, editing(`"hidden": 10`, `"hidden": 1000000`), WeightsFile, "want [1000000 12]"},
		{"absurd number of layers", m, configFile, editing(`"layers": 2`, `"layers": 1000`), "", "layers is 1000, but the file has 90 tensors"},
		{"absurd recurrent layers", gru, configFile, editing(`"layers": 1`, `"layers": 1000`), "", "layers is 1000, but the file has 21 tensors"},
		{"another score", m, configFile, editing(`"scaled"`, `"additive"`), WeightsFile, `tensors "encoder.0.self.score.wq", `},
		{"a score less", gru, configFile, editing(`"additive"`, `"dot"`), WeightsFile, "are not read"},
		{"heads where there were none", gru, configFile, editing(`"heads": 0`, `"heads": 2`), WeightsFile, "are missing"},
		{"fewer heads than the file has", m, configFile, editing(`"target_vocab"`, `"pruned_heads": {"encoder.1.self": [1]}, "target_vocab"`), WeightsFile, `"encoder.1.self.q.weight" has shape [12 12], want [8 12]`},
		{"heads where there are none left", headless, configFile, editing(`"decoder.0.cross": [`, `"encoder.0.self": [`), WeightsFile, `"decoder.0.cross.q.weight" has shape [0 1024], want [1024 1024]`},
		{"a head pruned that never was", m, configFile, editing(`"target_vocab"`, `"pruned_heads": {"encoder.1.self": [3]}, "target_vocab"`), "", `pruned_heads of layer encoder.1.self is [3], want numbers from 0 to 2, each once`},
		{"another architecture", m, configFile, editing(`"attn-transformer"`, `"attn-gru"`), "", "a gru has no such layers"},
		{"vocabulary of another size", m, configFile, editing(`"source_vocab": 11`, `"source_vocab": 12`), WeightsFile, `"source.weight" has shape [11 12], want [12 12]`},
		{"vocabulary with a piece less", m, targetFile, content(string(less)), configFile, "have 11 and 10"},
		{"vocabulary that is none", m, tokenizerFile, content("[1, 2]"), "", "has an array where an object is wanted"},
		{"vocabulary of nothing", m, tokenizerFile, content("null"), "", `version`},
		{"truncated weights", m, WeightsFile, func(t *testing.T, path string) {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(path, info.Size()-1); err != nil {
				t.Fatal(err)
			}
		}, "", "bytes of data, want"},
		{"weights of one byte", m, WeightsFile, content("x"), "", "file has 1 bytes"},
		{"weights that are a zip", m, WeightsFile, content("PK\x03\x04 and so on"), "", "zip archive"},
		{"a shape that does not fit", m, WeightsFile, editing(`"shape":[10,12]`, `"shape":[12,10]`), "", `"decoder.0.ff.in.weight" has shape [12 10], want [10 12]`},
		{"a tensor missing", m, WeightsFile, rewrite(func(f *safetensors.File) { f.Tensors = f.Tensors[1:] }), "", `tensor "decoder.0.cross.k.bias" is missing`},
		{"a tensor too many", m, WeightsFile, rewrite(func(f *safetensors.File) {
			f.Tensors = append(f.Tensors, safetensors.FromFloat32s("extra", []int{1}, []float32{0}))
		}), "", `tensor "extra" is not read`},
		// What changes no shape, but all results.
		{"other heads", m, configFile, editing(`"heads": 3`, `"heads": 2`), "", "heads 2, but the weights in model.safetensors are of a network with heads 3"},
		{"a score with the same weights", m, configFile, editing(`"scaled"`, `"dot"`), "", `score "dot", but the weights in model.safetensors are of a network with score "scaled"`},
		{"pieces in another order", m, tokenizerFile, func(t *testing.T, path string) {
			edit(t, path, `"a"`, `"?"`)
			edit(t, path, `"b"`, `"a"`)
			edit(t, path, `"?"`, `"b"`)
		}, "", "differs from the tokenizer with which the weights in model.safetensors were saved"},
		{"another vocabulary of the target", m, targetFile, editing(`"a"`, `"z"`), "", "differs from the tokenizer"},
		{"a config that is none", m, WeightsFile, rewrite(func(f *safetensors.File) { f.Metadata[configKey] = "{" }), "", "its metadata contain no config"},
		{"a tensor of integers", m, WeightsFile, rewrite(func(f *safetensors.File) {
			t := f.Lookup("decoder.norm.bias")
			*t = safetensors.Tensor{Name: t.Name, DType: safetensors.I32, Shape: t.Shape, Data: t.Data}
		}), "", `tensor "decoder.norm.bias": dtype is I32`},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := c.model.Save(dir); err != nil {
				t.Fatal(err)
			}
			c.spoil(t, filepath.Join(dir, c.file))
			if c.blamed == "" {
				c.blamed = c.file
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Load(dir, Options{Trainable: true})
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), ": "+filepath.Join(dir, c.blamed)+": ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one of %s with %q", err, c.blamed, c.want)
			}
			if err != nil && strings.ContainsAny(err.Error(), "\n") {
				t.Errorf("the error has more than one line: %q", err)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
				t.Errorf("%d bytes allocated to find that out", n)
			}
		})
	}
}

func TestNewWithoutVocabulary(t *testing.T) {
	_, err := NewTranslator(TranslatorConfig{}, nil, nil, nil)
	if want := "models: NewTranslator: a vocabulary or rng is nil, want both vocabularies and a *rand.Rand"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// A translator is loaded like every other family: packed, in any format, or with parameters.
func TestLoadPackedTranslator(t *testing.T) {
	for _, c := range toyConfigs() {
		m, dir := newToy(t, c, toyPairs(9)), t.TempDir()
		if err := m.Save(dir); err != nil {
			t.Fatal(err)
		}
		for _, weights := range append(tensor.Formats(), 0) {
			got, err := Load(dir, Options{Format: weights})
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Files()) != len(TranslatorFiles()) || got.Dir != dir {
				t.Errorf("files %v of %s", got.Files(), got.Dir)
			}
			x := Batch{IDs: [][]int{{4, 5, 6, 2}}, Targets: [][]int{{1, 4, 5}}}
			y, want := got.Hidden(nil, x, Run{}), m.Hidden(nil, x, Run{})
			if exact := weights == 0 || weights == tensor.Float32; exact && !slices.Equal(y.Data(), want.Data()) {
				t.Errorf("%s: packed as %v, the states differ", c.name(), weights)
			} else if far := largestDifference(y.Data(), want.Data()); far > 0.2 || !exact && far == 0 {
				t.Errorf("%s: packed as %v, the states differ by %v", c.name(), weights, far)
			}
		}
	}
}

func largestDifference(x, y []float32) (far float64) {
	for i, v := range x {
		far = max(far, math.Abs(float64(v-y[i])))
	}
	return far
}

// Targets that continue a state of a recurrent network must have equal lengths, and there must be one for
// each sequence.
func TestRecurrentState(t *testing.T) {
	m := newToy(t, TranslatorConfig{Arch: GRU, Score: "dot", Width: 12, Layers: 1}, toyBatch)
	for want, targets := range map[string][][]int{
		"targets is of different lengths": {{seq2seq.BOS}, {seq2seq.BOS, seq2seq.EOS}},
		"targets is 1 sequences":          {{seq2seq.BOS}},
	} {
		r := newReader(t, m, [][]int{{4, 5}, {6}})
		err := tensor.Catch(func() { r.read(targets, Run{}) })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	r := newReader(t, m, [][]int{{4, 5}, {6}})
	r.read([][]int{{seq2seq.BOS, 5}, {seq2seq.BOS, 6}}, Run{})
	if got := r.state.Lens(); !slices.Equal(got, []int{2, 2}) {
		t.Errorf("%v tokens are read, want 2 of each", got)
	}
}
