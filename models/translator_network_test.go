package models

import (
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/stats"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// shiftsAll reports whether a parameter shifts all scores of a query by the same amount. The softmax cancels
// that, so its gradient is zero up to rounding.
func shiftsAll(c TranslatorConfig, name string) bool {
	return strings.HasSuffix(name, "k.bias") && slices.Contains([]string{"scaled", "dot", "bilinear"}, c.Score)
}

func TestGradientReachesEveryParameter(t *testing.T) {
	pairs := toyPairs(5)
	for _, c := range toyConfigs() {
		m := newToy(t, c, pairs)
		tape := tensortest.Tape(tensor.Train)
		loss := toyLoss(m, tape, pairs)
		tape.Backward(loss, nil)
		count := 0
		for name, p := range m.Params() {
			count++
			zero := p.Grad() == nil || !slices.ContainsFunc(p.Grad().Data(), func(g float32) bool { return g != 0 })
			if zero && !shiftsAll(c, name) {
				t.Errorf("%s: no gradient reaches %s", c.name(), name)
			}
			if p.Grad() != nil && slices.ContainsFunc(p.Grad().Data(), func(g float32) bool { return g != g }) {
				t.Errorf("%s: the gradient of %s holds NaN", c.name(), name)
			}
		}
		if count == 0 {
			t.Errorf("%s has no parameters", c.name())
		}
	}
}

// toyLoss returns the loss of pairs in one batch.
func toyLoss(m *Model, tape *tensor.Tape, pairs []seq2seq.Pair) *tensor.Tensor {
	var examples []example
	for _, p := range pairs {
		e, _ := pairOf(m, p)
		examples = append(examples, e)
	}
	logits, write := predict(tape, m, examples, Run{})
	return nn.CrossEntropy(tape, logits, write, seq2seq.Pad, 0)
}

// toyBatch are sources of several lengths with their targets.
var toyBatch = []seq2seq.Pair{{Source: "abcdef", Target: "fedcba"}, {Source: "ga", Target: "ag"}, {Source: "bcfa", Target: "afcb"}, {Source: "e", Target: "e"}}

// reader is a decoder that reads targets step by step.
type reader struct {
	m       *Model
	sources [][]int // until they are read
	state   State
}

func newReader(tb testing.TB, m *Model, sources [][]int) *reader {
	tb.Helper()
	state, err := NewState(m, len(sources), attn.CacheConfig{})
	if err != nil {
		tb.Fatal(err)
	}
	return &reader{m, sources, state}
}

// read returns the logits after the next tokens.
func (r *reader) read(next [][]int, run Run) *tensor.Tensor {
	run.State = r.state
	hidden := r.m.Hidden(nil, Batch{IDs: r.sources, Targets: next}, run)
	r.sources = nil
	return r.m.Head().Logits(nil, hidden)
}

// toyReader returns a reader of the sources of pairs, and the first l tokens of the targets.
func toyReader(tb testing.TB, m *Model, pairs []seq2seq.Pair, l int) (*reader, [][]int) {
	var sources, read [][]int
	for _, e := range examplesOf(tb, m, pairs) {
		sources = append(sources, e.IDs)
		read = append(read, slices.Concat(e.Reads, make([]int, l))[:l])
	}
	return newReader(tb, m, sources), read
}

// tokensAt returns tokens from to to of each sequence.
func tokensAt(rows [][]int, from, to int) [][]int {
	part := make([][]int, len(rows))
	for i, row := range rows {
		part[i] = row[from:to]
	}
	return part
}

// The output of a decoder does not depend on how many tokens it reads at a time.
func TestDecodeTokenByToken(t *testing.T) {
	const l = 7
	for _, c := range toyConfigs() {
		m := newToy(t, c, toyBatch)
		start, ids := toyReader(t, m, toyBatch, l)
		want := wide(start.read(ids, Run{}).Data())
		for _, steps := range [][]int{{1, 1, 1, 1, 1, 1, 1}, {3, 1, 2, 1}} {
			s, _ := toyReader(t, m, toyBatch, l)
			at := 0
			var parts []*tensor.Tensor
			for _, width := range steps {
				parts = append(parts, s.read(tokensAt(ids, at, at+width), Run{}))
				at += width
			}
			tensortest.Close(t, c.name(), tensor.Concat(nil, 1, parts...).Data(), want, 2e-6)
		}
	}
}

func TestChoose(t *testing.T) {
	const l = 3
	for _, c := range toyConfigs() {
		m := newToy(t, c, toyBatch)
		s, ids := toyReader(t, m, toyBatch, l)
		s.read(tokensAt(ids, 0, 2), Run{})
		next, all := tokensAt(ids, 2, 3), []int{0, 1, 2, 3}
		step := func(choice []int) *tensor.Tensor {
			r := &reader{m: m, state: s.state.Select(choice)}
			return r.read(stats.Pick(next, choice), Run{})
		}
		want := step(all)
		choice := []int{2, 0, 0, 3} // leaves out, repeats, and changes the order
		got := step(choice)
		for row, i := range choice {
			tensortest.Same(t, c.name()+": chosen sequence", slices.Clone(rowOf(got, row)), rowOf(want, i))
		}
		tensortest.Same(t, c.name()+": the state after a choice and a step from it", step(all).Data(), want.Data())
		tensortest.Same(t, c.name()+": the state itself", s.read(next, Run{}).Data(), want.Data())
	}
}

// rowOf returns sequence i of a batch.
func rowOf(x *tensor.Tensor, i int) []float32 {
	n := x.Len() / x.Dim(0)
	return x.Data()[i*n : (i+1)*n]
}

// Other sequences of a batch, and their padding, do not change the result.
func TestCompanyAndPadding(t *testing.T) {
	for _, c := range toyConfigs() {
		m := newToy(t, c, toyBatch)
		all := examplesOf(t, m, toyBatch)
		together, targets := predict(nil, m, all, Run{})
		if together.Dim(0) != len(targets) {
			t.Errorf("%s: %d vectors of logits for %d targets", c.name(), together.Dim(0), len(targets))
		}
		rest := together.Data()
		for i, e := range all {
			alone, write := predict(nil, m, []example{e}, Run{})
			tensortest.Same(t, c.name()+": "+toyBatch[i].Source, rest[:alone.Len()], alone.Data())
			if rest = rest[alone.Len():]; !slices.Equal(write, targets[:len(write)]) || !slices.Equal(write, e.Targets) {
				t.Errorf("%s: targets %v of %s, alone %v, want %v", c.name(), targets, toyBatch[i].Source, write, e.Targets)
			}
			targets = targets[len(write):]
		}
	}
}

func TestAnyNumberOfThreads(t *testing.T) {
	pairs := toyPairs(23)
	grads := func(c TranslatorConfig, procs int) []float32 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		m := newToy(t, c, pairs)
		tape := tensor.NewTape(tensor.Train)
		tape.Seed(5, 0)
		loss := toyLoss(m, tape, pairs)
		tape.Backward(loss, nil)
		all := []float32{loss.Item()}
		for _, p := range m.Params() {
			all = append(all, p.Grad().Data()...)
		}
		return all
	}
	for _, c := range toyConfigs() {
		c.Dropout = 0.3
		want := grads(c, 1)
		for _, procs := range []int{2, 3} {
			tensortest.Same(t, c.name()+": loss and gradients", grads(c, procs), want)
		}
	}
}

// The loss of an untrained network is close to that of guessing, so embeddings and states have the right
// scale.
func TestUntrainedLoss(t *testing.T) {
	pairs := toyPairs(64)
	for _, c := range toyConfigs() {
		c.Width, c.Layers = 48, 1
		m := newToy(t, c, pairs)
		loss, guess := float64(toyLoss(m, nil, pairs).Item()), math.Log(float64(m.Sizes().Decoder.Vocabulary))
		if loss < 0.6*guess || loss > 2*guess {
			t.Errorf("%s: loss %.2f before training, want about ln %d = %.2f", c.name(), loss, m.Sizes().Decoder.Vocabulary, guess)
		}
	}
}
