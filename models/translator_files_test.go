package models

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/tensor"
)

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
		got, err := LoadTranslator(dir)
		if err != nil {
			t.Fatal(err)
		}
		if !got.Translator.Config.Equal(m.Translator.Config) {
			t.Errorf("config %+v, want %+v", got.Translator.Config, m.Translator.Config)
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

// TestSaveAndLoadAny draws configurations of every architecture, with any heads pruned. What is saved can be loaded. The
// approximate number of parameters, to which a file is compared before it is loaded, is near the actual number and never
// above it: otherwise, a model could be refused that attn has saved, or a small file could cause a large allocation.
func TestSaveAndLoadAny(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 2))
	scores := score.Kinds().Names()
	draws := 200
	if testing.Short() {
		draws = 20
	}
	for i := range draws {
		c := TranslatorConfig{
			Arch: translatorFamilies[i%len(translatorFamilies)].Type, Score: scores[rng.IntN(len(scores))],
			Heads: rng.IntN(5), Layers: 1 + rng.IntN(3),
		}
		c.Width = 2 * max(1, c.Heads) * (1 + rng.IntN(3))
		if c.Arch == Transformer {
			c.Heads, c.Hidden = max(1, c.Heads), 1+rng.IntN(9)
		}
		c.PrunedHeads = map[string][]int{}
		rate := []float64{0, 0.5, 1}[rng.IntN(3)]
		for _, layer := range c.layers() {
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
		c = m.Translator.Config

		dir, numbers := t.TempDir(), int64(0)
		for _, p := range m.Params() {
			numbers += int64(p.Len())
		}
		if n := c.params(); n > numbers || 5*n < numbers {
			t.Errorf("%+v: about %d parameters, have %d", c, n, numbers)
		}
		if err := m.Save(dir); err != nil {
			t.Fatal(err)
		}
		got, err := LoadTranslator(dir)
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		if !got.Translator.Config.Equal(c) {
			t.Errorf("config %+v, want %+v", got.Translator.Config, c)
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
	got, err := LoadTranslator(dir)
	if err != nil {
		t.Fatal(err)
	}
	sameParams(t, got, m)
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
		{"no vocabulary", m, sourceFile, remove, "", "no such file"},
		{"no vocabulary of the target", m, targetFile, remove, "", "no such file"},
		{"no weights", m, WeightsFile, remove, "", "no such file"},
		{"empty config", m, configFile, content(""), "", "is empty, want JSON"},
		{"config of nothing", m, configFile, content("null"), "", `arch ""`},
		{"config with a field too many", m, configFile, editing(`"width"`, `"depth": 3, "width"`), "", `unknown field "depth"`},
		{"config twice", m, configFile, editing("}", "}{}"), "", "something follows the JSON value"},
		{"width not divisible", m, configFile, editing(`"heads": 3`, `"heads": 5`), "", "width 12 is not divisible by 5 heads"},
		{"absurd width", m, configFile, editing(`"width": 12`, `"width": 3000000000`), "", "width 3000000000, want"},
		{"large width", m, configFile, editing(`"width": 12`, `"width": 6000`), WeightsFile, `tensor "source.weight" has shape [11 12], want [11 6000] for this config`},
		{"absurd hidden layer", m, configFile, editing(`"hidden": 10`, `"hidden": 1000000`), WeightsFile, "want [1000000 12] for this config"},
		{"absurd number of layers", m, configFile, editing(`"layers": 2`, `"layers": 1000`), WeightsFile, `tensor "encoder.2.self.q.weight" is missing`},
		{"absurd recurrent layers", gru, configFile, editing(`"layers": 1`, `"layers": 1000`), WeightsFile, `tensor "decoder.1.weight_hh" is missing`},
		{"another score", m, configFile, editing(`"scaled"`, `"additive"`), WeightsFile, `tensors "encoder.0.self.score.wq", `},
		{"a score less", gru, configFile, editing(`"additive"`, `"dot"`), WeightsFile, "are not read"},
		{"heads where there were none", gru, configFile, editing(`"heads": 0`, `"heads": 2`), WeightsFile, "are missing"},
		{"fewer heads than the file has", m, configFile, editing(`"target_vocab"`, `"pruned_heads": {"encoder.1.self": [1]}, "target_vocab"`), WeightsFile, `tensor "encoder.1.self.q.weight" has shape [12 12], want [8 12] for this config`},
		{"heads where there are none left", headless, configFile, editing(`"decoder.0.cross": [`, `"encoder.0.self": [`), WeightsFile, `tensor "decoder.0.cross.q.weight" has shape [0 1024], want [1024 1024] for this config`},
		{"a head pruned that never was", m, configFile, editing(`"target_vocab"`, `"pruned_heads": {"encoder.1.self": [3]}, "target_vocab"`), "", `pruned heads of layer "encoder.1.self": head 3, want 0 to 2`},
		{"another architecture", m, configFile, editing(`"transformer"`, `"gru"`), "", "a gru has no such layers"},
		{"vocabulary of another size", m, configFile, editing(`"source_vocab": 11`, `"source_vocab": 12`), "", "vocabularies of 12 and 11 entries, but source.json and target.json have 11 and 11"},
		{"vocabulary with a piece less", m, targetFile, content(`{"units": "char", "pieces": ["<pad>", "<bos>", "<eos>", "<unk>", "a", "b", "c", "d", "e", "f"]}`), configFile, "have 11 and 10"},
		{"vocabulary with a gap", m, targetFile, editing(`"g": `, `"h": 1`), "", `has id`},
		{"vocabulary that is none", m, sourceFile, content("[1, 2]"), "", "has an array where an object is wanted"},
		{"vocabulary of nothing", m, sourceFile, content("null"), "", `unknown units ""`},
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
		{"pieces in another order", m, sourceFile, func(t *testing.T, path string) {
			edit(t, path, `"a"`, `"?"`)
			edit(t, path, `"b"`, `"a"`)
			edit(t, path, `"?"`, `"b"`)
		}, "", "differs from the vocabulary with which the weights in model.safetensors were saved"},
		{"another vocabulary of the target", m, targetFile, editing(`"a"`, `"z"`), "", "differs from the vocabulary"},
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
			_, err := LoadTranslator(dir)
			runtime.ReadMemStats(&after)
			var bad *seq2seq.InputError
			if !errors.As(err, &bad) || bad.Name != filepath.Join(dir, c.blamed) || !strings.Contains(bad.Err.Error(), c.want) {
				t.Errorf("error %v, want an seq2seq.InputError of %s with %q", err, c.blamed, c.want)
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

// Load detects a translator and accepts float32 as its only weight format.
func TestLoadTakesTranslators(t *testing.T) {
	m, dir := newToy(t, toyConfigs()[0], toyPairs(9)), t.TempDir()
	if err := m.Save(dir); err != nil {
		t.Fatal(err)
	}
	for _, weights := range []tensor.Numbers{0, tensor.Float32} {
		got, err := Load(dir, Options{Weights: weights})
		if err != nil {
			t.Fatal(err)
		}
		sameParams(t, got, m)
		if len(got.Files()) != len(TranslatorFiles()) || got.Dir != dir {
			t.Errorf("files %v of %s", got.Files(), got.Dir)
		}
	}
	want := "contains a translator of attn train, whose weights are float32, not int8"
	if _, err := Load(dir, Options{Weights: tensor.Int8}); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
	if _, err := m.Tokenizer(); err == nil {
		t.Error("a translator has a tokenizer")
	}
}

// The config.json of a directory determines the kind of its model.
func TestIsTranslator(t *testing.T) {
	m, dir := newToy(t, toyConfigs()[0], toyPairs(9)), t.TempDir()
	if err := m.Save(dir); err != nil {
		t.Fatal(err)
	}
	broken := t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, configFile), []byte(`{"arch": `), 0o644); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]bool{dir: true, "testdata/bert": false, broken: false, t.TempDir(): false} {
		if IsTranslator(dir) != want {
			t.Errorf("%s is a translator: %v, want %v", dir, !want, want)
		}
	}
	const want = "testdata/bert: contains a pretrained model, want a translator of attn train"
	if _, err := LoadTranslator("testdata/bert"); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
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
