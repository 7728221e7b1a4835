package onnx_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/onnx"
	"github.com/attn-go/attn/position"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
)

// arrays are inputs or outputs by name.
type arrays = map[string]*Array

// array converts a tensor for the interpreter.
func array(x *tensor.Tensor) *Array {
	a := &Array{Shape: slices.Clone(x.Shape())}
	for _, v := range x.Data() {
		a.Data = append(a.Data, float64(v))
	}
	return a
}

// whole returns integers, or booleans as 0 and 1.
func whole(list []int, shape ...int) *Array {
	a := &Array{Shape: shape}
	for _, v := range list {
		a.Data = append(a.Data, float64(v))
	}
	return a
}

// eachOpset runs f for all opsets.
func eachOpset(t *testing.T, f func(t *testing.T, opset int)) {
	for _, opset := range []int{17, 23, 27} {
		t.Run(fmt.Sprint(opset), func(t *testing.T) { f(t, opset) })
	}
}

// randomise draws all parameters again, including those that start at 0 or 1.
func randomise(m nn.Module, rng *rand.Rand) {
	for _, p := range m.Params() {
		for i := range p.Data() {
			p.Data()[i] = float32(rng.NormFloat64() / math.Sqrt(float64(p.Dim(-1))))
		}
	}
}

// count returns the number of uses of an operator in a model.
func count(m *Model, op string) int {
	n := 0
	for _, node := range m.Graph.Nodes {
		if node.Op == op {
			n++
		}
	}
	return n
}

func rope(t *testing.T, c position.RoPEConfig) *position.RoPE {
	t.Helper()
	r, err := position.NewRoPE(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const b, lq, lk = 3, 5, 7

func TestMultiHead(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	negative := score.DotScale(-0.3)
	usual := attn.MultiHeadConfig{Width: 66, Heads: 6, Bias: attn.AllProjections}
	with := func(change func(c *attn.MultiHeadConfig)) attn.MultiHeadConfig {
		c := usual
		change(&c)
		return c
	}
	shared := with(func(c *attn.MultiHeadConfig) {
		c.KVHeads, c.HeadSize, c.ValueSize, c.KeyWidth, c.ValueWidth, c.OutWidth, c.Bias = 2, 8, 3, 13, 17, 19, attn.Query|attn.Out
	})
	scored := func(s attn.Score) attn.MultiHeadConfig {
		return with(func(c *attn.MultiHeadConfig) { c.Score = s })
	}
	sharing := func(s attn.Score) attn.MultiHeadConfig {
		c := shared
		c.Score = s
		return c
	}
	placed := func(r position.RoPEConfig) attn.MultiHeadConfig {
		c := shared
		c.Position = rope(t, r)
		return c
	}
	for _, c := range []struct {
		name     string
		config   attn.MultiHeadConfig
		options  onnx.Options
		operator bool // whether the operator of opset 23 suffices
	}{
		{"plain", usual, onnx.Options{}, true},
		{"causal", usual, onnx.Options{Causal: true}, true},
		{"lengths", usual, onnx.Options{Lengths: true}, true},
		{"mask", usual, onnx.Options{Mask: true}, true},
		{"bias", usual, onnx.Options{Bias: true}, true},
		{"everything", shared, onnx.Options{Causal: true, Lengths: true, Mask: true, Bias: true}, true},
		{"everything with a soft-cap", shared, onnx.Options{Causal: true, Lengths: true, Mask: true, Bias: true, SoftCap: 0.7}, false},
		{"shared keys", shared, onnx.Options{}, true},
		{"soft-cap", shared, onnx.Options{SoftCap: 0.7}, false},
		{"sinks", with(func(c *attn.MultiHeadConfig) { c.Sinks = true }), onnx.Options{}, false},
		{"sinks and mask", sharingSinks(shared), onnx.Options{Mask: true}, false},
		{"sequence first", with(func(c *attn.MultiHeadConfig) { c.Layout = attn.SequenceFirst }), onnx.Options{Lengths: true}, true},
		{"norms", with(func(c *attn.MultiHeadConfig) {
			c.QueryNorm, c.KeyNorm, c.ValueNorm = nn.NewLayerNorm(11), nn.NewLayerNorm(11), nn.NewRMSNorm(11)
		}), onnx.Options{}, true},
		{"rope", placed(position.RoPEConfig{}), onnx.Options{Causal: true}, true},
		{"rope in part", placed(position.RoPEConfig{Size: 6}), onnx.Options{}, true},
		{"rope of adjacent pairs", placed(position.RoPEConfig{Pairs: position.AdjacentPairs, Base: 500}), onnx.Options{}, true},
		{"rope, scaled", placed(position.RoPEConfig{Pairs: position.AdjacentPairs, Size: 6, Scaling: position.ScaleYaRN(position.YaRN{Factor: 4, Trained: 32})}), onnx.Options{}, true},
		{"output gates of elements", with(func(c *attn.MultiHeadConfig) { c.OutputGate.Activation = tensor.Sigmoid }), onnx.Options{}, true},
		{"output gates of heads", with(func(c *attn.MultiHeadConfig) {
			c.OutputGate, c.Layout = attn.OutputGate{Activation: tensor.Softplus, Size: 1}, attn.SequenceFirst
		}), onnx.Options{Lengths: true}, true},
		{"no heads", attn.MultiHeadConfig{Width: 11, Heads: attn.NoHeads, Bias: attn.AllProjections}, onnx.Options{Lengths: true}, false},
		{"no heads, no bias", attn.MultiHeadConfig{Width: 11, Heads: attn.NoHeads}, onnx.Options{}, false},
		{"dot", scored(score.Dot()), onnx.Options{Lengths: true}, true},
		{"negative scale", scored(negative), onnx.Options{Lengths: true}, false},
		{"bilinear", scored(score.NewBilinear(11, 11, rng)), onnx.Options{Lengths: true}, true},
		{"scaled bilinear", sharing(&score.Bilinear{W: tensor.Randn(rng, 8, 8).Param(), Scaled: true}), onnx.Options{}, true},
		{"cosine", scored(&score.Cosine{}), onnx.Options{Lengths: true}, true},
		{"cosine with a scale", sharing(&score.Cosine{Scale: tensor.Full(3, 1).Param()}), onnx.Options{}, true},
		{"additive", scored(score.NewAdditive(11, 11, 5, rng)), onnx.Options{Lengths: true}, false},
		{"additive, shared keys", sharing(score.NewAdditive(8, 8, 5, rng)), onnx.Options{Mask: true}, false},
		{"a user's", scored(plainScore{nil, attn.Form{Scale: 0.5, PerRoot: true}}), onnx.Options{Lengths: true}, true},
		{"a user's additive", scored(plainScore{nil, attn.Form{Additive: tensor.Randn(rng, 11)}}), onnx.Options{Lengths: true}, false},
		{"gaussian", scored(&score.Gaussian{}), onnx.Options{Lengths: true}, false},
		{"gaussian, shared keys", sharing(&score.Gaussian{W: tensor.Randn(rng, 8).Param()}), onnx.Options{Mask: true}, false},
		{"gaussian of one width", sharing(&score.Gaussian{W: tensor.Full(0.5, 1).Param()}), onnx.Options{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			layer, err := attn.NewMultiHead(c.config, rng)
			if err != nil {
				t.Fatal(err)
			}
			randomise(layer, rng)
			eachOpset(t, func(t *testing.T, opset int) {
				c.options.Opset = opset
				model, err := onnx.FromMultiHead(layer, c.options)
				if err != nil {
					t.Fatal(err)
				}
				// Also with more queries than keys: the first queries then attend to nothing.
				for _, l := range [][2]int{{lq, lk}, {lk, lq}} {
					m := checkMultiHead(t, rng, layer, model, c.options, l[0], l[1])
					if m == nil {
						t.Fatal("the model is wrong")
					}
					if want := c.operator && opset >= 23; (count(m, "Attention") == 1) != want {
						t.Errorf("the operator Attention stands %d times, want it to stand there: %v", count(m, "Attention"), want)
					}
				}
			})
		})
	}
}

// plainScore is a user-defined score without maps of queries and keys.
type plainScore struct {
	attn.Score
	form attn.Form
}

func (s plainScore) Form() attn.Form { return s.form }

func sharingSinks(c attn.MultiHeadConfig) attn.MultiHeadConfig {
	c.Sinks = true
	return c
}

// checkMultiHead compares a model with its layer on random inputs.
func checkMultiHead(t *testing.T, rng *rand.Rand, layer *attn.MultiHead, model *onnx.Model, o onnx.Options, lq, lk int) *Model {
	t.Helper()
	c := layer.Config()
	random := func(l, d int) *tensor.Tensor {
		if c.Layout == attn.SequenceFirst {
			return tensor.Randn(rng, l, b, d)
		}
		return tensor.Randn(rng, b, l, d)
	}
	q, k, v := random(lq, c.QueryWidth), random(lk, c.KeyWidth), random(lk, c.ValueWidth)
	in := arrays{"query": array(q), "key": array(k), "value": array(v)}
	options, extra := options(rng, o, max(1, c.Heads), lq, lk)
	for name, x := range extra {
		in[name] = x
	}
	want := layer.Forward(nil, q, k, v, options).Out
	var m *Model
	t.Run(fmt.Sprintf("%d queries, %d keys", lq, lk), func(t *testing.T) {
		m, _ = Check(t, model, in, arrays{"out": array(want)})
	})
	return m
}

// options returns options for a call of attn, and the equivalent inputs of the model.
func options(rng *rand.Rand, o onnx.Options, h, lq, lk int) (attn.Options, arrays) {
	options, in := attn.Options{SoftCap: o.SoftCap}, arrays{}
	var masks []attn.Mask
	if o.Causal {
		masks = append(masks, mask.Causal())
	}
	if o.Lengths {
		lens := []int{lk - 1, 0, lk}
		masks = append(masks, mask.Lengths(lens...))
		in["lengths"] = whole(lens, b)
	}
	if o.Mask {
		seen, list := make([]bool, h*lq*lk), make([]int, h*lq*lk)
		for i := range seen {
			if i >= lk && rng.Float64() < 0.7 { // the first query attends to nothing
				seen[i], list[i] = true, 1
			}
		}
		masks = append(masks, mask.Allow(seen, 1, h, lq, lk))
		in["mask"] = whole(list, 1, h, lq, lk)
	}
	if o.Bias {
		options.Bias = tensor.Randn(rng, b, 1, lq, lk)
		in["bias"] = array(options.Bias)
	}
	options.Mask = attn.And(masks...)
	return options, in
}

// A decoder with cached keys and values computes, step by step, the result of a single pass.
func TestExtend(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	layer, err := attn.NewMultiHead(attn.MultiHeadConfig{
		Width: 24, Heads: 4, KVHeads: 2, ValueSize: 5, Position: rope(t, position.RoPEConfig{Base: 50}), Score: score.NewAdditive(6, 6, 7, rng),
	}, rng)
	if err != nil {
		t.Fatal(err)
	}
	x := tensor.Randn(rng, b, lk, 24)
	want := layer.Forward(nil, x, x, x, attn.Options{Mask: mask.Causal()}).Out
	eachOpset(t, func(t *testing.T, opset int) {
		model, err := onnx.Build("decoder", opset, func(g *onnx.Graph) {
			axes := func(length string, size int) []onnx.Axis {
				return []onnx.Axis{onnx.Named("batch"), onnx.Sized(2), onnx.Named(length), onnx.Sized(size)}
			}
			in := g.Input("x", onnx.Float32, onnx.Named("batch"), onnx.Named("new"), onnx.Sized(24))
			past := onnx.KV{
				Keys:   g.Input("past.keys", onnx.Float32, axes("past", onnx.KeySize(layer))...),
				Values: g.Input("past.values", onnx.Float32, axes("past", 5)...),
			}
			n := g.Length(in, 1)
			y, kv := g.Extend(layer, in, past, onnx.Attention{Mask: g.Causal(n, g.Add(g.Length(past.Keys, 2), n))})
			g.Output("y", y, onnx.Float32, onnx.Named("batch"), onnx.Named("new"), onnx.Sized(24))
			g.Output("keys", kv.Keys, onnx.Float32, axes("all", onnx.KeySize(layer))...)
			g.Output("values", kv.Values, onnx.Float32, axes("all", 5)...)
		})
		if err != nil {
			t.Fatal(err)
		}
		keys, values := whole(nil, b, 2, 0, 7), whole(nil, b, 2, 0, 5)
		for at := 0; at < lk; {
			to := min(at+3, lk)
			t.Run(fmt.Sprint("from ", at), func(t *testing.T) {
				_, out := Check(t, model, arrays{
					"x": array(tensor.Slice(nil, x, 1, at, to)), "past.keys": keys, "past.values": values,
				}, arrays{"y": array(tensor.Slice(nil, want, 1, at, to))})
				keys, values = out["keys"], out["values"]
			})
			at = to
		}
	})
}

func TestEncoderLayer(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, c := range []struct {
		name   string
		config attn.EncoderConfig
	}{
		{"post-norm", attn.EncoderConfig{Width: 22, Heads: 2, Hidden: 13}},
		{"pre-norm", attn.EncoderConfig{Width: 22, Heads: 2, Hidden: 13, NormFirst: true, Activation: tensor.GELU}},
		{"tanh", attn.EncoderConfig{Width: 22, Heads: 2, Hidden: 13, Activation: tensor.Tanh}},
		{"sigmoid", attn.EncoderConfig{Width: 22, Heads: 2, Hidden: 13, Activation: tensor.Sigmoid}},
	} {
		t.Run(c.name, func(t *testing.T) {
			layer, err := attn.NewEncoderLayer(c.config, rng)
			if err != nil {
				t.Fatal(err)
			}
			randomise(layer, rng)
			eachOpset(t, func(t *testing.T, opset int) {
				o := onnx.Options{Opset: opset, Lengths: true, Causal: true}
				model, err := onnx.FromEncoderLayer(layer, o)
				if err != nil {
					t.Fatal(err)
				}
				x := tensor.Randn(rng, b, lq, c.config.Width)
				options, in := options(rng, o, c.config.Heads, lq, lq)
				in["x"] = array(x)
				Check(t, model, in, arrays{"out": array(layer.Forward(nil, x, options).Out)})
			})
		})
	}
}

// A model that is built with the methods of Graph instead of FromMultiHead.
func TestGraph(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	const width = 11
	table := nn.NewEmbedding(13, width, 1, rng)
	gain := tensor.Randn(rng, width)
	ff := nn.NewFeedForward(width, 17, 0, rng)
	gru, back := nn.NewGRU(width, 7, rng), nn.NewGRU(width, 7, rng)
	bare := &nn.GRU{CellWeights: nn.CellWeights{WeightIH: gru.WeightIH, WeightHH: gru.WeightHH}}
	ids, lens, h0 := []int{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8}, []int{4, 0, 3}, tensor.Randn(rng, 3, 7)
	eachOpset(t, func(t *testing.T, opset int) {
		out := arrays{}
		model, err := onnx.Build("parts", opset, func(g *onnx.Graph) {
			batch, length := onnx.Named("batch"), onnx.Named("length")
			in := g.Input("ids", onnx.Int64, batch, length)
			lengths, start := g.Input("lens", onnx.Int64, batch), g.Input("h0", onnx.Float32, batch, onnx.Sized(7))
			x := g.In("table").Embedding(table, in)
			output := func(name string, v onnx.Value, want *tensor.Tensor, axes ...onnx.Axis) {
				g.Output(name, v, onnx.Float32, axes...)
				out[name] = array(want)
			}
			e := table.Forward(nil, ids, 3, 4)
			output("x", x, e, batch, length, onnx.Sized(width))
			output("again", x, e, batch, length, onnx.Sized(width))
			output("rms", g.In("rms").Layer(&nn.RMSNorm{Weight: gain, Eps: 0.1}, x), tensor.RMSNorm(nil, e, gain, 0.1), batch, length, onnx.Sized(width))
			output("unit", g.Normalize(0.1, x), tensor.Normalize(nil, e, 0.1), batch, length, onnx.Sized(width))
			small := tensor.Scale(nil, e, 0.01)
			output("small", g.Normalize(0.1, g.Node("Mul", []onnx.Value{x, g.Scalar(0.01)})), tensor.Normalize(nil, small, 0.1), batch, length, onnx.Sized(width))
			large := tensor.Scale(nil, e, 1e30)
			output("large", g.Normalize(0, g.Node("Mul", []onnx.Value{x, g.Scalar(1e30)})), tensor.Normalize(nil, large, 0), batch, length, onnx.Sized(width))
			zero := tensor.Scale(nil, e, 0)
			output("zero", g.Normalize(0, g.Node("Mul", []onnx.Value{x, g.Scalar(0)})), zero, batch, length, onnx.Sized(width))
			output("ff", g.In("ff").Layer(ff, x), ff.Forward(nil, e), batch, length, onnx.Sized(width))
			output("logits", g.In("table").Linear(&nn.Linear{Weight: table.Weight}, x), tensor.Linear(nil, e, table.Weight, nil), batch, length, onnx.Sized(13))
			output("positions", g.Sinusoids(g.Count(g.Int(5000), g.Int(5003)), width), nn.Sinusoids(nil, 5000, 3, width), onnx.Sized(3), onnx.Sized(width))

			y, last := g.In("gru").GRU([]*nn.GRU{gru}, x, start, lengths)
			wantY, wantLast := gru.Forward(nil, e, h0, lens, nn.Forward)
			output("gru", y, wantY, batch, length, onnx.Sized(7))
			output("gru last", last, wantLast, batch, onnx.Sized(7))
			y, last = g.In("both").GRU([]*nn.GRU{gru, back}, x, "", lengths)
			f, lastF := gru.Forward(nil, e, nil, lens, nn.Forward)
			r, lastR := back.Forward(nil, e, nil, lens, nn.Backward)
			output("both", y, tensor.Concat(nil, 2, f, r), batch, length, onnx.Sized(14))
			output("both last", last, tensor.Concat(nil, 1, lastF, lastR), batch, onnx.Sized(14))
			y, _ = g.In("bare").GRU([]*nn.GRU{bare}, x, "", "")
			f, _ = bare.Forward(nil, e, nil, nil, nn.Forward)
			output("bare", y, f, batch, length, onnx.Sized(7))
		})
		if err != nil {
			t.Fatal(err)
		}

		model.SetMetadata("of", "parts")
		m, _ := Check(t, model, arrays{"ids": whole(ids, 3, 4), "lens": whole(lens, 3), "h0": array(h0)}, out)
		if m.Metadata["of"] != "parts" || m.Opset != int64(opset) || m.IR != map[int]int64{17: 8, 23: 11, 27: 13}[opset] {
			t.Errorf("metadata %v, opset %d, IR %d", m.Metadata, m.Opset, m.IR)
		}
		if n := len(m.Graph.Weights["table.weight"].Data); n != table.Weight.Len() {
			t.Errorf("the table has %d numbers, want %d", n, table.Weight.Len())
		}
		if m.Graph.Weights["table.weight_1"] != nil {
			t.Error("the table is stored twice")
		}
	})
}
