package onnx_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/linear"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/onnx"
	"github.com/attn-go/attn/tensor"
)

// eachLinear runs f with the operator of ONNX and with that of ONNX Runtime.
func eachLinear(t *testing.T, f func(t *testing.T, o onnx.LinearOptions)) {
	for _, o := range []onnx.LinearOptions{{}, {Opset: 17, Domain: onnx.RuntimeDomain}, {Domain: onnx.RuntimeDomain}} {
		t.Run(fmt.Sprint(o.Opset, o.Domain), func(t *testing.T) { f(t, o) })
	}
}

func TestLinear(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	const width = 12
	gated := func(heads, size int) linear.Decay { return linear.NewStepDecay(width, heads, size, rng) }
	for _, c := range []struct {
		name   string
		config linear.LayerConfig
		rule   string
	}{
		{"linear", linear.LayerConfig{}, "linear"},
		{"normalised", linear.LayerConfig{Feature: linear.ELU1, Normalize: true, KeySize: 5, ValueSize: 3}, "linear"},
		{"normalised, zeros", linear.LayerConfig{Feature: tensor.ReLU, Normalize: true, KeySize: 2, ValueSize: 3, Conv: 3}, "linear"},
		{"slopes", linear.LayerConfig{Decay: linear.Slopes{0.1, 0.4, 0, 2}, Feature: tensor.Softplus}, "gated"},
		{"a decay for each element", linear.LayerConfig{Decay: gated(4, 5), KeySize: 5, KeyHeads: 2}, "gated"},
		{"delta", linear.LayerConfig{Beta: 1, Feature: linear.Unit, Conv: 4}, "delta"},
		{"gated delta", linear.LayerConfig{
			Beta: 2, Feature: linear.Unit, Decay: gated(4, 1), Conv: 4, KeyHeads: 2, KeySize: 5, ValueSize: 7, Bias: true,
			OutNorm: nn.NewRMSNorm(7), OutGate: tensor.SiLU,
		}, "gated_delta"},
		{"a convolution of one token", linear.LayerConfig{Beta: 1, Feature: linear.Unit, Conv: 1}, "delta"},
		{"without a convolution", linear.LayerConfig{Beta: 1, Decay: gated(4, 1), OutGate: tensor.Sigmoid}, "gated_delta"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.config.Width, c.config.Heads = width, 4
			layer, err := linear.NewLayer(c.config, rng)
			if err != nil {
				t.Fatal(err)
			}
			randomise(layer, rng)
			x := tensor.Randn(rng, b, lk, width)
			want := layer.Forward(nil, x, linear.Options{})
			eachLinear(t, func(t *testing.T, o onnx.LinearOptions) {
				model, err := onnx.FromLinear(layer, o)
				if err != nil {
					t.Fatal(err)
				}
				m, _ := Check(t, model, arrays{"x": array(x)}, arrays{"out": array(want.Out)})
				for _, n := range m.Graph.Nodes {
					if n.Op == "LinearAttention" && (n.Attributes["update_rule"].Text != c.rule || n.Domain != o.Domain) {
						t.Errorf("rule %s of domain %q, want %s of %q", n.Attributes["update_rule"].Text, n.Domain, c.rule, o.Domain)
					}
				}
				domains, opset, ir := map[string]int64{}, int64(27), int64(13)
				if o.Domain != "" {
					domains[o.Domain], opset, ir = 1, 23, 11
				}
				if o.Opset == 17 {
					opset, ir = 17, 8
				}
				if m.Opset != opset || m.IR != ir || !maps.Equal(m.Domains, domains) {
					t.Errorf("opset %d, IR %d, domains %v, want %d, %d, %v", m.Opset, m.IR, m.Domains, opset, ir, domains)
				}

				// In pieces, with a state.
				if o.State = true; o.Opset == 17 {
					return
				}
				if model, err = onnx.FromLinear(layer, o); err != nil {
					t.Fatal(err)
				}
				past := arrays{}
				config := layer.Config()
				columns := want.State.Dim(3)
				past["past.heads"] = whole(make([]int, b*4*config.KeySize*columns), b, 4, config.KeySize, columns)
				if layer.Conv != nil {
					channels := layer.Conv.Weight.Dim(2)
					past["past.inputs"] = whole(make([]int, b*(config.Conv-1)*channels), b, config.Conv-1, channels)
				}
				for at := 0; at < lk; {
					to := min(at+3, lk)
					t.Run(fmt.Sprint("from ", at), func(t *testing.T) {
						in := maps.Clone(past)
						in["x"] = array(tensor.Slice(nil, x, 1, at, to))
						outs := arrays{"out": array(tensor.Slice(nil, want.Out, 1, at, to))}
						if to == lk {
							outs["present.heads"] = array(want.State)
						}
						_, got := Check(t, model, in, outs)
						for name := range past {
							past[name] = got["present"+name[len("past"):]]
						}
					})
					at = to
				}
			})
		})
	}
}

// Attend with any number of heads, decays and strengths is one node.
func TestLinearAttention(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	const h, g, e, size = 6, 2, 5, 3
	decays := func(shape ...int) *tensor.Tensor {
		x := tensor.Randn(rng, shape...)
		for i, d := range x.Data() {
			x.Data()[i] = -0.2 * d * d
		}
		return x
	}
	side := func(x *tensor.Tensor) *tensor.Tensor { // heads side by side
		x = tensor.Transpose(nil, x, 0, 2, 1, 3)
		return tensor.Reshape(nil, x, x.Dim(0), x.Dim(1), x.Dim(2)*x.Dim(3))
	}
	q, k, v := tensor.Randn(rng, b, h, lk, e), linear.Unit(nil, tensor.Randn(rng, b, g, lk, e)), tensor.Randn(rng, b, g, lk, size)
	for name, o := range map[string]linear.Options{
		"decay":                    {Decay: decays(b, g, lk), Scale: -0.3},
		"decay of each, beta":      {Decay: decays(b, g, lk, e), Beta: tensor.Full(0.7, b, g, lk)},
		"beta and the first state": {Beta: tensor.Full(1.5, b, g, lk), State: tensor.Randn(rng, b, g, e, size)},
	} {
		t.Run(name, func(t *testing.T) {
			want := linear.Attend(nil, q, k, v, o)
			eachLinear(t, func(t *testing.T, options onnx.LinearOptions) {
				in := arrays{}
				if options.Opset == 0 && options.Domain == "" {
					options.Opset = 27
				}
				model, err := onnx.Build("attend", options.Opset, func(graph *onnx.Graph) {
					input := func(name string, x *tensor.Tensor) onnx.Value {
						in[name] = array(x)
						axes := []onnx.Axis{onnx.Named("batch"), onnx.Named("length")}
						for _, n := range x.Shape()[2:] {
							axes = append(axes, onnx.Sized(n))
						}
						if name == "state" {
							axes[1] = onnx.Sized(g)
						}
						return graph.Input(name, onnx.Float32, axes...)
					}
					a := onnx.LinearAttention{Heads: h, KVHeads: g, Scale: o.Scale, Domain: options.Domain}
					a.Query, a.Key, a.Value = input("q", side(q)), input("k", side(k)), input("v", side(v))
					switch {
					case o.Decay != nil && o.Decay.Rank() == 3:
						a.Decay = input("decay", tensor.Transpose(nil, o.Decay, 0, 2, 1))
					case o.Decay != nil:
						a.Decay = input("decay", side(o.Decay))
					}
					if o.Beta != nil {
						a.Beta = input("beta", tensor.Transpose(nil, o.Beta, 0, 2, 1))
					}
					if o.State != nil {
						a.State = input("state", o.State)
					}
					out, state := graph.LinearAttention(a)
					graph.Output("out", out, onnx.Float32, onnx.Named("batch"), onnx.Named("length"), onnx.Sized(h*size))
					graph.Output("last", state, onnx.Float32, onnx.Named("batch"), onnx.Sized(g), onnx.Sized(e), onnx.Sized(size))
				})
				if err != nil {
					t.Fatal(err)
				}
				Check(t, model, in, arrays{"out": array(side(want.Out)), "last": array(want.State)})
			})
		})
	}
}

// ownDecay is a user-defined type.
type ownDecay struct{ linear.Slopes }

func TestLinearRefuses(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	for want, c := range map[string]struct {
		config linear.LayerConfig
		o      onnx.LinearOptions
	}{
		`onnx: linear: the operator LinearAttention of ONNX with opset 23, want opset 27, or the domain "com.microsoft"`:                {o: onnx.LinearOptions{Opset: 23}},
		`onnx: linear: the operator LinearAttention of domain "ai.onnx", want "com.microsoft", or none for that of ONNX`:                {o: onnx.LinearOptions{Domain: "ai.onnx"}},
		"onnx: decay: a decay of type onnx_test.ownDecay, want linear.Slopes or *linear.StepDecay":                                      {config: linear.LayerConfig{Decay: ownDecay{linear.Slopes{1, 2}}}},
		"onnx: linear: the feature is a custom function, want linear.Unit, linear.ELU1 or an activation of package tensor":              {config: linear.LayerConfig{Feature: tensor.Exp}},
		"onnx: gate: the activation is a custom function, want tensor.ReLU, GELU, TanhGELU, QuickGELU, SiLU, Softplus, Tanh or Sigmoid": {config: linear.LayerConfig{OutGate: tensor.Exp}},
		"onnx: linear: the layer has the layout SequenceFirst, want BatchFirst":                                                         {config: linear.LayerConfig{Layout: attn.SequenceFirst}},
		"onnx: norm: a layer of type onnx_test.ownNorm, want *nn.Linear, *nn.FeedForward, *nn.LayerNorm, *nn.RMSNorm or nn.L2Norm":      {config: linear.LayerConfig{OutNorm: ownNorm{}}},
	} {
		c.config.Width, c.config.Heads = 6, 2
		layer, err := linear.NewLayer(c.config, rng)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := onnx.FromLinear(layer, c.o); err == nil || err.Error() != want {
			t.Errorf("error %v\nwant  %s", err, want)
		}
	}
}
