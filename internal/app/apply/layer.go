package apply

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/app/flags"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/statedict"
	"github.com/attn-go/attn/tensor"
)

// parameters returns the reader of the parameters, which are in m.Layer or in the input file. For a
// state dict of torch.nn.MultiheadAttention, it also returns the layer.
func (m Mechanism) parameters(in *reader) (*reader, *attn.MultiHead, error) {
	if m.Layer == "" {
		return in, nil, nil
	}
	r, err := safetensors.Open(m.Layer)
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	p := &reader{path: m.Layer, prefix: m.Prefix, file: &safetensors.File{}}
	for _, info := range r.Tensors() {
		if !strings.HasPrefix(info.Name, m.Prefix) {
			continue
		}
		x, err := r.Tensor(info.Name)
		if err != nil {
			return nil, nil, err
		}
		p.file.Tensors = append(p.file.Tensors, *x)
	}
	if len(p.file.Tensors) == 0 {
		return nil, nil, p.bad("no tensor begins with %s", quote.Text(m.Prefix))
	}
	if !p.has("in_proj_weight") && !p.has("q_proj_weight") {
		return p, nil, nil
	}
	layer, err := m.torchLayer(p, r)
	return p, layer, err
}

// torchLayer reads the layer of torch.nn.MultiheadAttention.
func (m Mechanism) torchLayer(p *reader, r *safetensors.Reader) (*attn.MultiHead, error) {
	c, err := statedict.TorchConfig(r, m.Prefix, m.Heads)
	if err != nil {
		return nil, err
	}
	if m.Score != "scaled" || m.Scale != nil {
		return nil, flags.Errorf("--score and --scale cannot be used with a layer of torch.nn.MultiheadAttention")
	}
	if m.KVHeads != 0 && m.KVHeads != m.Heads {
		return nil, p.bad("torch.nn.MultiheadAttention has as many key/value heads as query heads, not --kv-heads %d",
			m.KVHeads)
	}
	c.Position = m.rope
	c.Init = nn.ZeroLinear
	layer, err := attn.NewMultiHead(c, nil)
	if err != nil {
		return nil, p.bad("%v", err)
	}
	if err := statedict.LoadFrom(r, layer, statedict.LoadOptions{Names: nn.TorchNames, Prefix: m.Prefix}); err != nil {
		return nil, err
	}
	dict, err := nn.TorchNames(layer)
	for _, e := range dict {
		if e.Refused == "" {
			p.params = append(p.params, e)
			p.asked = append(p.asked, e.Name)
		}
	}
	return layer, err
}

// mapNames are the names of the linear maps of q, k, v and the output in files.
var mapNames = [][4]string{
	{"q", "k", "v", "out"},
	{"q_proj", "k_proj", "v_proj", "o_proj"},
	{"q_proj", "k_proj", "v_proj", "out_proj"},
}

// layer returns the multi-head layer whose linear maps are in a file. The size of a head follows from
// the rows of the weights. If k has fewer rows than q, heads share keys and values.
func (m Mechanism) layer(in *reader, score attn.Score) *attn.MultiHead {
	names := mapNames[0]
	if m.Layer == "" && in.has("in_proj_weight") {
		in.fail(in.bad("tensor %q requires --layer", "in_proj_weight"))
	}
	for _, n := range mapNames {
		if m.Layer != "" && in.has(n[0]+".weight") && in.has(n[3]+".weight") {
			names = n
		}
	}
	var maps [4]*nn.Linear
	for i, name := range names {
		weight, bias := name+".weight", name+".bias"
		maps[i] = &nn.Linear{Weight: in.parameter(weight, in.need(weight)), Bias: in.parameter(bias, in.floats(bias))}
		if x := maps[i].Weight; x != nil && x.Rank() != 2 {
			in.fail(in.bad("tensor %q has shape %v, want 2 axes", in.prefix+weight, x.Shape()))
		}
	}
	if in.err != nil {
		return nil
	}
	q, k, v, out := maps[0].Weight, maps[1].Weight, maps[2].Weight, maps[3].Weight
	size := q.Dim(0) / m.Heads
	if size == 0 || q.Dim(0)%m.Heads != 0 || k.Dim(0)%size != 0 || k.Dim(0) == 0 || v.Dim(0)%(k.Dim(0)/size) != 0 {
		in.fail(in.bad("%s.weight, %s.weight and %s.weight have %d, %d and %d rows, which are not divisible by %d heads",
			names[0], names[1], names[2], q.Dim(0), k.Dim(0), v.Dim(0), m.Heads))
		return nil
	}
	groups := k.Dim(0) / size
	if m.KVHeads != 0 && groups != m.KVHeads {
		in.fail(in.bad("%s.weight has %d rows, %d heads of size %d, not --kv-heads %d",
			names[1], k.Dim(0), groups, size, m.KVHeads))
		return nil
	}
	valueSize := v.Dim(0) / groups
	layer, err := attn.NewMultiHead(attn.MultiHeadConfig{
		Width: q.Dim(1), KeyWidth: k.Dim(1), ValueWidth: v.Dim(1), Heads: m.Heads, KVHeads: groups,
		HeadSize: size, ValueSize: valueSize, OutWidth: out.Dim(0), Score: score, Position: m.rope,
		// The maps come from the file; do not allocate sizes that an untrusted file claims.
		Init: func(int, int, bool, *rand.Rand) *nn.Linear { return new(nn.Linear) },
	}, nil)
	if err != nil {
		in.fail(in.bad("%v", err))
		return nil
	}
	layer.Q, layer.K, layer.V, layer.Out = maps[0], maps[1], maps[2], maps[3]
	want := func(name string, x *tensor.Tensor, shape ...int) {
		if x != nil && !slices.Equal(x.Shape(), shape) {
			in.fail(in.bad("tensor %q has shape %v, want %v", in.prefix+name, x.Shape(), shape))
		}
	}
	want(names[3]+".weight", out, out.Dim(0), m.Heads*valueSize)
	for i, name := range names {
		want(name+".bias", maps[i].Bias, maps[i].Weight.Dim(0))
	}
	return layer
}
