package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tensor"
)

type applyCommand struct {
	In      string   `required:"" help:"Safetensors file with q, k, v and the optional tensors named above." placeholder:"FILE"`
	Out     string   `required:"" help:"Safetensors file to write." placeholder:"FILE"`
	Score   string   `default:"scaled" enum:"${scores}" help:"${scores_or}." placeholder:"NAME"`
	Scale   *float32 `help:"Factor of the scores, for scaled, dot and cosine." placeholder:"S"`
	Causal  bool     `help:"Query i attends to key j only if j ≤ i + offset."`
	Offset  *int     `help:"Offset of --causal and --window (default Lk − Lq)." placeholder:"N"`
	Window  *int     `help:"Query i attends only to keys at most N away from i + offset." placeholder:"N"`
	Heads   *int     `help:"Run a multi-head layer with H heads on [B L D] inputs." placeholder:"H"`
	Weights bool     `help:"Write the weights as well."`
}

func (applyCommand) Help() string {
	return `Examples:

  attn apply --in x.safetensors --out y.safetensors --causal --weights
  attn apply --in x.safetensors --out y.safetensors --score additive
  attn apply --in layer.safetensors --out y.safetensors --heads 8

It reads q, k and v, each [B L E] or [B H L E]; if present, mask (BOOL, true = may
attend, broadcast to the scores), bias (added to the scores) and valid_lens ([B] or
[B Lq] integers); the parameters of the score: score.wq, score.wk and score.wv
(additive), score.w (bilinear, gaussian), score.scale (cosine); and with --heads
those of the layer: q.weight, k.weight, v.weight and out.weight, each [out in], and
the biases q.bias and so on. Anything else in the file is an error.

It writes out; with --weights, weights; and if the file has dout, the gradients d.q,
d.k, d.v, d.bias and d.NAME of each parameter NAME.`
}

// Validate is called by the parser.
func (cmd *applyCommand) Validate() error {
	switch {
	case cmd.Scale != nil && !slices.Contains([]string{"scaled", "dot", "cosine"}, cmd.Score):
		return fmt.Errorf("--scale goes with the scores scaled, dot and cosine, not %s", cmd.Score)
	case cmd.Scale != nil && (math.IsNaN(float64(*cmd.Scale)) || math.IsInf(float64(*cmd.Scale), 0)):
		return fmt.Errorf("--scale %v, want a finite number", *cmd.Scale)
	case cmd.Offset != nil && !cmd.Causal && cmd.Window == nil:
		return errors.New("--offset goes with --causal or --window")
	case cmd.Window != nil && *cmd.Window < 0:
		return fmt.Errorf("--window %d, want at least 0", *cmd.Window)
	case cmd.Heads != nil && *cmd.Heads < 1:
		return fmt.Errorf("--heads %d, want at least 1", *cmd.Heads)
	}
	return nil
}

func (cmd *applyCommand) touches() touched {
	return touched{reads: []place{{"--in", cmd.In}}, writes: []place{{"--out", cmd.Out}}}
}

func (cmd *applyCommand) Run(_ context.Context, _ console) error {
	file, err := safetensors.Read(cmd.In)
	if err != nil {
		return err
	}
	in := &mechanism{path: cmd.In, file: file, params: map[string]*tensor.Tensor{}}
	var out *safetensors.File
	// Shapes in a file are untrusted: where they disagree, the file is bad.
	if shapes := tensor.Catch(func() { out, err = cmd.apply(in) }); shapes != nil {
		err = in.bad("%v", shapes)
	}
	if err != nil {
		return err
	}
	return out.WriteFile(cmd.Out)
}

// apply runs the mechanism and returns what is to be written.
func (cmd *applyCommand) apply(in *mechanism) (*safetensors.File, error) {
	q, k, v := in.need("q"), in.need("k"), in.need("v")
	o := attn.Options{Score: cmd.score(in), Bias: in.get("bias"), Weights: cmd.Weights}
	o.Mask = attn.And(in.mask(), in.validLens(), cmd.positions())
	layer := cmd.layer(in, o.Score)
	dout := in.get("dout")
	in.plausible(q, k, v, cmd.heads())
	in.complete()
	if in.err != nil {
		return nil, in.err
	}

	inputs := []*tensor.Tensor{q, k, v}
	if o.Bias != nil {
		inputs = append(inputs, o.Bias)
	}
	t := tensor.NewTape(tensor.Infer)
	if dout != nil {
		t = tensor.NewTape(tensor.Eval)
		for _, x := range inputs {
			x.Param()
		}
		for _, p := range in.params {
			p.Param()
		}
	}
	var result attn.Output
	if layer != nil {
		result = layer(t, q, k, v, o)
	} else {
		result = attn.Attend(t, q, k, v, o)
	}
	f := &safetensors.File{}
	add := func(name string, x *tensor.Tensor) {
		f.Tensors = append(f.Tensors, safetensors.FromFloat32s(name, x.Shape(), x.Data()))
	}
	add("out", result.Out)
	if cmd.Weights {
		add("weights", result.Weights)
	}
	if dout != nil {
		t.Backward(result.Out, dout)
		names := []string{"d.q", "d.k", "d.v", "d.bias"}
		for i, x := range inputs {
			add(names[i], gradient(x))
		}
		for _, name := range in.order {
			add("d."+name, gradient(in.params[name]))
		}
	}
	return f, nil
}

// gradient returns x's gradient, zeros if none has reached it.
func gradient(x *tensor.Tensor) *tensor.Tensor {
	if g := x.Grad(); g != nil {
		return g
	}
	return tensor.Zeros(x.Shape()...)
}

// score returns the scoring function with parameters from the file.
func (cmd *applyCommand) score(in *mechanism) attn.Score {
	switch cmd.Score {
	case "scaled", "dot":
		switch {
		case cmd.Scale != nil:
			return attn.DotScale(*cmd.Scale)
		case cmd.Score == "dot":
			return attn.Dot()
		}
		return attn.ScaledDot()
	case "additive":
		return &attn.Additive{WQ: in.param("score.wq", 2), WK: in.param("score.wk", 2), WV: in.param("score.wv", 1)}
	case "bilinear", "scaled-bilinear":
		return &attn.Bilinear{W: in.param("score.w", 2), Scaled: cmd.Score == "scaled-bilinear"}
	case "gaussian":
		return &attn.Gaussian{W: in.optional("score.w")}
	}
	s := &attn.Cosine{Scale: in.optional("score.scale")}
	if cmd.Scale != nil {
		if s.Scale != nil {
			in.fail(usage("--scale and the tensor score.scale exclude each other"))
		}
		s.Scale = tensor.Full(*cmd.Scale, 1)
	}
	return s
}

// positions returns the mask of --causal, --window and --offset.
func (cmd *applyCommand) positions() attn.Mask {
	left, right := -1, -1
	if cmd.Window != nil {
		left, right = *cmd.Window, *cmd.Window
	}
	if cmd.Causal {
		right = 0
	}
	switch {
	case left < 0 && right < 0:
		return attn.Mask{}
	case cmd.Offset != nil:
		return attn.WindowAt(left, right, *cmd.Offset)
	}
	return attn.Window(left, right)
}

// heads returns the number of --heads, 0 if it was not given.
func (cmd *applyCommand) heads() int {
	if cmd.Heads == nil {
		return 0
	}
	return *cmd.Heads
}

// layer returns the multi-head layer of --heads, or nil.
func (cmd *applyCommand) layer(in *mechanism, score attn.Score) func(*tensor.Tape, *tensor.Tensor, *tensor.Tensor, *tensor.Tensor, attn.Options) attn.Output {
	heads := cmd.heads()
	if heads == 0 {
		return nil
	}
	linear := func(name string) *nn.Linear {
		return &nn.Linear{Weight: in.param(name+".weight", 2), Bias: in.optional(name + ".bias")}
	}
	maps := map[string]*nn.Linear{}
	for _, name := range []string{"q", "k", "v", "out"} {
		maps[name] = linear(name)
	}
	if in.err != nil {
		return nil
	}
	// The rows of the weights say how large a head is, and, where k has fewer
	// of them than q, that heads share keys and values.
	rows := func(name string) int { return maps[name].Weight.Dim(0) }
	size := rows("q") / heads
	if size == 0 || rows("q")%heads != 0 || rows("k")%size != 0 || rows("k") == 0 || rows("v")%(rows("k")/size) != 0 {
		in.fail(in.bad("q.weight, k.weight and v.weight have %d, %d and %d rows, which %d heads do not divide", rows("q"), rows("k"), rows("v"), heads))
		return nil
	}
	groups := rows("k") / size
	valueSize := rows("v") / groups
	m, err := attn.NewMultiHead(attn.MultiHeadConfig{
		Width: maps["q"].Weight.Dim(1), KeyWidth: maps["k"].Weight.Dim(1), ValueWidth: maps["v"].Weight.Dim(1),
		Heads: heads, KVHeads: groups, HeadSize: size, ValueSize: valueSize, OutWidth: rows("out"), Score: score,
		// The maps are those of the file, whatever sizes it claims.
		Init: func(*rand.Rand, ...int) *tensor.Tensor { return nil },
	}, nil)
	if err != nil {
		in.fail(in.bad("%v", strings.TrimPrefix(err.Error(), "attn: NewMultiHead: ")))
		return nil
	}
	m.Q, m.K, m.V, m.Out = maps["q"], maps["k"], maps["v"], maps["out"]
	if got, want := m.Out.Weight.Shape(), []int{rows("out"), heads * valueSize}; !slices.Equal(got, want) {
		in.fail(in.bad("tensor %q has shape %v, want %v", "out.weight", got, want))
	}
	for _, name := range []string{"q", "k", "v", "out"} {
		if b := maps[name].Bias; b != nil && !slices.Equal(b.Shape(), []int{rows(name)}) {
			in.fail(in.bad("tensor %q has shape %v, want %v", name+".bias", b.Shape(), []int{rows(name)}))
		}
	}
	return m.Forward
}

// mostNumbers bounds the arrays that apply makes: 4 GiB each.
const mostNumbers = 1 << 30

// plausible refuses tensors that are small themselves and whose scores or maps
// would take all memory.
func (m *mechanism) plausible(q, k, v *tensor.Tensor, heads int) {
	if m.err != nil || q.Rank() < 3 || k.Rank() != q.Rank() || v.Rank() != q.Rank() {
		return // what shapes disagree is told elsewhere
	}
	batch := float64(q.Len() / q.Dim(-1) / q.Dim(-2)) // and heads, where q has them
	lq, lk, widest := float64(q.Dim(-2)), float64(k.Dim(-2)), max(k.Dim(-1), v.Dim(-1))
	for _, p := range m.params {
		widest = max(widest, slices.Max(append(p.Shape(), 1)))
	}
	if n := batch * max(float64(max(heads, 1))*lq*lk, max(lq, lk)*float64(widest)); n > mostNumbers {
		m.fail(m.bad("q %v, k %v and v %v would need arrays of %.1e numbers, want at most %d", q.Shape(), k.Shape(), v.Shape(), n, mostNumbers))
	}
}
