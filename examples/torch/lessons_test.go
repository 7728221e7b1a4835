// Package torch computes the lessons with attn. The Python programs beside it are the same lessons in PyTorch. A reader who
// compares both must see the same numbers, so check.py computes these with the functions of those programs.
package torch

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/examples/factor"
	"github.com/attn-go/attn/examples/induction"
	"github.com/attn-go/attn/linear"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/optim"
	"github.com/attn-go/attn/position"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
)

// TestLessons writes inputs, parameters and results into lessons.safetensors, in the directory ATTN_LESSONS if that is set.
func TestLessons(t *testing.T) {
	dir := os.Getenv("ATTN_LESSONS")
	if dir == "" {
		dir = t.TempDir()
	}
	f := &file{T: t, rng: rand.New(rand.NewPCG(1, 2))}
	for _, lesson := range []func(*file){regression, scores, shapes, dates, masks, cache, kernels, pair} {
		lesson(f)
	}
	f.check(f.WriteFile(filepath.Join(dir, "lessons.safetensors")))
}

// file collects tensors. Their names begin with that of a piece of code.
type file struct {
	*testing.T
	safetensors.File
	rng *rand.Rand
}

func (f *file) check(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *file) put(name string, x *tensor.Tensor) *tensor.Tensor {
	f.Tensors = append(f.Tensors, safetensors.FromFloat32s(name, x.Shape(), x.Data()))
	return x
}

func (f *file) random(name string, shape ...int) *tensor.Tensor {
	return f.put(name, tensor.Randn(f.rng, shape...))
}

func (f *file) params(name string, m nn.Module) {
	for p, x := range m.Params() {
		f.put(name+"."+p, x)
	}
}

func (f *file) output(name string, o attn.Output) {
	f.put(name+".out", o.Out)
	if o.Weights != nil {
		f.put(name+".weights", o.Weights)
	}
}

func (f *file) layer(name string, c attn.MultiHeadConfig) *attn.MultiHead {
	c.Name, c.Init = name, nn.NewLinear // draws biases too
	layer, err := attn.NewMultiHead(c, f.rng)
	f.check(err)
	f.params(name, layer)
	return layer
}

// regression draws the same observations as examples/regression.
func regression(f *file) {
	x, y, at := tensor.Uniform(f.rng, 0, 5, 1, 50, 1), tensor.Zeros(1, 50, 1), tensor.Reshape(nil, tensor.Linspace(0, 5, 101), 1, 101, 1)
	slices.Sort(x.Data())
	for i, v := range x.Data() {
		y.Data()[i] = float32(2*math.Sin(float64(v)) + math.Pow(float64(v), 0.8) + 0.5*f.rng.NormFloat64())
	}
	f.put("fixed.x", x)
	f.put("fixed.y", y)
	f.put("fixed.at", at)
	kernel := &score.Gaussian{W: tensor.Full(1, 1).Param()}
	f.output("fixed", attn.Attend(nil, at, x, y, attn.Options{Score: kernel, Weights: true}))

	others := mask.AllowFunc(func(_, _, i, j int) bool { return i != j })
	optimizer, tape := optim.NewAdamW(kernel), tensor.NewTape(tensor.Train)
	for range 200 {
		tape.Reset()
		optim.ZeroGrad(kernel)
		estimate := attn.Attend(tape, x, x, y, attn.Options{Score: kernel, Mask: others}).Out
		tape.Backward(nn.MSE(tape, estimate, y), nil)
		optimizer.Step(0.1)
	}
	f.params("learn", kernel)
}

func scores(f *file) {
	q, k, v := f.random("attend.q", 1, 1, 7, 16), f.random("attend.k", 1, 1, 11, 16), f.random("attend.v", 1, 1, 11, 5)
	additive, bilinear := score.NewAdditive(16, 16, 8, f.rng), score.NewBilinear(16, 16, f.rng)
	f.params("additive", additive)
	f.params("bilinear", bilinear)
	for _, s := range []struct {
		name  string
		score attn.Score
	}{
		{"dot", score.Dot()}, {"scaled", score.ScaledDot()}, {"cosine", &score.Cosine{}},
		{"gaussian", &score.Gaussian{}}, {"additive", additive}, {"bilinear", bilinear},
	} {
		f.output(s.name, attn.Attend(nil, q, k, v, attn.Options{Score: s.score, Weights: true}))
	}

	x := tensor.Randn(f.rng, 2, 7, 12)
	for i := range 3 * 12 {
		x.Data()[(7+4)*12+i] = float32(math.NaN())
	}
	valid := attn.And(mask.Lengths(7, 4), mask.QueryLengths(7, 4))
	layer := f.layer("lengths", attn.MultiHeadConfig{Width: 12, Heads: 3})
	f.put("lengths.x", x)
	f.output("lengths", layer.Forward(nil, x, x, x, attn.Options{Mask: valid, Weights: true}))
}

func shapes(f *file) {
	layer := f.layer("shapes", attn.MultiHeadConfig{Width: 100, Heads: 5})
	x, y := f.random("shapes.x", 2, 4, 100), f.random("shapes.y", 2, 6, 100)
	f.output("shapes", layer.Forward(nil, x, y, y, attn.Options{Mask: mask.Lengths(3, 2), Weights: true}))
}

func dates(f *file) {
	layer := f.layer("heads", attn.MultiHeadConfig{Width: 32, Heads: 8, Bias: attn.AllProjections})
	x, tape := f.random("heads.x", 2, 5, 32), tensor.NewTape(tensor.Train)
	y := layer.Forward(tape, x, x, x, attn.Options{Mask: mask.Lengths(5, 3), Weights: true})
	tape.Backward(tensor.Mean(tape, tensor.Square(tape, y.Out)), nil)
	f.output("heads", y)
	for name, p := range layer.Params() {
		f.put("heads.grad."+name, p.Grad())
	}

	layer, x = f.layer("prune", attn.MultiHeadConfig{Width: 32, Heads: 4}), f.random("prune.x", 1, 10, 32)
	p := probe{layer, x, f.put("prune.target", layer.Forward(nil, x, x, x, attn.Options{}).Out)}
	methods := prune.ImportanceOptions{Methods: []prune.Method{prune.LeaveOneOut}}
	list, err := prune.Importance(context.Background(), p, methods)
	f.check(err)
	f.Tensors = append(f.Tensors, safetensors.FromFloat64s("prune.scores", []int{4}, list[0].Flat(p.Layers())))
	small, err := layer.Keep([]int{0, 2})
	f.check(err)
	f.output("prune", small.Forward(nil, x, x, x, attn.Options{}))
}

// probe measures how far the output of a layer is from its target, the output with all heads.
type probe struct {
	layer     *attn.MultiHead
	x, target *tensor.Tensor
}

func (p probe) Layers() []attn.LayerHeads { return []attn.LayerHeads{p.layer.Heads()} }
func (p probe) Batches() []int            { return []int{1} }

func (p probe) Run(t *tensor.Tape, _ int, pass prune.Pass) prune.Outcome {
	var o attn.Options
	if pass.Gates != nil {
		o.Gates = pass.Gates("prune")
	}
	off := tensor.Sub(t, p.layer.Forward(t, p.x, p.x, p.x, o).Out, p.target)
	return prune.Outcome{Loss: tensor.Sum(t, tensor.Square(t, off)), Terms: p.target.Len()}
}

func masks(f *file) {
	q, k, v := f.random("masks.q", 1, 4, 6, 8), f.random("masks.k", 1, 4, 6, 8), f.random("masks.v", 1, 4, 6, 8)
	packed := attn.And(mask.Documents([]int{2, 5}), mask.Causal())
	f.output("documents", attn.Attend(nil, q, k, v, attn.Options{Mask: packed, Weights: true}))
	alibi := []attn.ScoreChange{position.ALiBi()}
	f.output("alibi", attn.Attend(nil, q, k, v, attn.Options{Changes: alibi, Mask: mask.Causal(), Weights: true}))

	first := attn.MultiHeadConfig{Width: 16, Heads: 4, Layout: attn.SequenceFirst}
	layer, x := f.layer("first", first), f.random("first.x", 8, 2, 16)
	f.output("first", layer.Forward(nil, x, x, x, attn.Options{Mask: mask.Causal(), Weights: true}))
}

func cache(f *file) {
	layer := f.layer("cache", attn.MultiHeadConfig{Width: 16, Heads: 4, KVHeads: 2})
	cache, err := layer.NewCache(2, attn.CacheConfig{})
	f.check(err)
	prompts, token := f.random("cache.prompts", 2, 7, 16), f.random("cache.token", 2, 1, 16)
	o := attn.Options{Mask: mask.Causal(), QueryLens: []int{7, 4}}
	f.output("cache.read", layer.Extend(nil, prompts, cache, o))
	o.QueryLens = nil
	f.output("cache.step", layer.Extend(nil, token, cache, o))
	first := func(x *tensor.Tensor) *tensor.Tensor { return tensor.Slice(nil, x, 0, 0, 1) }
	x := tensor.Concat(nil, 1, first(prompts), first(token)) // without padding
	f.output("cache.whole", layer.Forward(nil, x, x, x, o))
}

func kernels(f *file) {
	x, y := tensor.Uniform(f.rng, 0, 5, 1, 50, 1), f.random("linear.y", 1, 50, 1)
	at := tensor.Reshape(nil, tensor.Linspace(0, 5, 101), 1, 101, 1)
	f.put("linear.x", x)
	f.put("linear.at", at)
	state, err := linear.NewState(linear.StateConfig{Batch: 1, Heads: 1, KeySize: 21, ValueSize: 1, Normalize: true})
	f.check(err)
	state.Attend(nil, x, x, y, linear.Options{Feature: factor.Waves(10), Normalize: true, Scale: 1})
	sums := f.put("linear.state", tensor.Reshape(nil, state.Tensor(nil), 21, 2))
	f.put("linear.read", tensor.MatMul(nil, factor.Waves(10)(nil, at), tensor.Reshape(nil, sums, 1, 21, 2)))

	q, k, v := f.random("rules.q", 2, 9, 8), f.random("rules.k", 2, 9, 8), f.random("rules.v", 2, 9, 8)
	decay, beta := f.put("rules.decay", tensor.Uniform(f.rng, -1, 0, 2, 9)), f.put("rules.beta", tensor.Uniform(f.rng, 0, 1, 2, 9))
	soft := attn.Attend(nil, q, k, v, attn.Options{Mask: mask.Causal(), Weights: true})
	f.put("rules.softmax.out", soft.Out)
	f.put("rules.softmax.matrix", soft.Weights)
	for rule, o := range map[string]linear.Options{
		"linear":      {Feature: linear.ELU1, Normalize: true},
		"gated":       {Feature: linear.Unit, Decay: decay},
		"gated delta": {Feature: linear.Unit, Decay: decay, Beta: beta},
	} {
		o.Weights = true
		y := linear.Attend(nil, q, k, v, o)
		f.put("rules."+rule+".out", y.Out)
		f.put("rules."+rule+".matrix", y.Weights)
	}
}

// pair runs the model of lesson 9, also with a vector of one head from another run, and with two heads alone.
func pair(f *file) {
	m, none := induction.New(1), induction.Edits{}
	f.params("pair", m)
	ids, other := induction.Draw(f.rng, 2, 0), m.Run(nil, induction.Draw(f.rng, 2, 0), none)
	tokens := tensor.Zeros(2, induction.Length)
	for i, id := range ids {
		tokens.Data()[i] = float32(id)
	}
	f.put("pair.ids", tokens)
	f.put("pair.other", other.Outputs[0])
	f.put("pair.logits", m.Run(nil, ids, none).Logits)
	f.put("pair.patched", m.Run(nil, ids, induction.Put(&other, induction.Site{Layer: 0, Head: 1, Position: 7})).Logits)
	f.put("pair.silent", m.Run(nil, ids, induction.Put(nil, induction.Site{Layer: 1, Head: 3, Position: -1})).Logits)
	small, err := m.Keep([2][]int{{1}, {2}})
	f.check(err)
	f.put("pair.small", small.Run(nil, ids, none).Logits)
}
