package models_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/observe"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// cases returns the directories that have golden numbers.
func cases(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("testdata/*/golden.safetensors")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for i := range paths {
		paths[i] = filepath.Dir(paths[i])
	}
	return paths
}

// fewer returns every third element with -short, and otherwise all. Tests of the numbers of every
// family do not use it.
func fewer[T any](list []T) []T {
	if !testing.Short() {
		return list
	}
	var some []T
	for i := 0; i < len(list); i += 3 {
		some = append(some, list[i])
	}
	return some
}

// TestGolden compares every family with transformers: hidden states and attention weights of every layer, and
// logits. Every tensor in a golden file must be compared.
func TestGolden(t *testing.T) {
	for _, dir := range cases(t) {
		simd.Each(func(kernels string) { // for which weights are packed at loading
			for weights, o := range map[string]models.Options{"packed": {}, "parameters": {Trainable: true}} {
				t.Run(filepath.Base(dir)+"/"+kernels+"/"+weights, func(t *testing.T) {
					m, err := models.Load(dir, o)
					if err != nil {
						t.Fatal(err)
					}
					for name, check := range map[string]func(*models.Model, goldenFile){"batch": wholeBatch, "each": oneByOne} {
						t.Run(name, func(t *testing.T) { check(m, openGolden(t, dir)) })
					}
				})
			}
		})
	}
}

// TestFamiliesHaveGolden checks that TestGolden, TestDecodersGolden, TestSeq2seqGolden or TestTorchGolden compares each
// family.
func TestFamiliesHaveGolden(t *testing.T) {
	seen := decoderTypes(t)
	dirs, err := filepath.Glob("../testdata/translators/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		d, err := models.Describe(dir, models.Options{})
		if err != nil {
			t.Fatal(err)
		}
		seen[d.Family.Type] = true
	}
	for _, name := range seq2seqTypes(t) {
		seen[name] = true
	}
	for _, dir := range cases(t) {
		m, err := models.Load(dir, models.Options{})
		if err != nil {
			t.Fatal(err)
		}
		seen[m.Family.Type] = true
	}
	for _, name := range models.Families().Types() {
		if !seen[name] {
			t.Errorf("no golden file for family %s", name)
		}
	}
}

// goldenFile is golden.safetensors of a case.
type goldenFile struct {
	*tensortest.Golden
	t    *testing.T
	x    models.Batch
	left map[string]bool // not compared yet
}

func openGolden(t *testing.T, dir string) goldenFile {
	t.Helper()
	path := filepath.Join(dir, "golden.safetensors")
	file, err := safetensors.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	g := goldenFile{tensortest.Open(t, path), t, models.Batch{}, map[string]bool{}}
	for _, x := range file.Tensors {
		if strings.HasPrefix(x.Name, "want.") {
			g.left[x.Name] = true
		}
	}
	lens, l := g.Ints("in.lens"), g.Shape("in.ids")[1]
	rows := func(name string) (rows [][]int) {
		all := g.Ints(name)
		for i, n := range lens {
			rows = append(rows, all[i*l:i*l+n])
		}
		return rows
	}
	g.x.IDs = rows("in.ids")
	if g.Has("in.types") {
		g.x.Types = rows("in.types")
	}
	return g
}

// outputs are the results of a run, by their names in the golden file.
func outputs(m *models.Model, x models.Batch) map[string]*tensor.Tensor {
	all := map[string]*tensor.Tensor{}
	layer := 0
	hidden := m.Hidden(nil, x, models.Run{
		Observers: []attn.Observer{observe.Weights(func(_ string, w *tensor.Tensor) {
			all[fmt.Sprintf("want.weights.%d", layer)] = w.Clone()
			layer++
		})},
		States: func(n int, x *tensor.Tensor) { all[fmt.Sprintf("want.hidden.%d", n)] = x.Clone() },
	})
	if h := m.Head(); h != nil {
		all["want.logits"] = h.Of(nil, hidden, x)
	}
	return all
}

// perToken reports whether the second axis of an output is the tokens.
func perToken(m *models.Model, name string) bool {
	return strings.HasPrefix(name, "want.hidden") || name == "want.logits" && m.Head().Task.PerToken()
}

// wholeBatch compares a run over sequences of different lengths.
func wholeBatch(m *models.Model, g goldenFile) {
	for name, got := range outputs(m, g.x) {
		if perToken(m, name) { // values at padding are arbitrary
			l, d := got.Dim(1), got.Len()/got.Dim(0)/got.Dim(1)
			for i, ids := range g.x.IDs {
				clear(got.Data()[(i*l+len(ids))*d : (i+1)*l*d])
			}
		}
		g.Check(name, got)
		delete(g.left, name)
	}
	if len(g.left) > 0 {
		g.t.Errorf("not compared: %v", slices.Sorted(maps.Keys(g.left)))
	}
}

// oneByOne runs each sequence alone: padding must not change a bit.
func oneByOne(m *models.Model, g goldenFile) {
	batch := outputs(m, g.x)
	for i := range g.x.IDs {
		x := models.Batch{IDs: g.x.IDs[i : i+1]}
		if g.x.Types != nil {
			x.Types = g.x.Types[i : i+1]
		}
		n := len(x.IDs[0])
		for name, got := range outputs(m, x) {
			all := tensor.Slice(nil, batch[name], 0, i, i+1)
			switch {
			case perToken(m, name):
				all = tensor.Slice(nil, all, 1, 0, n)
			case strings.HasPrefix(name, "want.weights"):
				all = tensor.Slice(nil, tensor.Slice(nil, all, 2, 0, n), 3, 0, n)
			}
			if !slices.Equal(got.Data(), all.Data()) {
				g.t.Errorf("%s of sequence %d alone differs from that in a batch", name, i)
			}
		}
	}
}

func copyDir(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

func removeAll(t *testing.T, pattern string) {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}
