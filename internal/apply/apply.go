// Package apply runs one attention mechanism on the tensors of a file, and computes the gradients of
// its inputs and parameters. It implements attn apply; errors name the flags of that command.
package apply

import (
	"cmp"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/flags"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/position"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
)

// Mechanism is an attention mechanism with the settings of attn apply.
type Mechanism struct {
	Score   score.Kind
	Scale   *float32 // of the score; nil for the default
	SoftCap float32  // 0 for none
	ALiBi   bool
	Rope    attn.Position // nil for none
	Mask    attn.Mask     // in addition to the masks of the file
	Heads   int           // of a multi-head layer, 0 for none
	KVHeads int           // 0 for the number that the rows of the key weights imply
	Layer   string        // file of the layer's parameters; "" for the input file
	Prefix  string        // of the parameter names in Layer
	Weights bool          // return the attention weights, too
	LSE     bool          // return the log-sum-exp of each query, too
}

// Run runs the mechanism on the tensors of a file, which attn apply --help lists. It returns out,
// weights and lse and, if the file has the gradient of one of these, the gradients of the inputs and
// parameters.
//
// Errors: *input.Error for an invalid file, including one with unknown tensors, and *flags.Error for a
// setting that does not apply to the file.
func (m Mechanism) Run(path string) (out *safetensors.File, err error) {
	file, err := safetensors.Read(path)
	if err != nil {
		return nil, err
	}
	in := &reader{path: path, file: file}
	// Shapes in a file are untrusted: inconsistent shapes are an error of the file.
	if shapes := tensor.Catch(func() { out, err = m.run(in) }); shapes != nil {
		err = in.bad("%v", shapes)
	}
	return out, err
}

// result is a tensor to write, with its upstream gradient from the file or nil.
type result struct {
	name     string
	of       func(attn.Output) *tensor.Tensor
	upstream *tensor.Tensor
}

func (m Mechanism) run(in *reader) (*safetensors.File, error) {
	q, k, v := in.need("q"), in.need("k"), in.need("v")
	params, layer, err := m.parameters(in)
	if err != nil {
		return nil, err
	}
	o := m.options(in, params)
	if m.Rope != nil {
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

	inputs := nn.StateDict{leaf("q", q), leaf("k", k), leaf("v", v), leaf("bias", o.Bias), leaf("sinks", o.Sinks)}
	leaves := slices.Concat(inputs, params.params)
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
	y := m.forward(t, layer, q, k, v, o)
	f := &safetensors.File{}
	add := func(name string, x *tensor.Tensor) {
		f.Tensors = append(f.Tensors, safetensors.FromFloat32s(name, x.Shape(), x.Data()))
	}
	var outs, douts []*tensor.Tensor
	for _, r := range results {
		x := r.of(y)
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

func (m Mechanism) forward(t *tensor.Tape, layer *attn.MultiHead, q, k, v *tensor.Tensor, o attn.Options) attn.Output {
	if layer != nil {
		return layer.Forward(t, q, k, v, o)
	}
	if m.Rope != nil {
		q = attn.ApplyPosition(t, m.Rope, q, attn.Query, o.QueryPositions)
		k = attn.ApplyPosition(t, m.Rope, k, attn.Key, o.KeyPositions)
		o.QueryPositions, o.KeyPositions = attn.Positions{}, attn.Positions{}
	}
	return attn.Attend(t, q, k, v, o)
}

// options returns the options from the mechanism and the files, except positions.
func (m Mechanism) options(in, params *reader) attn.Options {
	o := attn.Options{Score: m.score(params), Bias: in.floats("bias"), SoftCap: m.SoftCap}
	o.Weights, o.LogSumExp = m.Weights, m.LSE
	if o.Sinks = params.floats("sinks"); o.Sinks == nil {
		o.Sinks = in.floats("sinks")
	}
	if m.ALiBi {
		o.Changes = []attn.ScoreChange{position.ALiBi(in.slopes()...)}
	}
	o.Mask = attn.And(in.mask(), in.validLens(), in.documents(), m.Mask)
	return o
}

// results returns the tensors to write.
func (m Mechanism) results(in *reader) []result {
	all := []result{{name: "out", of: func(y attn.Output) *tensor.Tensor { return y.Out }}}
	if m.Weights {
		all = append(all, result{name: "weights", of: func(y attn.Output) *tensor.Tensor { return y.Weights }})
	}
	if m.LSE {
		all = append(all, result{name: "lse", of: func(y attn.Output) *tensor.Tensor { return y.LogSumExp }})
	}
	for i := range all {
		all[i].upstream = in.floats("d" + all[i].name)
	}
	return all
}

// score returns the scoring function with the parameters of a file.
func (m Mechanism) score(in *reader) attn.Score {
	params := map[string]*tensor.Tensor{}
	for _, p := range m.Score.Params {
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
		return m.Score.Scaled(*m.Scale)
	}
	s, err := m.Score.With(params)
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
