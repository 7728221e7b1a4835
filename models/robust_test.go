package models_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/tensor"
)

// anyValues are the values that tests give to a setting; absent removes it. The first two have types that no setting
// has: if both are accepted, the setting is not read, and the others are not tried.
var anyValues = []any{
	map[string]any{"0": 1.5}, []any{true},
	absent{}, nil, true, false, -1, 0, 1, 2, 3, 7, 15, 33, 1 << 24, int64(1 << 40), json.RawMessage("1" + strings.Repeat("0", 400)),
	0.5, -0.25, json.RawMessage("-0.0"), 1e-40, 1e-300, 1e30, 1e300, -1e300, "", "NaN", []any{}, []int{1, 2, 3, 4, 5},
}

type absent struct{}

func is(v any) bool { _, ok := v.(absent); return ok }

// changed calls f for each value of each setting in a JSON file, including those in objects, with the path of the
// setting. The file has the value while f runs; f reports whether it was accepted. Each setting gets the values that the
// function values returns for it.
func changed(t *testing.T, file string, values func(path []string) []any, f func(path []string, value any) bool) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	data = bytes.ReplaceAll(data, []byte(" Infinity"), []byte(` "Infinity"`)) // which Python writes, and Go refuses
	var all any
	decode := json.NewDecoder(bytes.NewReader(data))
	decode.UseNumber()
	if err := decode.Decode(&all); err != nil {
		t.Fatal(err)
	}
	var visit func(path []string, within any)
	visit = func(path []string, within any) {
		settings, _ := within.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(settings)) {
			was, path := settings[key], append(slices.Clip(path), key)
			visit(path, was)
			accepted := 0
			for i, v := range values(path) {
				if settings[key] = v; is(v) {
					delete(settings, key)
				}
				text, err := json.Marshal(all)
				if err != nil {
					t.Fatal(err)
				}
				write(t, file, string(text))
				if f(path, v) {
					accepted++
				}
				if i == 1 && accepted == 2 {
					break
				}
			}
			settings[key] = was
		}
	}
	visit(nil, all)
	write(t, file, string(data))
}

// allValues returns all values for every setting.
func allValues([]string) []any { return anyValues }

// fifths returns all values for a setting that it is called with first, and then each time another fifth of them, after
// the two that find out whether the setting is read: most families read it with the same code.
func fifths() func(path []string) []any {
	times := map[string]int{}
	return func(path []string) []any {
		key := strings.Join(path, ".")
		n := times[key]
		if times[key]++; n == 0 {
			return anyValues
		}
		list := slices.Clone(anyValues[:2])
		for i := 2 + n%5; i < len(anyValues); i += 5 {
			list = append(list, anyValues[i])
		}
		return list
	}
}

// TestAnySetting sets every setting of every family to values of every kind, or to a fifth of them if another family has
// the setting. Loading returns an error that names the setting or the tensors that do not fit, or the model runs: forward,
// step by step with a cache, and as a translator. Nothing panics, and memory stays in proportion to the files.
func TestAnySetting(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: any value of every setting")
	}
	dirs := append(cases(t), seq2seqCases(t)...)
	for _, name := range decoderCases(t) {
		dirs = append(dirs, filepath.Join("testdata/decoders", name))
	}
	seen := map[string]bool{} // settings of a family and a kind of rotary positions
	values := fifths()
	for _, dir := range dirs {
		to := copyDir(t, dir)
		m, err := models.Load(to, models.Options{})
		if err != nil {
			t.Fatal(err)
		}
		family := m.Family.Type
		for _, key := range []string{"rope_type", `"type"`} {
			config, _ := os.ReadFile(filepath.Join(to, "config.json"))
			_, kind, _ := strings.Cut(string(config), key)
			family += " " + kind[:min(len(kind), 20)]
		}
		unseen := func(path []string) []any {
			key := family + " " + strings.Join(path, ".")
			if seen[key] {
				return nil
			}
			seen[key] = true
			return values(path)
		}
		changed(t, filepath.Join(to, "config.json"), unseen, func(path []string, value any) bool {
			return loadAndRun(t, fmt.Sprintf("%s with %s = %v", dir, strings.Join(path, "."), value), to, path)
		})
	}
}

// loadAndRun loads a tiny model with a changed setting, and runs it if loading succeeds, which it reports.
func loadAndRun(t *testing.T, what, dir string, path []string) (loaded bool) {
	t.Helper()
	var before, after runtime.MemStats
	panicked := tensor.Catch(func() {
		runtime.ReadMemStats(&before)
		m, err := models.Load(dir, models.Options{})
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 16<<20 {
			t.Errorf("%s: %d bytes were allocated for a tiny model: %v", what, n, err)
		}
		if loaded = err == nil; !loaded {
			wantNamed(t, what, err, path)
			return
		}
		// In transformers, too, factors near the end of float32 overflow, and the norm of a vector of zeros is NaN
		// without an eps. A target that begins with two tokens needs two positions.
		err = run(m)
		short := err != nil && strings.Contains(err.Error(), "the beginning of the target has 2 tokens, want at most 1")
		if err != nil && !short && !strings.Contains(path[len(path)-1], "eps") && !strings.Contains(what, "= 1e+30") {
			t.Errorf("%s: %v", what, err)
		}
	})
	if panicked != nil {
		t.Errorf("%s panics: %v", what, panicked)
	}
	return loaded
}

// wantNamed fails unless an error is about a file and names the setting, a setting that does not fit it, or tensors.
func wantNamed(t *testing.T, what string, err error, path []string) {
	t.Helper()
	if text := err.Error(); strings.Contains(text, "model.safetensors") && strings.Contains(text, ": tensor") {
		return
	}
	names := append([]string{
		"pruned_heads", "layer_types", "id2label", "architectures", "decoder_start_token_id", "head_dim", "rope_", "model_type",
		"vocabularies",
	}, path...)
	if !strings.Contains(err.Error(), "config.json: ") || !slices.ContainsFunc(names, func(key string) bool {
		return strings.Contains(err.Error(), key)
	}) {
		t.Errorf("%s: error does not name the setting: %v", what, err)
	}
}

// run runs a model in every way that it supports, with at most 9 tokens, and returns an error if a result is not finite.
func run(m *models.Model) error {
	z := m.Sizes()
	tokens := func(z models.Sizes) (ids []int) {
		n := 9
		if z.Positions > 0 {
			n = min(n, z.Positions)
		}
		for i := range n {
			ids = append(ids, (3+7*i)%z.Vocabulary)
		}
		return ids
	}
	x := models.Batch{IDs: [][]int{tokens(z), tokens(z)[:1]}}
	if z.Decoder != nil {
		x.Targets = [][]int{tokens(*z.Decoder), tokens(*z.Decoder)[:1]}
	}
	if err := z.Check(x); err != nil {
		return err
	}
	finite := func(name string, y *tensor.Tensor) error {
		for _, v := range y.Data() {
			if v-v != 0 {
				return fmt.Errorf("%s contain %v", name, v)
			}
		}
		return nil
	}
	logits := func(x models.Batch, s models.State) (*tensor.Tensor, error) {
		h := m.Hidden(nil, x, models.Run{State: s})
		if err := finite("hidden states", h); err != nil || m.Head() == nil {
			return nil, err
		}
		y := m.Head().Logits(nil, h)
		return y, finite("logits", y)
	}
	whole, err := logits(x, nil)
	if err != nil || !z.Causal && z.Decoder == nil {
		return err
	}
	state, err := models.NewState(m, 1, attn.CacheConfig{})
	if err != nil {
		return err
	}
	all := x.IDs[0]
	if z.Decoder != nil {
		all = x.Targets[0]
	}
	for i, id := range all {
		one := models.Batch{IDs: [][]int{{id}}}
		if z.Decoder != nil {
			if one = (models.Batch{Targets: one.IDs}); i == 0 {
				one.IDs = x.IDs[:1]
			}
		}
		y, err := logits(one, state)
		if err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
		if y != nil && math.Abs(float64(y.At(0, 0, 0)-whole.At(0, i, 0))) > 1e-3 {
			return fmt.Errorf("step %d: logit %v, without a cache %v", i, y.At(0, 0, 0), whole.At(0, i, 0))
		}
	}
	if h := m.Head(); h == nil || h.Task != models.NextWord {
		return nil
	}
	for _, beam := range []int{1, 2} {
		_, err := m.Write(context.Background(), x.IDs, models.Generation{Tokens: 3, Beam: beam})
		var bad *models.FormatError // in a setting of generation, which Load does not read
		if err != nil && !errors.As(err, &bad) {
			return fmt.Errorf("beam of %d: %w", beam, err)
		}
	}
	return nil
}

// TestAnyPipelineSetting is TestAnySetting for the other files of a pipeline and of its tokenizer.
func TestAnyPipelineSetting(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: any value of every setting")
	}
	values := fifths()
	for _, from := range []string{"sentence_dense", "sentence_lower", "sentence_old"} {
		dir := copyDir(t, filepath.Join("testdata", from))
		var files []string
		for _, pattern := range []string{"*_config.json", "*/config.json", "config_*.json"} {
			found, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, found...)
		}
		for _, file := range files {
			part, err := filepath.Rel(dir, file)
			if err != nil {
				t.Fatal(err)
			}
			valuesOf := func(path []string) []any { return values(append([]string{part}, path...)) }
			changed(t, file, valuesOf, func(path []string, value any) (loaded bool) {
				what := fmt.Sprintf("%s/%s with %s = %v", from, filepath.Base(file), strings.Join(path, "."), value)
				panicked := tensor.Catch(func() {
					e, err := models.LoadEmbedder(dir, models.Options{})
					if err != nil {
						if !strings.Contains(err.Error(), path[0]) && !strings.Contains(err.Error(), "in_features") && !errors.As(err, new(*safetensors.FormatError)) {
							t.Errorf("%s: error does not name the setting: %v", what, err)
						}
						return
					}
					loaded = true
					y, err := e.Embed(context.Background(), "a b c", "d")
					if err != nil {
						t.Errorf("%s: %v", what, err)
						return
					}
					for _, v := range y.Data() {
						if v-v != 0 {
							t.Errorf("%s: vectors contain %v", what, v)
							return
						}
					}
				})
				if panicked != nil {
					t.Errorf("%s panics: %v", what, panicked)
				}
				return loaded
			})
		}
	}
}

// TestAnyTranslatorSetting is TestAnySetting for translators of attn train.
func TestAnyTranslatorSetting(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: any value of every setting")
	}
	words := seq2seq.BuildVocabulary([]string{"a b c d"}, seq2seq.Words, 50)
	for _, c := range []models.TranslatorConfig{
		{Arch: models.Transformer, Score: "additive", Width: 12, Heads: 3, Layers: 2, Hidden: 10},
		{Arch: models.GRU, Score: "gaussian", Width: 12, Heads: 3, Layers: 1, PrunedHeads: map[string][]int{"decoder.0.cross": {1}}},
		{Arch: models.GRU, Score: score.Kinds()[0].Name, Width: 12, Layers: 1},
	} {
		m, err := models.NewTranslator(c, words, words, rand.New(rand.NewPCG(1, 2)))
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := m.Save(dir); err != nil {
			t.Fatal(err)
		}
		changed(t, filepath.Join(dir, "config.json"), allValues, func(path []string, value any) bool {
			return loadAndRun(t, fmt.Sprintf("%s with %s = %v", c.Arch, strings.Join(path, "."), value), dir, path)
		})
	}
}
