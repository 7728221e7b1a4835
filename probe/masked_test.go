package probe_test

import (
	"cmp"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tensor"
)

// TestWriteMasked writes models without some heads, loads them, and compares logits with those of the model
// with gates of 0 for these heads. If ATTN_PRUNED_CASES names a folder, the directories are kept there for
// testdata/pruned_check.py.
func TestWriteMasked(t *testing.T) {
	for _, name := range append(slices.Clone(probed), "camembert_words", "distilbert_text", "mpnet_words", "decoders/gemma3", "decoders/qwen3", "decoders/mistral", "seq2seq/marian", "seq2seq/t5", "seq2seq/t5_1.1", "decoders/olmo2",
		"decoders/qwen3_5", "decoders/olmo_hybrid", "decoders/mamba2", "decoders/granite_hybrid", "decoders/falcon_h1", "decoders/falcon_h1_norm", "decoders/deepseek_v2", "decoders/diffllama") {
		p := loadProbe(t, name)
		var gone []prune.Head // the first group of the first layer, the last of the last
		layers := p.Layers()
		for i, l := range []int{0, len(layers) - 1} {
			c := layers[l]
			size := c.Group
			for h := range size {
				gone = append(gone, prune.Head{Layer: c.Name, Number: h + i*(c.Heads-size)})
			}
		}
		less, err := p.Without(gone)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if folder := os.Getenv("ATTN_PRUNED_CASES"); folder != "" {
			dir = filepath.Join(folder, filepath.Base(name))
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		config, err := os.ReadFile(filepath.Join(testdata, name, "config.json"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "config.json"), config, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := atomicfile.Write(filepath.Join(dir, "model.safetensors"), less.WriteMasked); err != nil {
			t.Fatal(err)
		}
		again, err := models.Load(dir, models.Options{Trainable: true})
		if err != nil {
			t.Fatal(err)
		}
		x := models.Batch{IDs: [][]int{{1, 5, 7, 2, 3, 11, 13}}}
		if p.Model().Sizes().Decoder != nil {
			x.Targets = [][]int{{0, 17, 3, 19, 2}}
		}
		closed := func(layer string) *tensor.Tensor {
			at := slices.IndexFunc(layers, func(l attn.LayerHeads) bool { return l.Name == layer })
			gates := tensor.Full(1, layers[at].Heads)
			for _, h := range gone {
				if h.Layer == layer {
					gates.Data()[h.Number] = 0
				}
			}
			return gates
		}
		logits := func(m *models.Model, r models.Run) *tensor.Tensor { return m.Head().Logits(nil, m.Hidden(nil, x, r)) }
		want, got := logits(p.Model(), models.Run{Gates: closed}), logits(again, models.Run{})
		for i, v := range want.Data() {
			if d := math.Abs(float64(v - got.Data()[i])); !(d <= 1e-6*max(1, math.Abs(float64(v)))) {
				t.Errorf("%s: logit %d is %v, want %v", name, i, got.Data()[i], v)
				break
			}
		}
		if whole := logits(p.Model(), models.Run{}); slices.Equal(whole.Data(), want.Data()) {
			t.Errorf("%s: the heads do not matter", name)
		}
		onlyZeros(t, filepath.Join(testdata, name), dir)
		note(t, dir, p.Model(), gone, layers, x, got)
	}
}

// onlyZeros checks that two directories have the same tensors and types, and that every changed element is
// zero.
func onlyZeros(t *testing.T, from, to string) {
	t.Helper()
	before, err := safetensors.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	after, err := safetensors.Open(to)
	if err != nil {
		t.Fatal(err)
	}
	defer after.Close()
	if len(before.Tensors()) != len(after.Tensors()) {
		t.Errorf("%s: %d tensors, want %d", to, len(after.Tensors()), len(before.Tensors()))
	}
	changed := 0
	for _, info := range before.Tensors() {
		x, err1 := before.Tensor(info.Name)
		y, err2 := after.Tensor(info.Name)
		if err := cmp.Or(err1, err2); err != nil {
			t.Fatal(err)
		}
		if x.DType != y.DType || len(x.Data) != len(y.Data) {
			t.Errorf("%s: tensor %s has another type or size", to, info.Name)
			continue
		}
		differs := false
		for i, b := range x.Data {
			if y.Data[i] != b {
				if differs = true; y.Data[i] != 0 {
					t.Errorf("%s: tensor %s has another number", to, info.Name)
					break
				}
			}
		}
		if differs {
			changed++
		}
	}
	if changed != 2 {
		t.Errorf("%s: %d tensors have changed, want those of two layers", to, changed)
	}
}

// note writes the inputs and outputs for testdata/pruned_check.py.
func note(t *testing.T, dir string, m *models.Model, gone []prune.Head, layers []attn.LayerHeads, x models.Batch, logits *tensor.Tensor) {
	t.Helper()
	original, err := filepath.Abs(m.Dir)
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[string]int{}
	for _, l := range layers {
		sizes[l.Name] = l.Out.Weight.Dim(1) / l.Heads
	}
	data, err := json.Marshal(map[string]any{
		"original": original, "removed": gone, "head_size": sizes, "input_ids": x.IDs, "decoder_input_ids": x.Targets, "logits": logits.Data(), "shape": logits.Shape(),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "case.json"), data, 0o644); err != nil {
		t.Fatal(err)
	}
}
