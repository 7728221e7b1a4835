// Package apply runs one attention mechanism, with a softmax or without, on the tensors of a file, and computes the
// gradients of its inputs and parameters. It implements attn apply; errors name the flags of that command.
package apply

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/app/flags"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/position"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
)

// Mechanism is an attention mechanism, described by the flags of attn apply. A flag that is not given is zero, except
// Score.
type Mechanism struct {
	Weights bool `help:"Also write the attention weights."`
	LSE     bool `name:"lse" help:"Also write the log-sum-exp of each query's scores."`

	Rule *string `enum:"${rules}" help:"What a token does to the state: ${rules_or}." placeholder:"NAME" group:"Attention without a softmax" excludes:"lse,score,softcap,alibi,rope,causal,window,heads"`

	Bidirectional bool `help:"With --rule linear, each query reads the state after the last token, as in an encoder." group:"Attention without a softmax" needs:"rule"`

	Score   string   `default:"scaled" enum:"${scores}" help:"${scores_or}." placeholder:"NAME" group:"Scores"`
	Scale   *float32 `help:"Scale of the scores, instead of the default; for ${scaled_and}. With --rule, scale of the queries." placeholder:"S" group:"Scores" want:"a finite number"`
	Softcap float32  `help:"Soft-cap the scores: C·tanh(score/C)." placeholder:"C" group:"Scores" want:"more than 0"`
	Alibi   bool     `help:"ALiBi: subtract slope·distance, with the slopes in the file or else the published ones." group:"Scores"`

	Rope         bool    `help:"RoPE: rotate queries and keys by their positions." group:"Positions"`
	RopeBase     float64 `help:"Base of the frequencies of --rope (default 10000)." placeholder:"N" group:"Positions" want:"more than 1" needs:"rope"`
	RopeSize     int     `help:"Rotate only the first N elements of each head (default all)." placeholder:"N" group:"Positions" want:"at least 2" needs:"rope"`
	RopeAdjacent bool    `help:"Rotate the pairs 2i and 2i+1 (GPT-J) instead of i and i+N/2 (Llama of Hugging Face)." group:"Positions" needs:"rope"`

	Masks // in addition to those of the file

	Heads   int    `help:"Run a multi-head layer with H heads on [B L D] inputs." placeholder:"H" group:"Layer" want:"at least 1"`
	KVHeads int    `name:"kv-heads" help:"Number of key/value heads (default from the rows of k.weight)." placeholder:"G" group:"Layer" want:"at least 1" needs:"heads"`
	Layer   string `help:"Read the layer's parameters from this safetensors file, index or folder, with the names of PyTorch or of attn." placeholder:"FILE" group:"Layer" needs:"heads" reads:"tensors"`
	Prefix  string `help:"Prefix of the parameter names in --layer." placeholder:"TEXT" group:"Layer" needs:"layer"`

	kind score.Kind    // of Score
	rope attn.Position // nil without Rope
}

// Validate is called by the parser of flags.
func (m Mechanism) Validate() error {
	scaled := Scaled()
	switch {
	case m.Rule != nil && m.Scale != nil && *m.Scale == 0:
		return errors.New("--scale 0, want another number with --rule")
	case m.Bidirectional && *m.Rule != "linear":
		return fmt.Errorf("--bidirectional works only with --rule linear: what %s computes depends on the order of the tokens", *m.Rule)
	case m.Scale != nil && !slices.Contains(scaled, m.Score):
		return fmt.Errorf("--scale works only with the scores %s, not %s", flags.Listed(scaled, "and"), m.Score)
	case m.RopeSize%2 != 0:
		return fmt.Errorf("--rope-size %d, want an even number", m.RopeSize)
	case m.KVHeads > 0 && m.Heads%m.KVHeads != 0:
		return fmt.Errorf("--kv-heads %d, want a divisor of --heads %d", m.KVHeads, m.Heads)
	}
	return m.Check()
}

// Run runs the mechanism on the tensors of a file, which attn apply --help lists. It returns out,
// weights and lse, or with Rule out, state and weights, and, if the file has the gradient of one of these, the
// gradients of the inputs and parameters.
//
// Errors: *input.Error for an invalid file, including one with unknown tensors, and *flags.Error for a
// flag that does not apply to the file.
func (m Mechanism) Run(path string) (out *safetensors.File, err error) {
	m.kind, _ = score.Kinds().Find(m.Score) // the parser has checked the name
	if m.Rope {
		c := position.RoPEConfig{Base: m.RopeBase, Size: m.RopeSize}
		if m.RopeAdjacent {
			c.Pairs = position.AdjacentPairs
		}
		if m.rope, err = position.NewRoPE(c); err != nil {
			return nil, flags.Errorf("--rope: %w", err)
		}
	}
	file, err := safetensors.Read(path)
	if err != nil {
		return nil, err
	}
	in := &reader{path: path, file: file}
	// Shapes in a file are untrusted: inconsistent shapes are an error of the file.
	run := m.run
	if m.Rule != nil {
		run = m.runRule
	}
	if shapes := tensor.Catch(func() { out, err = run(in) }); shapes != nil {
		err = in.bad("%v", shapes)
	}
	if err == nil {
		m.describe(out)
	}
	return out, err
}

// describe adds the metadata with which a file is a record of the weights, if they are those of one sequence.
func (m Mechanism) describe(f *safetensors.File) {
	others := []string{}
	for _, t := range f.Tensors {
		switch {
		case t.Name != "weights":
			others = append(others, t.Name)
		case t.Shape[0] != 1:
			return
		}
	}
	if m.Weights {
		list, _ := json.Marshal(others)
		f.Metadata = map[string]string{"layers": fmt.Sprintf(`{"weights": {"signed": %v}}`, m.Rule != nil), "not_layers": string(list)}
	}
}

// result is a tensor to write, with its upstream gradient from the file or nil.
type result struct {
	name     string
	upstream *tensor.Tensor
}

func (m Mechanism) run(in *reader) (*safetensors.File, error) {
	q, k, v := in.need("q"), in.need("k"), in.need("v")
	params, layer, err := m.parameters(in)
	if err != nil {
		return nil, err
	}
	o := m.options(in, params)
	if m.Rope {
		o.QueryPositions, o.KeyPositions = in.positions("q_positions"), in.positions("k_positions")
		if !in.has("q_positions") && in.err == nil && min(q.Rank(), k.Rank()) > 1 { // align the last query with the last key
			o.QueryPositions = attn.Positions{Offsets: []int{k.Dim(-2) - q.Dim(-2)}}
		}
	}
	if layer == nil && m.Heads > 0 {
		layer = m.layer(params, o.Score)
	}
	results := m.results(in)
	in.plausible(q, k, v, m.Heads, params.largestAxis())
	in.complete()
	if params != in {
		params.complete()
	}
	if err := cmp.Or(in.err, params.err); err != nil {
		return nil, err
	}

	leaves := slices.Concat(nn.StateDict{leaf("q", q), leaf("k", k), leaf("v", v), leaf("bias", o.Bias), leaf("sinks", o.Sinks)}, params.params)
	return compute(leaves, results, func(t *tensor.Tape) map[string]*tensor.Tensor {
		y := m.forward(t, layer, q, k, v, o)
		return map[string]*tensor.Tensor{"out": y.Out, "weights": y.Weights, "lse": y.LogSumExp}
	}), nil
}

// compute returns the results of forward and, if one of them has an upstream gradient, the gradients of the leaves, some
// of which may be nil.
func compute(leaves nn.StateDict, results []result, forward func(*tensor.Tape) map[string]*tensor.Tensor) *safetensors.File {
	leaves = slices.DeleteFunc(leaves, func(e nn.Entry) bool { return e.Parts[0] == nil })
	t := tensor.NewTape(tensor.Infer)
	gradients := slices.ContainsFunc(results, func(r result) bool { return r.upstream != nil })
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
	y := forward(t)
	f := &safetensors.File{}
	add := func(name string, x *tensor.Tensor) {
		f.Tensors = append(f.Tensors, safetensors.FromFloat32s(name, x.Shape(), x.Data()))
	}
	var outs, douts []*tensor.Tensor
	for _, r := range results {
		add(r.name, y[r.name])
		if r.upstream != nil {
			outs, douts = append(outs, y[r.name]), append(douts, r.upstream)
		}
	}
	if gradients {
		t.BackwardAll(outs, douts)
		for _, e := range leaves {
			add("d."+e.Name, gradient(e))
		}
	}
	return f
}

func (m Mechanism) forward(t *tensor.Tape, layer *attn.MultiHead, q, k, v *tensor.Tensor, o attn.Options) attn.Output {
	if layer != nil {
		return layer.Forward(t, q, k, v, o)
	}
	if m.Rope {
		q = attn.ApplyPosition(t, m.rope, q, attn.Query, o.QueryPositions)
		k = attn.ApplyPosition(t, m.rope, k, attn.Key, o.KeyPositions)
		o.QueryPositions, o.KeyPositions = attn.Positions{}, attn.Positions{}
	}
	return attn.Attend(t, q, k, v, o)
}

// options returns the options from the mechanism and the files, except positions.
func (m Mechanism) options(in, params *reader) attn.Options {
	o := attn.Options{Score: m.score(params), Bias: in.floats("bias"), SoftCap: m.Softcap}
	o.Weights, o.LogSumExp = m.Weights, m.LSE
	if o.Sinks = params.floats("sinks"); o.Sinks == nil {
		o.Sinks = in.floats("sinks")
	}
	if m.Alibi {
		o.Changes = []attn.ScoreChange{position.ALiBi(in.slopes()...)}
	}
	o.Mask = attn.And(in.mask(), in.validLens(), in.documents(), m.Mask())
	return o
}

// results returns the tensors to write.
func (m Mechanism) results(in *reader) []result {
	names := []string{"out"}
	if m.Rule != nil {
		names = append(names, "state")
	}
	if m.Weights {
		names = append(names, "weights")
	}
	if m.LSE {
		names = append(names, "lse")
	}
	var all []result
	for _, name := range names {
		r := result{name: name}
		if m.Rule == nil || name != "weights" { // without a softmax, no gradient flows through weights
			r.upstream = in.floats("d" + name)
		}
		all = append(all, r)
	}
	return all
}

// score returns the scoring function with the parameters of a file.
func (m Mechanism) score(in *reader) attn.Score {
	params := map[string]*tensor.Tensor{}
	for _, p := range m.kind.Params {
		name := "score." + p.Name
		if x := in.parameter(name, in.floats(name)); x != nil {
			params[p.Name] = x
			if m.Scale != nil {
				in.fail(flags.Errorf("--scale and the tensor %s cannot be used together", name))
			}
		} else if !p.Optional {
			in.fail(in.bad("tensor %q is missing", name))
		}
	}
	if in.err != nil {
		return nil
	}
	if m.Scale != nil {
		return m.kind.Scaled(*m.Scale)
	}
	s, err := m.kind.With(params)
	if err != nil {
		in.fail(in.bad("%v", err))
	}
	return s
}

// leaf returns an entry for a tensor whose gradient is written.
func leaf(name string, x *tensor.Tensor) nn.Entry {
	return nn.Entry{Name: name, Parts: []*tensor.Tensor{x}}
}

// gradient returns the gradient of an entry, concatenated from its parts. Parts without a gradient
// are zero.
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

// Scores returns a line for each score: its name, formula and parameters.
func Scores() string {
	var b strings.Builder
	for _, kind := range score.Kinds() {
		var params []string
		for _, p := range kind.Params {
			text := fmt.Sprintf("score.%s [%s]", p.Name, strings.Join(p.Axes, " "))
			if p.Optional {
				text += " or nothing"
			}
			params = append(params, text)
		}
		line := fmt.Sprintf("  %-17s%-23s%s", kind.Name, kind.Formula, strings.Join(params, ", "))
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

// Scaled returns the names of the scores that have a scale.
func Scaled() []string {
	return slices.DeleteFunc(score.Kinds(), func(k score.Kind) bool { return k.Scaled == nil }).Names()
}

// Masks are the masks that flags name.
type Masks struct {
	Causal    bool  `help:"Query i attends to key j only if j ≤ i + offset." group:"Masks"`
	Window    []int `help:"Query i attends only to keys at most N away from i + offset, or at most N before and M after it." placeholder:"N" group:"Masks" want:"at least 0"`
	Offset    *int  `help:"Offset of --causal and --window (default Lk − Lq)." placeholder:"N" group:"Masks" needs:"causal|window"`
	Sink      *int  `help:"With --window, every query also attends to the first N keys." placeholder:"N" group:"Masks" want:"at least 0" needs:"window" excludes:"offset"`
	Documents []int `help:"Ends of the documents packed into a sequence (exclusive); a query attends only to keys of the same document." placeholder:"N" group:"Masks" want:"at least 0"`
}

// Check returns an error for flags that contradict each other.
func (m Masks) Check() error {
	switch {
	case len(m.Window) > 2:
		return fmt.Errorf("--window %s, want one number or two", joined(m.Window))
	case m.Causal && len(m.Window) == 2 && m.Window[1] != 0:
		return fmt.Errorf("--window %s: with --causal, no key after the query is attended to", joined(m.Window))
	case !slices.IsSorted(m.Documents):
		return fmt.Errorf("--documents %s, want cumulative lengths in ascending order", joined(m.Documents))
	}
	return nil
}

// joined returns a list of numbers in the form of the command line.
func joined(numbers []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(numbers), " ", ","), "[]")
}

// Mask returns all masks together.
func (m Masks) Mask() attn.Mask {
	var documents attn.Mask
	if m.Documents != nil {
		documents = mask.Documents(m.Documents)
	}
	left, right := -1, -1
	if m.Window != nil {
		left, right = m.Window[0], m.Window[len(m.Window)-1]
	}
	if m.Causal {
		right = 0
	}
	switch {
	case left < 0 && right < 0:
		return documents
	case m.Sink != nil:
		return attn.And(documents, mask.WindowWithSinks(left, right, *m.Sink))
	case m.Offset != nil:
		return attn.And(documents, mask.WindowAt(left, right, *m.Offset))
	}
	return attn.And(documents, mask.Window(left, right))
}
