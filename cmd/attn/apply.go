package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/position"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
)

type applyCommand struct {
	In      string `required:"" help:"Safetensors file with q, k, v and the optional tensors named above." placeholder:"FILE"`
	Out     string `required:"" help:"Safetensors file to write." placeholder:"FILE" writes:"file"`
	Weights bool   `help:"Write the weights as well."`
	LSE     bool   `name:"lse" help:"Write the log-sum-exp of each query's scores as well."`

	Score   string   `default:"scaled" enum:"${scores}" help:"${scores_or}." placeholder:"NAME" group:"Scores"`
	Scale   *float32 `help:"Factor of the scores, for ${scaled_and}." placeholder:"S" group:"Scores" want:"a finite number"`
	Softcap *float32 `help:"Bound the scores smoothly: C·tanh(score/C)." placeholder:"C" group:"Scores" want:"more than 0"`
	Alibi   bool     `help:"ALiBi: subtract slope·distance, with the published slopes or those in the file." group:"Scores"`

	Rope         bool     `help:"RoPE: turn queries and keys by their positions." group:"Positions"`
	RopeBase     *float64 `help:"Base of the frequencies of --rope (default 10000)." placeholder:"N" group:"Positions" want:"more than 1" needs:"rope"`
	RopeSize     *int     `help:"Elements of a head that --rope turns, the first N (default all)." placeholder:"N" group:"Positions" needs:"rope"`
	RopeAdjacent bool     `help:"Turn elements 2i and 2i+1 together (GPT-J), not i and i+N/2 (Llama of Hugging Face)." group:"Positions" needs:"rope"`

	Causal    bool  `help:"Query i attends to key j only if j ≤ i + offset." group:"Masks"`
	Window    []int `help:"Query i attends only to keys at most N away from i + offset, or at most N before and M after it." placeholder:"N" group:"Masks" want:"at least 0"`
	Offset    *int  `help:"Offset of --causal and --window (default Lk − Lq)." placeholder:"N" group:"Masks" needs:"causal|window"`
	Sink      *int  `help:"With --window, every query attends to the first N keys as well." placeholder:"N" group:"Masks" want:"at least 0" needs:"window" excludes:"offset"`
	Documents []int `help:"Sequences hold several documents, which end in front of these positions; a query attends to the keys of its own." placeholder:"N" group:"Masks" want:"at least 0"`

	Heads   *int   `help:"Run a multi-head layer with H heads on [B L D] inputs." placeholder:"H" group:"Layer" want:"at least 1"`
	KVHeads *int   `name:"kv-heads" help:"Heads of keys and values (default as many as k.weight has rows for)." placeholder:"G" group:"Layer" needs:"heads"`
	Layer   string `help:"Read the layer's parameters from this file, index or folder: a PyTorch state dict, or attn's own names." placeholder:"FILE" group:"Layer" needs:"heads" reads:"tensors"`
	Prefix  string `help:"What the names of the parameters in --layer begin with." placeholder:"TEXT" group:"Layer" needs:"layer"`
}

func (applyCommand) Help() string {
	var scores strings.Builder
	for _, kind := range score.Kinds() {
		var params []string
		for _, p := range kind.Params {
			text := fmt.Sprintf("score.%s [%s]", p.Name, strings.Join(p.Axes, " "))
			if p.Optional {
				text += " or nothing"
			}
			params = append(params, text)
		}
		fmt.Fprintf(&scores, "  %s\n", strings.TrimRight(fmt.Sprintf("%-17s%-23s%s", kind.Name, kind.Formula, strings.Join(params, ", ")), " "))
	}
	return `Examples:

  attn apply --in x.safetensors --out y.safetensors --causal --weights
  attn apply --in x.safetensors --out y.safetensors --score additive
  attn apply --in layer.safetensors --out y.safetensors --heads 8
  attn apply --in x.safetensors --out y.safetensors --heads 8 \
    --layer model.safetensors --prefix encoder.layers.0.self_attn.

It reads q, k and v, each [B L E] or [B H L E]; if present, mask (BOOL, true = may
attend, broadcast to the scores), bias (added to the scores), valid_lens ([B] or
[B Lq] integers), documents (their ends, [N] or [B N] integers) and sinks ([H], the
score of a key without a value); with --alibi slopes ([H]); with --rope q_positions
and k_positions ([L] or [B L] integers). The scores and their parameters:

` + scores.String() + `
With --heads it reads the layer as well, from the same file or from --layer:
q.weight, k.weight, v.weight and out.weight, each [out in], and the biases q.bias
and so on. In --layer they may have the names of torch.nn.MultiheadAttention, or
those of most language models: q_proj, k_proj, v_proj, and o_proj or out_proj.
Anything else in a file, in --layer under the prefix, is an error.

It writes out; with --weights, weights; with --lse, lse; and if the file has dout,
dweights or dlse, the gradients d.q, d.k, d.v, d.bias, d.sinks and d.NAME of each
parameter NAME.`
}

// Validate is called by the parser.
func (cmd *applyCommand) Validate() error {
	scaled := scaledScores()
	switch {
	case cmd.Scale != nil && !slices.Contains(scaled, cmd.Score):
		return fmt.Errorf("--scale goes with the scores %s, not %s", listed(scaled, "and"), cmd.Score)
	case cmd.RopeSize != nil && (*cmd.RopeSize < 2 || *cmd.RopeSize%2 != 0):
		return fmt.Errorf("--rope-size %d, want an even number, at least 2", *cmd.RopeSize)
	case len(cmd.Window) > 2:
		return fmt.Errorf("--window %s, want one number or two", joined(cmd.Window))
	case cmd.Causal && len(cmd.Window) == 2 && cmd.Window[1] != 0:
		return fmt.Errorf("--window %s: with --causal no key behind the query is attended to", joined(cmd.Window))
	case !slices.IsSorted(cmd.Documents):
		return fmt.Errorf("--documents %s, want cumulative lengths, which ascend", joined(cmd.Documents))
	case cmd.KVHeads != nil && (*cmd.KVHeads < 1 || *cmd.Heads%*cmd.KVHeads != 0):
		return fmt.Errorf("--kv-heads %d, want a divisor of --heads %d", *cmd.KVHeads, *cmd.Heads)
	}
	return nil
}

// joined returns a list of numbers as it stands on the command line.
func joined(numbers []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(numbers), " ", ","), "[]")
}

// scaledScores are the names of the scores that --scale goes with.
func scaledScores() []string {
	return slices.DeleteFunc(score.Kinds(), func(k score.Kind) bool { return k.Scaled == nil }).Names()
}

func (cmd *applyCommand) Run(_ context.Context, _ console) error {
	file, err := safetensors.Read(cmd.In)
	if err != nil {
		return err
	}
	in := &mechanism{path: cmd.In, file: file}
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
	parameters, err := cmd.parameters(in)
	if err != nil {
		return nil, err
	}
	rope := cmd.rope()
	o := cmd.options(in, parameters)
	if rope != nil {
		o.QueryPositions, o.KeyPositions = in.positions("q_positions"), in.positions("k_positions")
		if !in.has("q_positions") && in.err == nil && min(q.Rank(), k.Rank()) > 1 { // the last query stands at the last key
			o.QueryPositions = attn.Positions{Offsets: []int{k.Dim(-2) - q.Dim(-2)}}
		}
	}
	layer := cmd.layer(parameters, o.Score, rope)
	results := cmd.results(in)
	in.plausible(q, k, v, cmd.heads(), parameters.largestAxis())
	in.complete()
	if parameters != in {
		parameters.complete()
	}
	if err := cmp.Or(in.err, parameters.err); err != nil {
		return nil, err
	}

	leaves := slices.Concat(nn.StateDict{leaf("q", q), leaf("k", k), leaf("v", v), leaf("bias", o.Bias), leaf("sinks", o.Sinks)}, parameters.params)
	leaves = slices.DeleteFunc(leaves, func(e nn.Entry) bool { return e.Parts[0] == nil })
	t := tensor.NewTape(tensor.Infer)
	gradients := slices.ContainsFunc(results, func(r applied) bool { return r.upstream != nil })
	if gradients {
		t = tensor.NewTape(tensor.Eval)
		for _, e := range leaves {
			for _, x := range e.Parts {
				if !x.NeedsGrad() {
					x.Param()
				}
			}
		}
	}
	var result attn.Output
	if layer != nil {
		result = layer.Forward(t, q, k, v, o)
	} else {
		result = cmd.attend(t, q, k, v, o, rope)
	}
	f := &safetensors.File{}
	add := func(name string, x *tensor.Tensor) {
		f.Tensors = append(f.Tensors, safetensors.FromFloat32s(name, x.Shape(), x.Data()))
	}
	var outs, douts []*tensor.Tensor
	for _, r := range results {
		x := r.of(result)
		add(r.name, x)
		if r.upstream != nil {
			outs, douts = append(outs, x), append(douts, r.upstream)
		}
	}
	if gradients {
		t.BackwardAll(outs, douts)
		for _, e := range leaves {
			add("d."+e.Name, gradient(e))
		}
	}
	return f, nil
}

// options returns the options of the flags and the files, but for positions.
func (cmd *applyCommand) options(in, parameters *mechanism) attn.Options {
	o := attn.Options{Score: cmd.score(parameters), Bias: in.get("bias"), Weights: cmd.Weights, LogSumExp: cmd.LSE}
	if o.Sinks = parameters.get("sinks"); o.Sinks == nil {
		o.Sinks = in.get("sinks")
	}
	set(&o.SoftCap, cmd.Softcap)
	if cmd.Alibi {
		o.Changes = []attn.ScoreChange{position.ALiBi(in.slopes()...)}
	}
	o.Mask = attn.And(in.mask(), in.validLens(), in.documents(), cmd.mask())
	return o
}

// applied is a result that is to be written, with the gradient for it in the file, if
// there is one.
type applied struct {
	name     string
	of       func(attn.Output) *tensor.Tensor
	upstream *tensor.Tensor
}

// results returns what is to be written.
func (cmd *applyCommand) results(in *mechanism) []applied {
	all := []applied{{name: "out", of: func(y attn.Output) *tensor.Tensor { return y.Out }}}
	if cmd.Weights {
		all = append(all, applied{name: "weights", of: func(y attn.Output) *tensor.Tensor { return y.Weights }})
	}
	if cmd.LSE {
		all = append(all, applied{name: "lse", of: func(y attn.Output) *tensor.Tensor { return y.LogSumExp }})
	}
	for i := range all {
		all[i].upstream = in.get("d" + all[i].name)
	}
	return all
}

// attend is attention without a layer.
func (cmd *applyCommand) attend(t *tensor.Tape, q, k, v *tensor.Tensor, o attn.Options, rope attn.Position) attn.Output {
	if rope != nil {
		q, k = attn.ApplyPosition(t, rope, q, attn.Query, o.QueryPositions), attn.ApplyPosition(t, rope, k, attn.Key, o.KeyPositions)
		o.QueryPositions, o.KeyPositions = attn.Positions{}, attn.Positions{}
	}
	return attn.Attend(t, q, k, v, o)
}

// leaf is a tensor of a file whose gradient is written.
func leaf(name string, x *tensor.Tensor) nn.Entry {
	return nn.Entry{Name: name, Parts: []*tensor.Tensor{x}}
}

// gradient returns the gradient of what a tensor of a file is made of, zeros if none has
// reached it.
func gradient(e nn.Entry) *tensor.Tensor {
	parts := make([]*tensor.Tensor, len(e.Parts))
	for i, x := range e.Parts {
		if parts[i] = x.Grad(); parts[i] == nil {
			parts[i] = tensor.Zeros(x.Shape()...)
		}
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return tensor.Concat(nil, 0, parts...)
}

// score returns the scoring function with parameters from a file.
func (cmd *applyCommand) score(in *mechanism) attn.Score {
	kind, _ := score.Kinds().Find(cmd.Score)
	params := map[string]*tensor.Tensor{}
	for _, p := range kind.Params {
		name := "score." + p.Name
		if x := in.optional(name); x != nil {
			params[p.Name] = x
			if cmd.Scale != nil {
				in.fail(usage("--scale and the tensor %s exclude each other", name))
			}
		} else if !p.Optional {
			in.fail(in.bad("tensor %q is missing", name))
		}
	}
	if in.err != nil {
		return nil
	}
	if cmd.Scale != nil {
		return kind.Scaled(*cmd.Scale)
	}
	score, err := kind.With(params)
	if err != nil {
		in.fail(in.bad("%v", err))
	}
	return score
}

// mask returns the mask of the flags.
func (cmd *applyCommand) mask() attn.Mask {
	var documents attn.Mask
	if cmd.Documents != nil {
		documents = mask.Documents(cmd.Documents)
	}
	left, right := -1, -1
	if cmd.Window != nil {
		left, right = cmd.Window[0], cmd.Window[len(cmd.Window)-1]
	}
	if cmd.Causal {
		right = 0
	}
	switch {
	case left < 0 && right < 0:
		return documents
	case cmd.Sink != nil:
		return attn.And(documents, mask.WindowWithSinks(left, right, *cmd.Sink))
	case cmd.Offset != nil:
		return attn.And(documents, mask.WindowAt(left, right, *cmd.Offset))
	}
	return attn.And(documents, mask.Window(left, right))
}

// rope returns the position of --rope, or nil.
func (cmd *applyCommand) rope() attn.Position {
	if !cmd.Rope {
		return nil
	}
	c := position.RoPEConfig{}
	set(&c.Base, cmd.RopeBase)
	set(&c.Size, cmd.RopeSize)
	if cmd.RopeAdjacent {
		c.Pairs = position.AdjacentPairs
	}
	r, err := position.NewRoPE(c)
	if err != nil {
		panic(err) // Validate has checked it
	}
	return r
}

// heads returns the number of --heads, 0 if it was not given.
func (cmd *applyCommand) heads() int {
	if cmd.Heads == nil {
		return 0
	}
	return *cmd.Heads
}
