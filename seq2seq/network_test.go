package seq2seq

import (
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// shiftsAll reports whether a parameter moves all scores of a query alike, which
// a softmax does not see: its gradient is zero but for rounding.
func shiftsAll(c Config, name string) bool {
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
func toyLoss(m *Translator, tape *tensor.Tape, pairs []Pair) *tensor.Tensor {
	examples := make([]example, len(pairs))
	for i, p := range pairs {
		examples[i] = m.example(p)
	}
	logits, write := m.logits(tape, examples, hooks{})
	return nn.CrossEntropy(tape, logits, write, Pad, 0)
}

// toyBatch are sources of several lengths and targets that go with them.
var toyBatch = []Pair{{"abcdef", "fedcba"}, {"ga", "ag"}, {"bcfa", "afcb"}, {"e", "e"}}

// toyStates returns sources encoded, and the first l tokens of the targets.
func toyState(m *Translator, pairs []Pair, l int) (state, []int) {
	var src, read [][]int
	for _, p := range pairs {
		e := m.example(p)
		src = append(src, e.src)
		read = append(read, slices.Concat(e.read, make([]int, l))[:l])
	}
	return m.net.encode(nil, newBatch(src), hooks{}), newBatch(read).ids
}

// column returns token i of each of n sequences of l tokens.
func column(ids []int, n, l, from, to int) []int {
	var part []int
	for row := range n {
		part = append(part, ids[row*l+from:row*l+to]...)
	}
	return part
}

// What a decoder says must not depend on how many tokens it is given at a time.
func TestDecodeTokenByToken(t *testing.T) {
	const l = 7
	n := len(toyBatch)
	for _, c := range toyConfigs() {
		m := newToy(t, c, toyBatch)
		start, ids := toyState(m, toyBatch, l)
		all, _ := decode(m.net, nil, start, ids, l, hooks{})
		want := make([]float64, all.Len())
		for i, v := range all.Data() {
			want[i] = float64(v)
		}
		for _, steps := range [][]int{{1, 1, 1, 1, 1, 1, 1}, {3, 1, 2, 1}} {
			s, at := start, 0
			var parts []*tensor.Tensor
			for _, width := range steps {
				var logits *tensor.Tensor
				logits, s = decode(m.net, nil, s, column(ids, n, l, at, at+width), width, hooks{})
				parts = append(parts, logits)
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
		start, ids := toyState(m, toyBatch, l)
		n := len(toyBatch)
		_, s := decode(m.net, nil, start, column(ids, n, l, 0, 2), 2, hooks{})
		next := column(ids, n, l, 2, 3)
		want, _ := decode(m.net, nil, s, next, 1, hooks{})

		choice := []int{2, 0, 0, 3} // leaves out, repeats, and changes the order
		var chosen []int
		for _, i := range choice {
			chosen = append(chosen, next[i])
		}
		got, _ := decode(m.net, nil, s.choose(nil, choice), chosen, 1, hooks{})
		for row, i := range choice {
			tensortest.Same(t, c.name()+": chosen sequence", slices.Clone(rowOf(got, row)), rowOf(want, i))
		}
		again, _ := decode(m.net, nil, s, next, 1, hooks{})
		tensortest.Same(t, c.name()+": the state after a choice and a step from it", again.Data(), want.Data())
	}
}

// rowOf returns sequence i of a batch.
func rowOf(x *tensor.Tensor, i int) []float32 {
	n := x.Len() / x.Dim(0)
	return x.Data()[i*n : (i+1)*n]
}

// The others of a batch, and the padding that they cause, change nothing.
func TestCompanyAndPadding(t *testing.T) {
	for _, c := range toyConfigs() {
		m := newToy(t, c, toyBatch)
		var all []example
		for _, p := range toyBatch {
			all = append(all, m.example(p))
		}
		together, targets := m.logits(nil, all, hooks{})
		if together.Dim(0) != len(targets) {
			t.Errorf("%s: %d vectors of logits for %d targets", c.name(), together.Dim(0), len(targets))
		}
		rest := together.Data()
		for i, e := range all {
			alone, write := m.logits(nil, []example{e}, hooks{})
			tensortest.Same(t, c.name()+": "+toyBatch[i].Source, rest[:alone.Len()], alone.Data())
			if rest = rest[alone.Len():]; !slices.Equal(write, targets[:len(write)]) || !slices.Equal(write, e.write) {
				t.Errorf("%s: targets %v of %s, alone %v, want %v", c.name(), targets, toyBatch[i].Source, write, e.write)
			}
			targets = targets[len(write):]
		}
	}
}

func TestAnyNumberOfThreads(t *testing.T) {
	pairs := toyPairs(23)
	grads := func(c Config, procs int) []float32 {
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

// An untrained network knows nothing: its loss is about that of guessing, which
// shows that embeddings and states have the size they should.
func TestUntrainedLoss(t *testing.T) {
	pairs := toyPairs(64)
	for _, c := range toyConfigs() {
		c.Width, c.Layers = 48, 1
		m := newToy(t, c, pairs)
		loss, guess := float64(toyLoss(m, nil, pairs).Item()), math.Log(float64(m.Target.Len()))
		if loss < 0.6*guess || loss > 2*guess {
			t.Errorf("%s: loss %.2f before training, want about ln %d = %.2f", c.name(), loss, m.Target.Len(), guess)
		}
	}
}
