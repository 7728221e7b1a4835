package probe_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/train"
)

// TestFineTune trains pruned models on their examples. The original model does not change, removed heads
// stay removed, and both written forms contain the trained parameters.
func TestFineTune(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: trains")
	}
	for _, name := range []string{"bert_old", "bert_words", "bert_text", "decoders/llama3", "decoders/gpt2", "decoders/gemma3_multimodal", "seq2seq/t5"} {
		p := loadProbe(t, name)
		whole := lossOf(t, p)
		less := without(t, p, gone(p.Layers(), removals["uneven"]))
		before := lossOf(t, less)
		tuned := without(t, less, nil)
		steps := 0
		o := train.Tuning{Steps: 30, Rate: 0.01, Seed: 3, Progress: func(n int) { steps = n }}
		if err := train.FineTune(context.Background(), tuned, less, o); err != nil {
			t.Fatal(err)
		}
		after := lossOf(t, tuned)
		if steps != o.Steps || !(after < 0.9*before) {
			t.Errorf("%s: the loss was %v, and is %v after %d steps", name, before, after, steps)
		}
		if lossOf(t, less) != before || lossOf(t, p) != whole {
			t.Errorf("%s: the model that was pruned has changed", name)
		}
		again := without(t, less, nil)
		if err := train.FineTune(context.Background(), again, less, o); err != nil || lossOf(t, again) != after {
			t.Errorf("%s: trained again, the loss is %v, want %v (%v)", name, lossOf(t, again), after, err)
		}
		if !slices.Equal(tuned.Kept()[p.Layers()[0].Name], less.Kept()[p.Layers()[0].Name]) {
			t.Errorf("%s: other heads are left", name)
		}
		masked := t.TempDir()
		config := tuned.Model().Config()
		if text := string(config); strings.Contains(text, "float16") || !strings.Contains(text, `"float32"`) {
			t.Errorf("%s: config.json has numbers of another type:\n%s", name, text)
		}
		if err := os.WriteFile(filepath.Join(masked, "config.json"), config, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := atomicfile.Write(filepath.Join(masked, "model.safetensors"), tuned.WriteMasked); err != nil {
			t.Fatal(err)
		}
		checkUnread(t, p.Model(), masked)
		list := []*models.Model{}
		if m, err := models.Load(masked, models.Options{Trainable: true}); err != nil {
			t.Fatal(err)
		} else {
			list = append(list, m)
		}
		if tuned.Model().Family.Pruning != models.NoPruning {
			_, m := writeCompact(t, tuned, t.TempDir(), models.Options{Trainable: true})
			list = append(list, m)
		}
		for _, m := range list {
			written, err := p.Of(m)
			if err != nil {
				t.Fatal(err)
			}
			if loss := lossOf(t, written); !(math.Abs(loss-after) <= 1e-5*math.Abs(after)) {
				t.Errorf("%s: what was written has loss %v, want %v", name, loss, after)
			}
		}
	}
}

// checkUnread compares tensors that are not parameters of the model, such as the tensors of an image encoder, before
// and after training: they do not change, except for a tensor that is tied to a parameter.
func checkUnread(t *testing.T, m *models.Model, dir string) {
	t.Helper()
	dict, err := models.StateDict(m)
	if err != nil {
		t.Fatal(err)
	}
	var readers [2]*safetensors.Reader
	for i, dir := range []string{m.Dir, dir} {
		if readers[i], err = safetensors.Open(dir); err != nil {
			t.Fatal(err)
		}
		defer readers[i].Close()
	}
	var unread []string
	for _, info := range readers[0].Tensors() {
		if slices.ContainsFunc(dict, func(e nn.Entry) bool { return e.Name == info.Name }) {
			continue
		}
		unread = append(unread, info.Name)
		if info.Name == "cls.predictions.decoder.weight" {
			if _, there := readers[1].Lookup(info.Name); there {
				t.Errorf("%s: %s is written as it was before training", m.Dir, info.Name)
			}
			continue
		}
		want, err := readers[0].Tensor(info.Name)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := readers[1].Tensor(info.Name); err != nil || got.DType != want.DType || !bytes.Equal(got.Data, want.Data) {
			t.Errorf("%s: %s is not what it was (%v)", m.Dir, info.Name, err)
		}
	}
	if name := filepath.Base(m.Dir); len(unread) == 0 && (name == "bert_old" || name == "gemma3_multimodal") {
		t.Errorf("%s: every tensor is a parameter", m.Dir)
	}
}

func TestFineTuneEnds(t *testing.T) {
	p := loadProbe(t, "bert_words")
	ctx, cancel := context.WithCancel(context.Background())
	if err := train.FineTune(ctx, p, p, train.Tuning{Steps: 9, Rate: 1e-3, Progress: func(int) { cancel() }}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
	if err := train.FineTune(context.Background(), p, p, train.Tuning{Steps: 99, Rate: 1e30}); !errors.Is(err, models.ErrDiverged) {
		t.Errorf("error %v, want ErrDiverged", err)
	}
	if err := train.FineTune(context.Background(), p, p, train.Tuning{Steps: 9}); err == nil {
		t.Error("trained at a rate of 0")
	}
}
