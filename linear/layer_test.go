package linear_test

import (
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/linear"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// layers returns layers of all kinds of width 24.
func layers(t *testing.T, r *rand.Rand) map[string]*linear.Layer {
	configs := map[string]linear.LayerConfig{
		"linear":   {Width: 24, Heads: 3, Feature: linear.ELU1, Normalize: true},
		"exp":      {Width: 24, Heads: 4, KeyHeads: 2, KeySize: 5, ValueSize: 3, Feature: linear.Exp, Normalize: true, Conv: 2},
		"retnet":   {Width: 24, Heads: 2, Decay: linear.Slopes{0.1, 0.5}, OutNorm: nn.NewRMSNorm(12), OutGate: tensor.SiLU},
		"deltanet": {Width: 24, Heads: 4, KeySize: 5, ValueSize: 7, Feature: linear.Unit, Beta: 2, Bias: true},
		"gated deltanet": {
			Width: 24, Heads: 4, KeyHeads: 2, KeySize: 8, ValueSize: 6, Feature: linear.Unit, Beta: 1, Conv: 4,
			Decay: linear.NewStepDecay(24, 4, 1, r), OutNorm: nn.NewRMSNorm(6), OutGate: tensor.SiLU,
		},
		"kimi": {Width: 24, Heads: 2, KeySize: 8, ValueSize: 8, Feature: linear.Unit, Beta: 1, Conv: 3, Decay: linear.NewStepDecay(24, 2, 8, r)},
	}
	all := map[string]*linear.Layer{}
	for _, name := range slices.Sorted(maps.Keys(configs)) {
		l, err := linear.NewLayer(configs[name], r)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = l
	}
	return all
}

// inOrder iterates over layers by name, so that each draws the same numbers.
func inOrder(layers map[string]*linear.Layer) iter.Seq2[string, *linear.Layer] {
	return func(yield func(string, *linear.Layer) bool) {
		for _, name := range slices.Sorted(maps.Keys(layers)) {
			if !yield(name, layers[name]) {
				return
			}
		}
	}
}

// Pieces of sequences of different lengths, forks and joined states have the bits of the whole.
func TestExtend(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	const n = 23
	for name, l := range inOrder(layers(t, r)) {
		x := tensor.Randn(r, 2, n, 24)
		lens := []int{n, 15}
		want := l.Forward(nil, x, linear.Options{Lens: lens})
		a, err := l.NewState(1)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := l.NewState(1)
		s := a.Join(b)
		for at := 0; at < n; {
			m := min(1+r.IntN(7), n-at)
			part := tensor.Slice(nil, x, 1, at, at+m)
			o := linear.Options{Lens: []int{m, min(max(15-at, 0), m)}}
			for i := range part.Data() {
				if row := i / 24; row >= m+o.Lens[1] {
					part.Data()[i] = float32(math.NaN()) // padding
				}
			}
			if r.IntN(2) == 0 {
				s = s.Select([]int{0, 1})
			}
			y := l.Extend(nil, part, s, o)
			if part := tensor.Slice(nil, want.Out, 1, at, at+m); !slices.Equal(y.Out.Data()[:m*24], part.Data()[:m*24]) ||
				!slices.Equal(y.Out.Data()[m*24:][:o.Lens[1]*24], part.Data()[m*24:][:o.Lens[1]*24]) {
				t.Fatalf("%s: tokens %d to %d have other bits", name, at, at+m)
			}
			at += m
		}
		if !slices.Equal(s.State().Tensor(nil).Data(), want.State.Data()) {
			t.Errorf("%s: the state has other bits", name)
		}
	}
}

// Gradients of parameters are slopes.
func TestLayerGradients(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 24))
	for name, l := range inOrder(layers(t, r)) {
		x, w := tensor.Randn(r, 1, 7, 24), tensor.Randn(r, 1, 7, 24)
		loss := func(t *tensor.Tape) *tensor.Tensor {
			return tensor.Sum(t, tensor.Mul(t, l.Forward(t, x, linear.Options{}).Out, w))
		}
		tape := tensor.NewTape(tensor.Eval)
		tape.Backward(loss(tape), nil)
		for p, x := range l.Params() {
			for range 3 {
				i := r.IntN(x.Len())
				v, h := x.Data()[i], float32(1.0/256)
				x.Data()[i] = v + h
				up := loss(nil).Data()[0]
				x.Data()[i] = v - h
				down := loss(nil).Data()[0]
				x.Data()[i] = v
				want, got := float64(up-down)/float64(2*h), float64(x.Grad().Data()[i])
				if !(math.Abs(got-want) < 0.01*(1+math.Abs(want))) {
					t.Errorf("%s: d%s[%d] is %v, want %v", name, p, i, got, want)
				}
			}
		}
	}
}

func TestLayerParams(t *testing.T) {
	var names []string
	for name := range layers(t, rand.New(rand.NewPCG(1, 1)))["gated deltanet"].Params() {
		names = append(names, name)
	}
	want := "q.weight k.weight v.weight conv.weight decay.step.weight decay.step.bias decay.a beta.weight norm.weight gate.weight out.weight"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("parameters %s, want %s", got, want)
	}
}

func TestLayerErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for want, c := range map[string]linear.LayerConfig{
		"width 0":              {Heads: 2},
		"not divisible by 3":   {Width: 8, Heads: 3},
		"heads of keys":        {Width: 8, Heads: 4, KeyHeads: 3},
		"is negative":          {Width: 8, Heads: 4, Conv: -1},
		"beta -1":              {Width: 8, Heads: 4, Beta: -1},
		"without a feature":    {Width: 8, Heads: 4, Normalize: true},
		"want at most 1.1e+12": {Width: 1 << 30, Heads: 1, KeySize: 1 << 30, ValueSize: 1},
	} {
		if _, err := linear.NewLayer(c, r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	if _, err := linear.NewLayer(linear.LayerConfig{Width: 8, Heads: 2}, nil); err == nil || !strings.Contains(err.Error(), "rng is nil") {
		t.Errorf("error %v for a nil rng", err)
	}
	l, _ := linear.NewLayer(linear.LayerConfig{Width: 8, Heads: 2}, r)
	s, _ := l.NewState(1)
	for want, f := range map[string]func(){
		"want [B L Width=8]":   func() { l.Forward(nil, tensor.Zeros(1, 2, 9), linear.Options{}) },
		"they are the layer's": func() { l.Forward(nil, tensor.Zeros(1, 2, 8), linear.Options{Feature: linear.Unit}) },
		"one from NewState":    func() { l.Extend(nil, tensor.Zeros(1, 2, 8), nil, linear.Options{}) },
		"an inference tape":    func() { l.Extend(tensor.NewTape(tensor.Eval), tensor.Zeros(1, 2, 8), s, linear.Options{}) },
		"continue the State":   func() { l.Extend(nil, tensor.Zeros(1, 2, 8), s, linear.Options{Documents: [][]int{{2}}}) },
		"sizes [B G E V]":      func() { l.Extend(nil, tensor.Zeros(2, 2, 8), s, linear.Options{}) },
	} {
		if err := tensor.Catch(f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// NaN in padding changes nothing, outputs of padding and gradients included; and a head with a gate of 0 adds nothing.
func TestLayerPadding(t *testing.T) {
	r := rand.New(rand.NewPCG(25, 26))
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	all := layers(t, r)
	norm := nn.NewLayerNorm(6)
	norm.Bias, norm.Eps = tensor.Randn(r, 6).Param(), 0
	all["layer norm"], _ = linear.NewLayer(linear.LayerConfig{Width: 24, Heads: 4, Feature: linear.Unit, Beta: 1, Conv: 2, Bias: true, OutNorm: norm, OutGate: tensor.Sigmoid}, r)
	for name, l := range inOrder(all) {
		x := tensor.Randn(r, 2, 5, 24).Param()
		for _, o := range []linear.Options{{Lens: []int{5, 2}}, {Documents: [][]int{{2, 5}, {2, 2}}}} {
			run := func() [][]float32 {
				tape := tensor.NewTape(tensor.Eval)
				y := l.Forward(tape, x, o)
				x.ZeroGrad()
				for _, p := range l.Params() {
					p.ZeroGrad()
				}
				tape.Backward(tensor.Sum(tape, tensor.Mul(tape, tensor.Slice(tape, y.Out, 1, 0, 2), tensor.Full(0.3, 2, 2, 24))), nil)
				bits := [][]float32{y.Out.Data(), y.State.Data(), slices.Clone(x.Grad().Data())}
				for _, p := range l.Params() {
					bits = append(bits, slices.Clone(p.Grad().Data()))
				}
				return bits
			}
			clear(x.Data()[7*24:])
			want := run()
			for i := 7 * 24; i < x.Len(); i++ {
				x.Data()[i] = []float32{nan, inf}[i%2]
			}
			for i, got := range run() {
				if !slices.Equal(got, want[i]) {
					t.Fatalf("%s: NaN in padding changes result %d", name, i)
				}
			}
		}
		clear(x.Data()[7*24:])
		gates := tensor.Full(1, l.Config().Heads)
		gates.Data()[1] = 0
		var outputs *tensor.Tensor
		gated := l.Forward(nil, x, linear.Options{Gates: gates, Inspect: func(_ string, p attn.Parts) { outputs = p.Outputs() }}).Out
		heads := tensor.Transpose(nil, attn.GateHeads(nil, outputs, gates), 0, 2, 1, 3)
		if want := l.Out.Forward(nil, tensor.Reshape(nil, heads, 2, 5, heads.Dim(2)*heads.Dim(3))); !slices.Equal(gated.Data(), want.Data()) {
			t.Errorf("%s: gates do not multiply what the last map reads", name)
		}
	}
}

// A layer with fewer heads computes what gates of 0 for the others leave, step by step, too.
func TestKeep(t *testing.T) {
	r := rand.New(rand.NewPCG(27, 28))
	all := layers(t, r)
	var err error
	if all["bias"], err = linear.NewLayer(linear.LayerConfig{Width: 24, Heads: 6, KeyHeads: 3, KeySize: 3, ValueSize: 5, Beta: 1, Conv: 3, Bias: true, Decay: linear.NewStepDecay(24, 6, 3, r)}, r); err != nil {
		t.Fatal(err)
	}
	for name, l := range inOrder(all) {
		h := l.Heads()
		var heads []int
		gates := tensor.Zeros(h.Heads)
		for i := range h.Heads {
			if i/h.Group != 0 {
				heads, gates.Data()[i] = append(heads, i), 1
			}
		}
		kept, err := l.Keep(heads)
		if err != nil {
			t.Fatal(err)
		}
		x := tensor.Randn(r, 2, 6, 24)
		want, got := l.Forward(nil, x, linear.Options{Gates: gates}).Out, kept.Forward(nil, x, linear.Options{}).Out
		s, _ := kept.NewState(2)
		a, b := tensor.Slice(nil, x, 1, 0, 5), tensor.Slice(nil, x, 1, 5, 6)
		pieces := tensor.Concat(nil, 1, kept.Extend(nil, a, s, linear.Options{}).Out, kept.Extend(nil, b, s, linear.Options{}).Out)
		if !slices.Equal(pieces.Data(), got.Data()) {
			t.Errorf("%s: pieces have other bits", name)
		}
		for i, y := range want.Data() {
			if d := math.Abs(float64(got.Data()[i] - y)); !(d < 1e-5) {
				t.Fatalf("%s without the first heads: output %d is %v, want %v", name, i, got.Data()[i], y)
			}
		}
		for name, p := range kept.Params() {
			if !p.NeedsGrad() {
				t.Errorf("%s is no parameter", name)
			}
		}
	}
	l := all["gated deltanet"]
	own, _ := linear.NewLayer(linear.LayerConfig{Name: "own", Width: 4, Heads: 2, Decay: struct{ linear.Decay }{linear.Slopes{1, 2}}}, r)
	packed, _ := linear.NewLayer(linear.LayerConfig{Width: 4, Heads: 2}, r)
	packed.Q.Weight = nil
	for want, f := range map[string]func() (*linear.Layer, error){
		`linear: Keep: heads [1 2] of layer "", want whole groups of 2 that share keys and values`: func() (*linear.Layer, error) { return l.Keep([]int{1, 2}) },
		`linear: Keep: heads [2 2] of layer "", want ascending numbers below 4`:                    func() (*linear.Layer, error) { return l.Keep([]int{2, 2}) },
		`linear: Keep: no heads of layer "", want at least one`:                                    func() (*linear.Layer, error) { return l.Keep(nil) },
		`linear: Keep: layer "own" has a decay of type struct { linear.Decay }, want one with a method Keep(heads []int) linear.Decay`: func() (*linear.Layer, error) {
			return own.Keep([]int{1})
		},
		`linear: Keep: layer "" has a map whose weights are packed for inference, want parameters; models.Options{Trainable: true} loads them`: func() (*linear.Layer, error) {
			return packed.Keep([]int{1})
		},
	} {
		if _, err := f(); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// SequenceFirst swaps the first two axes of the input and the output, and nothing else.
func TestLayout(t *testing.T) {
	r := rand.New(rand.NewPCG(29, 30))
	swap := func(x *tensor.Tensor) *tensor.Tensor { return tensor.Transpose(nil, x, 1, 0, 2) }
	c := linear.LayerConfig{Width: 6, Heads: 2, Beta: 1, Conv: 2, Init: nn.NewLinear}
	l, err := linear.NewLayer(c, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	c.Layout = attn.SequenceFirst
	m, _ := linear.NewLayer(c, rand.New(rand.NewPCG(1, 1)))
	x, o := tensor.Randn(r, 3, 5, 6), linear.Options{Lens: []int{5, 2, 4}, Gates: tensor.Randn(r, 3, 2)}
	want := l.Forward(nil, x, o)
	got := m.Forward(nil, swap(x), o)
	s, _ := m.NewState(3)
	state := m.Extend(nil, swap(x), s, o)
	if !slices.Equal(swap(got.Out).Data(), want.Out.Data()) || !slices.Equal(got.State.Data(), want.State.Data()) || !slices.Equal(state.Out.Data(), got.Out.Data()) {
		t.Error("SequenceFirst has other bits")
	}
	if err := tensor.Catch(func() { m.Forward(nil, tensor.Zeros(1, 2, 5), linear.Options{}) }); err == nil || !strings.Contains(err.Error(), "want [L B Width=6]") {
		t.Errorf("error %v", err)
	}
	c.Layout = 2
	if _, err := linear.NewLayer(c, r); err == nil || err.Error() != "linear: NewLayer: layout 2 is neither BatchFirst nor SequenceFirst" {
		t.Errorf("error %v", err)
	}
}

// A state without heads is that of a convolution alone: tokens in pieces have the bits of all at once, in forks, in files and
// after all tokens were taken back.
func TestConvolutionState(t *testing.T) {
	rng := rand.New(rand.NewPCG(41, 42))
	conv := nn.NewCausalConv(5, 3, true, rng)
	x := tensor.Randn(rng, 2, 7, 5)
	whole, _ := conv.Forward(nil, x, nil, nil)
	step := func(s *linear.LayerState, from, to int, lens []int) *tensor.Tensor {
		var ends [][]int
		for _, n := range lens {
			ends = append(ends, []int{n})
		}
		y, last := conv.Forward(nil, tensor.Slice(nil, x, 1, from, to), s.Inputs(), ends)
		s.Read(last, to-from, lens)
		return y
	}
	want := func(what string, got *tensor.Tensor, from, to int) {
		t.Helper()
		if part := tensor.Slice(nil, whole, 1, from, to); !slices.Equal(got.Data(), part.Data()) {
			t.Errorf("%s: outputs of tokens %d to %d differ", what, from, to)
		}
	}
	s := linear.NewLayerState(2, conv, nil)
	want("first", step(s, 0, 1, nil), 0, 1)
	want("next", step(s, 1, 4, nil), 1, 4)
	path := filepath.Join(t.TempDir(), "state.safetensors")
	if err := s.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	read := linear.NewLayerState(2, conv, nil)
	if err := read.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	fork := s.Select([]int{0}).Join(s.Select([]int{1}))
	want("original", step(s, 4, 7, nil), 4, 7)
	want("fork", step(fork, 4, 7, nil), 4, 7)
	want("file", step(read, 4, 7, nil), 4, 7)
	if lens := read.Lens(); !slices.Equal(lens, []int{7, 7}) || s.Bytes() != 4*2*2*5 {
		t.Errorf("%v tokens, %d bytes", lens, s.Bytes())
	}
	if err := tensor.Catch(func() { fork.Truncate(5) }); err == nil {
		t.Error("tokens are taken back from a convolution")
	}
	fork.Truncate(0)
	want("again", step(fork, 0, 3, nil), 0, 3)
	uneven := linear.NewLayerState(2, conv, nil)
	step(uneven, 0, 2, []int{2, 1})
	if lens := uneven.Lens(); !slices.Equal(lens, []int{2, 1}) {
		t.Errorf("%v tokens, want 2 and 1", lens)
	}
	if none := linear.NewLayerState(3, nil, nil); none.Inputs() != nil || !slices.Equal(none.Lens(), []int{0, 0, 0}) {
		t.Error("a state of nothing has inputs or tokens")
	}
}
