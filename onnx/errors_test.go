package onnx_test

import (
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/onnx"
	"github.com/attn-go/attn/position"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
)

// ownPosition, ownNorm and ownScore are user-defined types.
type ownPosition struct{}

func (ownPosition) Check(int) error                                    { return nil }
func (ownPosition) Apply(dst, x []float32, p int, of attn.Projections) { copy(dst, x) }
func (ownPosition) Back(dx, dy []float32, p int, of attn.Projections)  {}

type ownNorm struct{ nn.Vars }

func (ownNorm) Forward(_ *tensor.Tape, x *tensor.Tensor) *tensor.Tensor { return x }

type ownScore struct{ attn.Score }

func (ownScore) Form() attn.Form {
	return attn.Form{Scale: 1, Keys: func(_ *tensor.Tape, x *tensor.Tensor) *tensor.Tensor { return x }}
}

func TestRefuses(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	layer := func(change func(c *attn.MultiHeadConfig)) func() (*onnx.Model, error) {
		return func() (*onnx.Model, error) {
			c := attn.MultiHeadConfig{Width: 10, Heads: 2}
			change(&c)
			m, err := attn.NewMultiHead(c, rng)
			if err != nil {
				t.Fatal(err)
			}
			return onnx.FromMultiHead(m, onnx.Options{})
		}
	}
	with := func(o onnx.Options) func() (*onnx.Model, error) {
		return func() (*onnx.Model, error) {
			m, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: 10, Heads: 2}, rng)
			if err != nil {
				t.Fatal(err)
			}
			return onnx.FromMultiHead(m, o)
		}
	}
	graph := func(build func(g *onnx.Graph)) func() (*onnx.Model, error) {
		return func() (*onnx.Model, error) {
			m, err := onnx.Build("mine", 23, build)
			if err == nil {
				err = m.Write(io.Discard)
			}
			return m, err
		}
	}
	input := func(g *onnx.Graph) onnx.Value {
		return g.Input("x", onnx.Float32, onnx.Named("batch"), onnx.Named("length"), onnx.Sized(10))
	}
	for _, c := range []struct {
		name string
		make func() (*onnx.Model, error)
		want string
	}{
		{"opset", with(onnx.Options{Opset: 18}), "onnx: opset 18, want 17, 23 or 27"},
		{"soft-cap", with(onnx.Options{SoftCap: -1}), "onnx: attention: soft-cap -1, want a positive finite number, or 0 for none"},
		{"soft-cap NaN", with(onnx.Options{SoftCap: float32(math.NaN())}), "onnx: attention: soft-cap NaN, want a positive finite number, or 0 for none"},
		{"widths", layer(func(c *attn.MultiHeadConfig) { c.KeyWidth = attn.Infer }), "onnx: attention: the layer does not know the widths of its inputs yet: call Build or Forward first"},
		{"position", layer(func(c *attn.MultiHeadConfig) { c.Position = ownPosition{} }), "onnx: attention: a position of type onnx_test.ownPosition, want *position.RoPE"},
		{"norm", layer(func(c *attn.MultiHeadConfig) { c.KeyNorm = ownNorm{} }), "onnx: k_norm: a layer of type onnx_test.ownNorm, want *nn.Linear, *nn.FeedForward, *nn.LayerNorm, *nn.RMSNorm or nn.L2Norm"},
		{"norm of all heads", layer(func(c *attn.MultiHeadConfig) { c.KeyNorm, c.NormProjections = nn.L2Norm{}, true }), "onnx: attention: a layer with a norm over all heads together, want a norm of each head"},
		{"score", layer(func(c *attn.MultiHeadConfig) {
			c.Score = score.Func(func(_ *tensor.Tape, q, k *tensor.Tensor) *tensor.Tensor { return nil })
		}), "onnx: score: a score of type score.Func, want one of package score"},
		{"mapped score", layer(func(c *attn.MultiHeadConfig) { c.Score = ownScore{} }), "onnx: score: a score of type onnx_test.ownScore, which maps queries or keys by a custom function"},
		{"score of another size", layer(func(c *attn.MultiHeadConfig) { c.Score = score.NewBilinear(3, 3, rng) }), "onnx: score: the query of w has 3 elements, want 5"},
		{"score without parameters", layer(func(c *attn.MultiHeadConfig) { c.Score = &score.Additive{} }), "attn: Attend: wv of the additive score is nil, want a tensor"},
		{"activation", func() (*onnx.Model, error) {
			l, err := attn.NewEncoderLayer(attn.EncoderConfig{Width: 10, Heads: 2, Activation: func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor { return x }}, rng)
			if err != nil {
				t.Fatal(err)
			}
			return onnx.FromEncoderLayer(l, onnx.Options{})
		}, "onnx: ff: the activation is a custom function, want tensor.ReLU, GELU, TanhGELU, QuickGELU, SiLU, Softplus, Tanh or Sigmoid"},
		{"change of scores", graph(func(g *onnx.Graph) { g.RelativeBias(attn.SoftCap(1), 2, g.Int(3), 3) }), "onnx: mine: a change of scores of type attn.softCap, want position.T5Bias or position.ALiBi"},
		{"too few buckets", graph(func(g *onnx.Graph) {
			g.RelativeBias(position.T5Bias(tensor.Zeros(2, 3), position.T5Config{}), 2, g.Int(3), 3)
		}), "onnx: mine: T5Bias has 2 buckets, want more, for distances below 3"},
		{"no output", graph(func(g *onnx.Graph) { input(g) }), `onnx: the graph "mine" has no output`},
		{"input twice", graph(func(g *onnx.Graph) { input(g); input(g) }), `onnx: mine: input "x": the name is empty or taken`},
		{"no name", graph(func(g *onnx.Graph) { g.Output("", input(g), onnx.Float32) }), `onnx: mine: output "": the name is empty or taken`},
		{"the first error counts", graph(func(g *onnx.Graph) { g.In("a").Fail("one"); g.Fail("two") }), "onnx: a: one"},
		{"directions", graph(func(g *onnx.Graph) { g.GRU(make([]*nn.GRU, 3), input(g), "", "") }), "onnx: mine: a GRU in 3 directions, want 1, or 2 without an initial state"},
		{"branches", graph(func(g *onnx.Graph) {
			x := input(g)
			none := func(*onnx.Graph) []onnx.Value { return nil }
			g.If(x, make([]onnx.Port, 1), none, none)
		}), "onnx: mine: If: then_branch returns 0 values, want 1"},
		{"extra keys", layer(func(c *attn.MultiHeadConfig) { c.ZeroKV = true }), "onnx: attention: a layer with BiasKV or ZeroKV, want a layer without them"},
		{"layout", graph(func(g *onnx.Graph) {
			m, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: 10, Heads: 2, Layout: attn.SequenceFirst}, rng)
			if err != nil {
				t.Fatal(err)
			}
			x := input(g)
			g.Project(m, x, x)
		}), "onnx: mine: a layer whose inputs are [L B D], want [B L D] for a layer that caches keys and values"},
		{"too large", graph(func(g *onnx.Graph) {
			x := tensor.Zeros(1<<10, 1<<14) // 64 MiB
			parts := []onnx.Value{input(g)}
			for range 32 {
				parts = append(parts, g.Weight("part", x.Rows(0, 1<<10)))
			}
			g.Output("y", g.Node("Sum", parts), onnx.Float32)
		}), "onnx: a model of 2.00 GiB, want less than 2 GiB, the limit of an ONNX file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := c.make()
			if err == nil || err.Error() != c.want {
				t.Errorf("error %v\nwant  %s", err, c.want)
			}
		})
	}
}

// failing is a writer that fails after some bytes.
type failing struct{ left int }

var errFull = errors.New("full")

func (f *failing) Write(b []byte) (int, error) {
	if len(b) > f.left {
		return 0, errFull
	}
	f.left -= len(b)
	return len(b), nil
}

func TestSave(t *testing.T) {
	m, err := attn.NewMultiHead(attn.MultiHeadConfig{Width: 10, Heads: 2}, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	model, err := onnx.FromMultiHead(m, onnx.Options{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "layer.onnx")
	if err := model.Save(path); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var again strings.Builder
	if err := model.Write(&again); err != nil || again.String() != string(file) {
		t.Errorf("Write wrote %d bytes, want the %d of Save: %v", again.Len(), len(file), err)
	}
	for _, room := range []int{0, 10, len(file) - 1} {
		if err := model.Write(&failing{room}); err != errFull {
			t.Errorf("room for %d bytes: error %v, want %v", room, err, errFull)
		}
	}

	// The parameters are read when the model is written.
	m.Out.Weight.Data()[3] = 42
	if err := model.Save(path); err != nil {
		t.Fatal(err)
	}
	if file, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	read, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if w := read.Graph.Weights["out.weight.T"]; w == nil || w.Data[3*10] != 42 {
		t.Error("the file has not the new parameter")
	}
}
