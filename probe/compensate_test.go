package probe_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/probe"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tensor"
)

// outputsFar returns how far the outputs of a probe are from those of the whole model.
func outputsFar(t *testing.T, whole, p *probe.Probe) float64 {
	t.Helper()
	r, err := probe.NewReference(context.Background(), whole)
	if err != nil {
		t.Fatal(err)
	}
	list, err := r.Compare(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	far := 0.
	for _, y := range list {
		far += y.KL
	}
	return far
}

// Compensation brings the outputs of a model that has lost heads nearer to its own before. The model that was pruned does
// not change; the masked and the small form have the same outputs.
func TestCompensate(t *testing.T) {
	for _, name := range []string{"bert_words", "bert_text", "decoders/llama3", "decoders/gpt2", "seq2seq/t5", "decoders/deepseek_v2"} {
		p := loadProbe(t, name)
		whole := lossOf(t, p)
		less := without(t, p, gone(p.Layers(), removals["uneven"]))
		before := lossOf(t, less)
		far := outputsFar(t, p, less)
		for how, compensation := range map[string]prune.Compensation{"mean": prune.Mean(), "ridge": prune.Ridge()} {
			better := without(t, less, nil)
			if err := better.Compensate(context.Background(), compensation); err != nil {
				t.Fatal(err)
			}
			if lossOf(t, p) != whole || lossOf(t, less) != before {
				t.Errorf("%s: the model that was pruned has changed", name)
			}
			if near := outputsFar(t, p, better); how == "ridge" && !(near < 0.9*far) {
				t.Errorf("%s: %v nats from the whole model after %s, %v before", name, near, how, far)
			}
			if better.Model().Family.Pruning == models.NoPruning {
				continue
			}
			_, small := writeCompact(t, better, t.TempDir(), models.Options{Trainable: true})
			again, err := p.Of(small)
			if err != nil {
				t.Fatal(err)
			}
			if loss, want := lossOf(t, again), lossOf(t, better); !(math.Abs(loss-want) <= 1e-5*math.Abs(want)) {
				t.Errorf("%s: the small form has loss %v, want %v", name, loss, want)
			}
		}
	}
}

// Compensation brings the output of a block whose heads have a state nearer to what it was, in the mean square over the
// examples that it has seen.
func TestCompensateStates(t *testing.T) {
	for _, name := range []string{"decoders/qwen3_5", "decoders/olmo_hybrid", "decoders/mamba2", "decoders/granite_hybrid", "decoders/falcon_h1", "decoders/diffllama"} {
		p := loadProbe(t, name)
		layers := p.Layers()
		layer := layers[slices.IndexFunc(layers, func(l attn.LayerHeads) bool { return l.Signed })]
		less := without(t, p, gone([]attn.LayerHeads{layer}, removals["uneven"]))
		better := without(t, less, nil)
		if err := better.Compensate(t.Context(), prune.Ridge()); err != nil {
			t.Fatal(err)
		}
		_, block := heads.Place(layer.Name)
		gates := tensor.Zeros(layer.Heads)
		for _, h := range less.Kept()[layer.Name] {
			gates.Data()[h] = 1
		}
		after := func(m *models.Model, gates *tensor.Tensor) (all []float32) {
			for _, e := range randomExamples(m, 23) {
				r := models.Run{States: func(number int, x *tensor.Tensor) {
					if number == block+1 {
						all = append(all, x.Data()...)
					}
				}}
				if gates != nil {
					r.Gates = func(name string) *tensor.Tensor {
						if name == layer.Name {
							return gates
						}
						return nil
					}
				}
				m.Hidden(nil, models.Batch{IDs: [][]int{e.IDs}}, r)
			}
			return all
		}
		whole := after(p.Model(), nil)
		far := func(x []float32) (sum float64) {
			for i, v := range x {
				sum += float64((v - whole[i]) * (v - whole[i]))
			}
			return sum
		}
		if before, now := far(after(p.Model(), gates)), far(after(better.Model(), nil)); !(now < before) {
			t.Errorf("%s: block %d is %v from its output after compensation, %v before", name, block, now, before)
		}
	}
}

// A centered model has the loss of its original, and loses with a head what the original loses if Mean makes up for it, if
// its layers have the biases for that.
func TestCentered(t *testing.T) {
	for name, biases := range map[string]bool{"bert_words": true, "decoders/gpt2": true, "decoders/llama3": false, "seq2seq/t5": false} {
		p := loadProbe(t, name)
		near := func(what string, got, want *probe.Probe) {
			t.Helper()
			if a, b := lossOf(t, got), lossOf(t, want); !(math.Abs(a-b) <= 1e-5*b) {
				t.Errorf("%s: loss %v %s, want %v", name, a, what, b)
			}
		}
		centered := func(p *probe.Probe) *probe.Probe {
			c, err := p.Centered(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			near("when centered", c, p)
			return c
		}
		removed := gone(p.Layers(), removals["uneven"])
		less, got := without(t, p, removed), without(t, centered(p), removed)
		centered(less) // the heads that it lacks still leave 0
		mean := without(t, less, nil)
		if err := mean.Compensate(context.Background(), prune.Mean()); err != nil {
			t.Fatal(err)
		}
		if biases {
			near("without a head", got, mean)
		}
		if biases == (lossOf(t, got) == lossOf(t, less)) {
			t.Errorf("%s: a head leaves its mean: %v, want %v", name, !biases, biases)
		}
	}
	p := loadProbe(t, "bert_words")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := p.Centered(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
	sick := without(t, p, nil)
	if err := sick.Change(func(m *models.Model) error {
		m.Attention()[0].V.Bias.Data()[0] = float32(math.NaN())
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := sick.Centered(context.Background()); err == nil {
		t.Error("the mean of NaN is no error")
	}
}

// With all heads, nothing changes.
func TestCompensateNothing(t *testing.T) {
	p := loadProbe(t, "bert_words")
	same := without(t, p, nil)
	if err := same.Compensate(context.Background(), prune.Ridge()); err != nil {
		t.Fatal(err)
	}
	for name, x := range same.Model().Params() {
		for of, y := range p.Model().Params() {
			if name == of && !slices.Equal(x.Data(), y.Data()) {
				t.Errorf("%s has changed", name)
			}
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	less := without(t, p, gone(p.Layers(), removals["uneven"]))
	if err := less.Compensate(ctx, prune.Ridge()); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
}

// Only the output maps of compensated layers get another type in the files, and config.json keeps its own.
func TestCompensatedFile(t *testing.T) {
	p := loadProbe(t, "decoders/smollm2")
	less := without(t, p, gone(p.Layers(), removals["uneven"]))
	if err := less.Compensate(context.Background(), prune.Ridge()); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := less.WriteMasked(&file); err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	maps, others := 0, 0
	for _, x := range f.Tensors() {
		switch out := strings.HasSuffix(x.Name, "o_proj.weight"); {
		case out && x.DType == safetensors.F32:
			maps++
		case !out && x.DType == safetensors.BF16:
			others++
		}
	}
	if all := len(f.Tensors()); maps == 0 || others == 0 || all-others != len(p.Layers()) {
		t.Errorf("%d output maps in float32, %d other tensors of %d as they were", maps, others, all)
	}
	config := less.Model().Config()
	if want, err := os.ReadFile("../models/testdata/decoders/smollm2/config.json"); err != nil || !bytes.Equal(config, want) {
		t.Errorf("config.json has changed (%v)", err)
	}
}

// Maps are solved on the even examples and checked on the odd ones, whatever the order in which batches have them, and
// only those of layers that have lost heads.
func TestCompensateHalves(t *testing.T) {
	m, err := models.Load("../models/testdata/bert_words", models.Options{Trainable: true})
	if err != nil {
		t.Fatal(err)
	}
	long := probe.Example{IDs: []int{2, 7, 9, 4, 11, 5, 3}, Targets: []int{7, probe.Ignore, 9, 4, 11, 5, 3}}
	short := probe.Example{IDs: []int{2, 6, 3}, Targets: []int{probe.Ignore, 6, probe.Ignore}}
	halves := func(examples ...probe.Example) (fit, check *prune.Moments) {
		p, err := probe.New(m, examples)
		if err != nil {
			t.Fatal(err)
		}
		layers := p.Layers()
		less := without(t, p, []prune.Head{{Layer: layers[1].Name, Number: 0}})
		calls := 0
		if err := less.Compensate(t.Context(), func(o prune.OutputMap) error {
			calls++
			fit, check = o.Fit, o.Check
			return nil
		}); err != nil || calls != 1 {
			t.Errorf("%d maps solved, %v, want that of one layer", calls, err)
		}
		return fit, check
	}
	fit, check := halves(long, short)
	again, other := halves(short, long)
	if !reflect.DeepEqual(fit, other) || !reflect.DeepEqual(check, again) || reflect.DeepEqual(fit, check) {
		t.Error("the halves do not change with the order of the examples")
	}
}
