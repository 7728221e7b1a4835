package attn_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/observe"
	"github.com/attn-go/attn/optim"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// gatedLayers are layers of every kind from which heads can be removed, for both paths through
// Attend.
func gatedLayers() map[string]attn.MultiHeadConfig {
	gaussian := &score.Gaussian{W: tensor.Full(0.7, 3).Param()}
	return map[string]attn.MultiHeadConfig{
		"plain":                    {Width: 15, Heads: 5},
		"biases":                   {Width: 15, Heads: 5, Bias: attn.AllProjections},
		"sequence first":           {Width: 15, Heads: 5, Bias: attn.AllProjections, Layout: attn.SequenceFirst},
		"grouped":                  {Width: 15, Heads: 6, KVHeads: 3, HeadSize: 5, ValueSize: 7, Bias: attn.AllProjections},
		"extra keys":               {Width: 15, Heads: 6, KVHeads: 3, HeadSize: 5, BiasKV: true, ZeroKV: true},
		"output gates":             {Width: 15, Heads: 6, KVHeads: 3, HeadSize: 5, ValueSize: 7, Bias: attn.AllProjections, OutputGate: attn.OutputGate{Activation: tensor.Sigmoid}},
		"output gates of heads":    {Width: 15, Heads: 5, Layout: attn.SequenceFirst, OutputGate: attn.OutputGate{Activation: tensor.Softplus, Size: 1}},
		"maps of their own":        {Width: 15, Heads: 5, Bias: attn.Value},
		"additive":                 {Width: 15, Heads: 5, Score: score.NewAdditive(3, 3, 11, newRand(2))},
		"gaussian":                 {Width: 15, Heads: 5, Bias: attn.AllProjections, Score: gaussian},
		"gaussian, sequence first": {Width: 15, Heads: 5, Layout: attn.SequenceFirst, Score: gaussian},
	}
}

// A pruned layer has the same output as the whole layer with gates of zero for the removed heads,
// and the same gradients for the remaining heads.
func TestKeepIsGatesOfZero(t *testing.T) {
	for name, c := range gatedLayers() {
		layer := mustMultiHead(t, c)
		h, groups := layer.Config().Heads, layer.Config().KVHeads
		x, dout := tensor.Randn(newRand(3), 7, 7, 15), tensor.Randn(newRand(5), 7, 7, 15)
		for _, keep := range [][]int{nil, {0, 1}, {2, 3}, {0, 1, 4, 5}, {1, 4}, {0, 1, 2, 3, 4}, {0, 1, 2, 3, 4, 5}} {
			small, err := layer.Keep(keep)
			if len(keep) > 0 && keep[len(keep)-1] >= h || groups < h && (len(keep)%2 > 0 || slices.Equal(keep, []int{1, 4})) {
				if err == nil {
					t.Errorf("%s: keeping %v is no error", name, keep)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			o := attn.Options{Mask: mask.Lengths(3, 7, 5, 1, 0, 2, 6), Weights: true}
			got := runLayer(small, x, x, x, dout, o)
			o.Gates = tensor.Zeros(h)
			for _, k := range keep {
				o.Gates.Data()[k] = 1
			}
			want := runLayer(layer, x, x, x, dout, o)
			what := fmt.Sprintf("%s: keeping %v", name, keep)
			near(t, what, got, restrict(layer, want, keep))
			if got["out"].Len() == 0 || magnitude(got["out"]) == 0 && len(keep) > 0 {
				t.Errorf("%s: no output", what)
			}
		}
	}
}

// restrict returns the part of a layer's trace that belongs to some of its heads.
func restrict(m *attn.MultiHead, whole trace, keep []int) trace {
	c := m.Config()
	var groups []int
	for _, h := range keep {
		if g := h / (c.Heads / c.KVHeads); !slices.Contains(groups, g) {
			groups = append(groups, g)
		}
	}
	blocks := func(x *tensor.Tensor, axis, size int, list []int) *tensor.Tensor {
		if len(list) == 0 {
			shape := slices.Clone(x.Shape())
			shape[axis] = 0
			return tensor.Zeros(shape...)
		}
		var parts []*tensor.Tensor
		for _, b := range list {
			parts = append(parts, pick(x, axis, b*size, (b+1)*size))
		}
		return tensor.Concat(nil, axis, parts...)
	}
	part := trace{}
	for name, x := range whole {
		switch {
		case name == "weights":
			x = blocks(x, 1, 1, keep)
		case name == "dout.weight":
			x = blocks(x, 1, c.ValueSize, keep)
		case strings.HasPrefix(name, "dq."):
			x = blocks(x, 0, c.HeadSize, keep)
		case strings.HasPrefix(name, "dgate."):
			x = blocks(x, 0, c.OutputGate.Size, keep)
		case strings.HasPrefix(name, "dk."):
			x = blocks(x, 0, c.HeadSize, groups)
		case strings.HasPrefix(name, "dv."):
			x = blocks(x, 0, c.ValueSize, groups)
		case strings.HasPrefix(name, "dbias_"):
			x = blocks(x, 2, c.HeadSize, groups)
		case strings.HasPrefix(name, "dscore.") && len(keep) == 0:
			x = tensor.Zeros(x.Shape()...)
		}
		part[name] = x
	}
	return part
}

func TestGateGradients(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: differences")
	}
	for name, c := range gatedLayers() {
		m := mustMultiHead(t, c)
		x := tensor.Randn(newRand(7), 3, 3, 15)
		o := attn.Options{Mask: mask.Lengths(3, 1, 2)}
		for _, gates := range []*tensor.Tensor{
			tensor.Randn(newRand(11), m.Config().Heads),
			tensor.Randn(newRand(13), 3, m.Config().Heads),
		} {
			tensortest.GradCheck(t, name, func(tape *tensor.Tape, in []*tensor.Tensor) *tensor.Tensor {
				o.Gates = in[1]
				return m.Forward(tape, in[0], in[0], in[0], o).Out
			}, []*tensor.Tensor{x, gates})
		}
	}
	q, gates := tensor.Randn(newRand(17), 2, 5, 3), tensor.Randn(newRand(19), 2, 1)
	tensortest.GradCheck(t, "one head", func(tape *tensor.Tape, in []*tensor.Tensor) *tensor.Tensor {
		return attn.Attend(tape, in[0], in[0], in[0], attn.Options{Gates: in[1]}).Out
	}, []*tensor.Tensor{q, gates})
}

// A query without an upstream gradient adds nothing to any gradient, including its gate's, even
// if the query and the output of its head are NaN.
func TestGradientsOfPadding(t *testing.T) {
	overwriteLast := func(x *tensor.Tensor, axis int, bad float32) *tensor.Tensor { // of the last query
		x = x.Clone()
		rest := pick(x, axis, 0, x.Dim(axis)-1)
		shape := append([]int(nil), x.Shape()...)
		shape[axis] = 1
		return tensor.Concat(nil, axis, rest, tensor.Full(bad, shape...))
	}
	for _, bad := range poisons {
		eachScore(t, func(t *testing.T, c scoreCase) {
			clean := newCall(c, usual)
			clean.dweights = nil
			clean.dout = overwriteLast(clean.dout, 2, 0)
			for _, shape := range [][]int{{usual.h}, {usual.b, usual.h}} {
				grads := func(c call) trace {
					c = c.bias(usual.b, usual.h, usual.lq, usual.lk)
					c.o.Gates = tensor.Randn(newRand(29), shape...).Param()
					got := c.run()
					got["dgates"] = c.o.Gates.Grad()
					delete(got, "out")
					delete(got, "weights")
					return got
				}
				spoilt := clean
				spoilt.q = overwriteLast(clean.q, 2, bad)
				same(t, fmt.Sprint("gates ", shape, " with ", bad), grads(spoilt), grads(clean))
			}
		})
		for name, c := range gatedLayers() {
			m := mustMultiHead(t, c)
			x, q, dout := tensor.Randn(newRand(3), 7, 7, 15), tensor.Randn(newRand(4), 7, 7, 15), tensor.Randn(newRand(5), 7, 7, 15)
			axis := 1
			if c.Layout == attn.SequenceFirst {
				axis = 0
			}
			dout = overwriteLast(dout, axis, 0)
			grads := func(q *tensor.Tensor) trace {
				gates := tensor.Randn(newRand(29), m.Config().Heads).Param()
				got := runLayer(m, q, x, x, dout, attn.Options{Gates: gates})
				got["dgates"] = gates.Grad()
				delete(got, "out")
				return got
			}
			same(t, fmt.Sprint(name, " with ", bad), grads(overwriteLast(q, axis, bad)), grads(q))
		}
	}
}

// Gates of one change no bit.
func TestGatesOfOne(t *testing.T) {
	for name, c := range gatedLayers() {
		m := mustMultiHead(t, c)
		x, dout := tensor.Randn(newRand(3), 7, 7, 15), tensor.Randn(newRand(5), 7, 7, 15)
		want := runLayer(m, x, x, x, dout, attn.Options{})
		for _, gates := range []*tensor.Tensor{tensor.Full(1, m.Config().Heads), tensor.Full(1, 7, m.Config().Heads)} {
			same(t, name, runLayer(m, x, x, x, dout, attn.Options{Gates: gates}), want)
		}
	}
}

// The gates of one sequence do not affect other sequences.
func TestGatesOfASequence(t *testing.T) {
	m := mustMultiHead(t, attn.MultiHeadConfig{Width: 15, Heads: 5})
	x := tensor.Randn(newRand(3), 3, 7, 15)
	gates := tensor.Full(1, 3, 5)
	clear(gates.Data()[5:10])
	whole := m.Forward(nil, x, x, x, attn.Options{}).Out
	out := m.Forward(nil, x, x, x, attn.Options{Gates: gates}).Out
	for b := range 3 {
		want := pick(whole, 0, b, b+1)
		if b == 1 {
			want = tensor.Zeros(1, 7, 15)
		}
		tensortest.Same(t, fmt.Sprint("sequence ", b), pick(out, 0, b, b+1).Data(), want.Data())
	}
}

// A gate of zero also removes NaN and infinity.
func TestGateOfZeroRemovesNaN(t *testing.T) {
	for name, c := range gatedLayers() {
		m := mustMultiHead(t, c)
		x, dout := tensor.Randn(newRand(3), 2, 7, 15), tensor.Randn(newRand(5), 2, 7, 15)
		if c.Layout == attn.SequenceFirst {
			x, dout = tensor.Randn(newRand(3), 7, 2, 15), tensor.Randn(newRand(5), 7, 2, 15)
		}
		gates := tensor.Full(1, m.Config().Heads)
		group := m.Config().Heads / m.Config().KVHeads
		clear(gates.Data()[:group])
		want := runLayer(m, x, x, x, dout, attn.Options{Gates: gates})
		m.V.Weight.Data()[0] = float32(math.NaN())
		got := runLayer(m, x, x, x, dout, attn.Options{Gates: gates})
		tensortest.Same(t, name+": out", got["out"].Data(), want["out"].Data())
		for h := group; h < m.Config().Heads; h++ {
			v := m.Config().ValueSize
			tensortest.Same(t, name+": gradient of the output map", pick(got["dout.weight"], 1, h*v, (h+1)*v).Data(),
				pick(want["dout.weight"], 1, h*v, (h+1)*v).Data())
		}
	}
}

// No gradient flows through a gate of zero, whatever the upstream gradient is.
func TestGateOfZeroStopsGradients(t *testing.T) {
	const one = 2 * 5 * 3 // elements per sequence, of two heads
	q, gates, dout := tensor.Randn(newRand(3), 2, 2, 5, 3).Param(), tensor.Full(1, 2, 2), tensor.Randn(newRand(5), 2, 2, 5, 3)
	clear(gates.Data()[2:])
	for i := range dout.Data()[one:] {
		dout.Data()[one+i] = float32(math.NaN())
	}
	tape := tensor.NewTape(tensor.Eval)
	tape.Backward(attn.Attend(tape, q, q, q, attn.Options{Gates: gates}).Out, dout)
	tensortest.Same(t, "the gradient of what is gone", q.Grad().Data()[one:], make([]float32, one))
	if first := pick(q.Grad(), 0, 0, 1); !(magnitude(first) > 0) {
		t.Errorf("the gradient of what is left is %v", first.Data())
	}
}

func TestKeepErrors(t *testing.T) {
	m := mustMultiHead(t, attn.MultiHeadConfig{Name: "encoder.0.self", Width: 12, Heads: 6, KVHeads: 3})
	for _, c := range []struct {
		keep []int
		want string
	}{
		{[]int{1, 0}, `attn: Keep: heads [1 0] of layer "encoder.0.self", want ascending numbers below 6`},
		{[]int{0, 0}, `ascending numbers below 6`},
		{[]int{-1, 0}, `ascending numbers below 6`},
		{[]int{6}, `ascending numbers below 6`},
		{[]int{0}, `whole groups of 2 that share keys and values`},
		{[]int{1, 2}, `whole groups of 2 that share keys and values`},
		{[]int{0, 1, 3, 4}, `whole groups of 2 that share keys and values`},
	} {
		if _, err := m.Keep(c.keep); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("keeping %v: %v, want %s", c.keep, err, c.want)
		}
	}
	none, err := m.Keep(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := none.Keep([]int{0}); err == nil {
		t.Error("a head was kept where there is none")
	}
	if again, err := none.Keep(nil); err != nil || again.Config().Heads != 0 {
		t.Errorf("keeping nothing of nothing: %v", err)
	}
}

// Keep copies parameters: training the whole layer does not change the copy.
func TestKeepCopies(t *testing.T) {
	for _, score := range []attn.Score{
		nil, score.NewAdditive(3, 3, 4, newRand(5)), score.NewBilinear(3, 3, newRand(5)),
		&score.Gaussian{W: tensor.Full(2, 3).Param()}, &score.Cosine{Scale: tensor.Full(2, 1).Param()},
	} {
		keepCopies(t, mustMultiHead(t, attn.MultiHeadConfig{Width: 15, Heads: 5, Bias: attn.AllProjections, Score: score}))
	}
}

func keepCopies(t *testing.T, m *attn.MultiHead) {
	t.Helper()
	small, err := m.Keep([]int{1, 2, 4})
	if err != nil {
		t.Fatal(err)
	}
	x := tensor.Randn(newRand(3), 2, 7, 15)
	want := small.Forward(nil, x, x, x, attn.Options{}).Out
	for _, p := range m.Params() {
		clear(p.Data())
	}
	tensortest.Same(t, "out", small.Forward(nil, x, x, x, attn.Options{}).Out.Data(), want.Data())
	optimizer := optim.NewAdamW(small)
	tape := tensor.NewTape(tensor.Train)
	tape.Backward(tensor.Mean(tape, tensor.Square(tape, small.Forward(tape, x, x, x, attn.Options{}).Out)), nil)
	optimizer.Step(0.1)
	if after := small.Forward(nil, x, x, x, attn.Options{}).Out; slices.Equal(after.Data(), want.Data()) {
		t.Error("what is kept does not learn")
	}
}

// The output of a layer without heads is the bias of its output projection, also step by step.
func TestNoHeads(t *testing.T) {
	for _, layout := range []attn.Layout{attn.BatchFirst, attn.SequenceFirst} {
		m := mustMultiHead(t, attn.MultiHeadConfig{Width: 15, Heads: attn.NoHeads, Bias: attn.AllProjections, Layout: layout})
		if n := nn.Count(m); n != 15 {
			t.Errorf("%d parameters, want the bias alone", n)
		}
		x := tensor.Randn(newRand(3), 2, 7, 15).Param()
		seen := 0
		tape := tensor.NewTape(tensor.Train)
		y := m.Forward(tape, x, x, x, attn.Options{Weights: true, Observers: []attn.Observer{observe.Weights(func(string, *tensor.Tensor) { seen++ })}})
		if seen != 1 || y.Weights.Len() != 0 || y.Weights.Dim(1) != 0 {
			t.Errorf("observed %d times, weights %v", seen, y.Weights.Shape())
		}
		tape.Backward(tensor.Sum(tape, y.Out), nil)
		for i, v := range y.Out.Data() {
			if v != m.Out.Bias.Data()[i%15] {
				t.Fatalf("out %v, want the bias", v)
			}
		}
		if g := m.Out.Bias.Grad().Data()[3]; g != 14 {
			t.Errorf("gradient of the bias is %v, want one for each of 14 vectors", g)
		}
		if layout == attn.SequenceFirst {
			continue
		}
		m.Forward(nil, x, x, x, attn.Options{Gates: shaped(2, 0)})
		for want, o := range map[string]attn.Options{
			`attn: MultiHead: mask has valid length 8, want 0 to Lk=7`:                                       {Mask: mask.Lengths(8, 1)},
			`attn: MultiHead: gates has shape \[3\], want \[H=0\] or \[B=2 H=0\]`:                            {Gates: shaped(3)},
			`attn: MultiHead: bias has shape \[5 5\], want a shape that broadcasts to \[B=2 H=0 Lq=7 Lk=7\]`: {Bias: shaped(5, 5)},
		} {
			wantError(t, tensor.Catch(func() { m.Forward(nil, x, x, x, o) }), want)
		}
		cache := mustCache(t, m, 2, attn.CacheConfig{})
		m.Extend(nil, x, cache, attn.Options{})
		cache = cache.Select([]int{1, 0})
		tensortest.Same(t, "query", m.Extend(nil, x, cache, attn.Options{Mask: mask.Lengths(3, 9)}).Out.Data(), y.Out.Data())
		if lens := cache.Lens(); lens[0] != 14 || lens[1] != 14 {
			t.Errorf("%v keys, want 14", lens)
		}
	}
}

// Heads that share a norm cannot be removed separately.
func TestKeepRefusesNormsOfAllHeads(t *testing.T) {
	m := mustMultiHead(t, attn.MultiHeadConfig{Width: 12, Heads: 3, QueryNorm: nn.NewRMSNorm(12), NormProjections: true})
	_, err := m.Keep([]int{0, 2})
	wantError(t, err, `attn: Keep: layer "" has a norm over all heads together, want a norm of each head`)
}
