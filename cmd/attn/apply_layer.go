package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
)

// parameters returns where the parameters are: in the file of --layer, or with the
// inputs.
func (cmd *applyCommand) parameters(in *mechanism) (*mechanism, error) {
	if cmd.Layer == "" {
		return in, nil
	}
	r, err := safetensors.Open(cmd.Layer)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	p := &mechanism{path: cmd.Layer, prefix: cmd.Prefix, file: &safetensors.File{}}
	for _, info := range r.Tensors() {
		if !strings.HasPrefix(info.Name, cmd.Prefix) {
			continue
		}
		x, err := r.Tensor(info.Name)
		if err != nil {
			return nil, err
		}
		p.file.Tensors = append(p.file.Tensors, *x)
	}
	if len(p.file.Tensors) == 0 {
		return nil, p.bad("no tensor begins with %s", shortened(cmd.Prefix))
	}
	if !p.has("in_proj_weight") && !p.has("q_proj_weight") {
		return p, nil
	}
	return p, cmd.readTorch(p, r)
}

// readTorch reads the layer of torch.nn.MultiheadAttention.
func (cmd *applyCommand) readTorch(p *mechanism, r *safetensors.Reader) error {
	c, err := attn.TorchConfig(r, cmd.Prefix, cmd.heads())
	if err != nil {
		return err
	}
	if cmd.Score != "scaled" || cmd.Scale != nil {
		return usage("--score and --scale do not go with a layer of torch.nn.MultiheadAttention")
	}
	if cmd.KVHeads != nil && *cmd.KVHeads != cmd.heads() {
		return p.bad("torch.nn.MultiheadAttention has as many heads of keys and values as of queries, not --kv-heads %d", *cmd.KVHeads)
	}
	c.Position = cmd.rope()
	c.Init = nn.ZeroLinear
	if p.torch, err = attn.NewMultiHead(c, nil); err != nil {
		return p.bad("%v", err)
	}
	if err := nn.LoadFrom(r, p.torch, nn.LoadOptions{Names: nn.TorchNames, Prefix: cmd.Prefix}); err != nil {
		return err
	}
	dict, err := nn.TorchNames(p.torch)
	for _, e := range dict {
		if e.Refused == "" {
			p.params = append(p.params, e)
			p.asked = append(p.asked, e.Name)
		}
	}
	return err
}

// mapNames are the names that the maps of q, k, v and the output have in files.
var mapNames = [][4]string{
	{"q", "k", "v", "out"},
	{"q_proj", "k_proj", "v_proj", "o_proj"},
	{"q_proj", "k_proj", "v_proj", "out_proj"},
}

// layer returns the multi-head layer of --heads, or nil.
func (cmd *applyCommand) layer(in *mechanism, score attn.Score, position attn.Position) *attn.MultiHead {
	heads := cmd.heads()
	if heads == 0 {
		return nil
	}
	if in.torch != nil {
		return in.torch
	}
	names := mapNames[0]
	if cmd.Layer == "" && in.has("in_proj_weight") {
		in.fail(in.bad("tensor %q goes with --layer", "in_proj_weight"))
	}
	if cmd.Layer != "" {
		for _, n := range mapNames {
			if in.has(n[0]+".weight") && in.has(n[3]+".weight") {
				names = n
			}
		}
	}
	var maps [4]*nn.Linear
	for i, name := range names {
		maps[i] = &nn.Linear{Weight: in.param(name+".weight", 2), Bias: in.optional(name + ".bias")}
	}
	if in.err != nil {
		return nil
	}
	// The rows of the weights say how large a head is, and, where k has fewer
	// of them than q, that heads share keys and values.
	q, k, v, out := maps[0].Weight, maps[1].Weight, maps[2].Weight, maps[3].Weight
	size := q.Dim(0) / heads
	if size == 0 || q.Dim(0)%heads != 0 || k.Dim(0)%size != 0 || k.Dim(0) == 0 || v.Dim(0)%(k.Dim(0)/size) != 0 {
		in.fail(in.bad("%s.weight, %s.weight and %s.weight have %d, %d and %d rows, which %d heads do not divide",
			names[0], names[1], names[2], q.Dim(0), k.Dim(0), v.Dim(0), heads))
		return nil
	}
	groups := k.Dim(0) / size
	if cmd.KVHeads != nil && groups != *cmd.KVHeads {
		in.fail(in.bad("%s.weight has %d rows, %d heads of size %d, not --kv-heads %d", names[1], k.Dim(0), groups, size, *cmd.KVHeads))
		return nil
	}
	valueSize := v.Dim(0) / groups
	m, err := attn.NewMultiHead(attn.MultiHeadConfig{
		Width: q.Dim(1), KeyWidth: k.Dim(1), ValueWidth: v.Dim(1),
		Heads: heads, KVHeads: groups, HeadSize: size, ValueSize: valueSize, OutWidth: out.Dim(0), Score: score, Position: position,
		// The maps are those of the file, whatever sizes it claims.
		Init: func(int, int, bool, *rand.Rand) *nn.Linear { return new(nn.Linear) },
	}, nil)
	if err != nil {
		in.fail(in.bad("%v", err))
		return nil
	}
	m.Q, m.K, m.V, m.Out = maps[0], maps[1], maps[2], maps[3]
	want := func(name string, x *tensor.Tensor, shape ...int) {
		if x != nil && !slices.Equal(x.Shape(), shape) {
			in.fail(in.bad("tensor %q has shape %v, want %v", in.prefix+name, x.Shape(), shape))
		}
	}
	want(names[3]+".weight", out, out.Dim(0), heads*valueSize)
	for i, name := range names {
		want(name+".bias", maps[i].Bias, maps[i].Weight.Dim(0))
	}
	return m
}

// mostNumbers bounds the arrays that apply makes: 4 GiB each.
const mostNumbers = 1 << 30

// plausible refuses tensors that are small themselves and whose scores or maps, the
// largest of which is widest, would take all memory.
func (m *mechanism) plausible(q, k, v *tensor.Tensor, heads, widest int) {
	if m.err != nil || q.Rank() < 3 || k.Rank() != q.Rank() || v.Rank() != q.Rank() {
		return // what shapes disagree is told elsewhere
	}
	batch := float64(q.Len() / q.Dim(-1) / q.Dim(-2)) // and heads, where q has them
	lq, lk := float64(q.Dim(-2)), float64(k.Dim(-2))
	widest = max(widest, k.Dim(-1), v.Dim(-1))
	if n := batch * max(float64(max(heads, 1))*lq*lk, max(lq, lk)*float64(widest)); n > mostNumbers {
		m.fail(m.bad("q %v, k %v and v %v would need arrays of %.1e numbers, want at most %d", q.Shape(), k.Shape(), v.Shape(), n, mostNumbers))
	}
}

// largestAxis returns the size of the longest axis of a parameter.
func (m *mechanism) largestAxis() int {
	n := 1
	for _, e := range m.params {
		for _, x := range e.Parts {
			n = max(n, slices.Max(append(x.Shape(), 1)))
		}
	}
	return n
}

// otherwise returns the flag with which a tensor is read, or nothing.
func otherwise(name string) string {
	switch name {
	case "slopes":
		return "--alibi"
	case "q_positions", "k_positions":
		return "--rope"
	case "dweights":
		return "--weights"
	case "dlse":
		return "--lse"
	case "in_proj_weight", "in_proj_bias", "q_proj_weight", "k_proj_weight", "v_proj_weight":
		return "--layer"
	}
	var kinds []string
	for _, kind := range score.Kinds() {
		if slices.ContainsFunc(kind.Params, func(p score.Param) bool { return name == "score."+p.Name }) {
			kinds = append(kinds, kind.Name)
		}
	}
	if len(kinds) > 0 {
		return fmt.Sprint("--score ", listed(kinds, "or"))
	}
	for i, names := range mapNames {
		for _, n := range names {
			if name == n+".weight" || name == n+".bias" {
				return []string{"--heads", "--layer", "--layer"}[i]
			}
		}
	}
	return ""
}
