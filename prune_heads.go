package attn

import (
	"fmt"
	"slices"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// NoHeads is a value of MultiHeadConfig.Heads for a layer without heads, for example after
// pruning every head. Its output is the bias of the output projection, or zero without a bias,
// for all inputs.
const NoHeads = -1

// Keep returns a smaller layer that has only the given heads, with copies of their parameters.
// heads is in ascending order. Up to rounding, the new layer has the same output as m with gates
// of 0 for all other heads. With grouped-query attention, the heads of a group are kept or
// removed together. Keeping no head gives a layer with NoHeads.
//
// Aliasing: the score is copied if it is a ParamScore, as all scores of this module with
// parameters are; any other score is shared with m. The norms of queries and keys are shared with
// m.
//
// Keep returns an error if heads are not ascending heads of m or split a group, if a map stores
// packed weights, or if norms span all heads. It panics with a *tensor.ShapeError if the widths
// of m are still unknown.
func (m *MultiHead) Keep(heads []int) (*MultiHead, error) {
	m.wantBuilt()
	c := m.config
	for _, l := range []*nn.Linear{m.Q, m.K, m.V, m.Out, m.Gate} {
		if l != nil && l.Weight == nil {
			return nil, fmt.Errorf("attn: Keep: layer %q has a projection whose weights are packed for inference, want parameters; models.Options{Trainable: true} loads them", c.Name)
		}
	}
	if c.NormProjections && (c.QueryNorm != nil || c.KeyNorm != nil) {
		return nil, fmt.Errorf("attn: Keep: layer %q has a norm over all heads together, want a norm of each head", c.Name)
	}
	unfit := func(format string, n int) (*MultiHead, error) {
		return nil, fmt.Errorf("attn: Keep: heads %v of layer %q, want "+format, heads, c.Name, n)
	}
	last := -1
	for _, h := range heads {
		if h <= last || h >= c.Heads {
			return unfit("ascending numbers below %d", c.Heads)
		}
		last = h
	}
	const wholeGroups = "whole groups of %d that share keys and values"
	var groups []int // groups of keys and values
	for i, h := range heads {
		size := c.Heads / c.KVHeads
		switch g := h / size; {
		case i%size == 0:
			groups = append(groups, g)
		case g != groups[len(groups)-1]:
			return unfit(wholeGroups, size)
		}
	}
	if size := c.Heads / max(c.KVHeads, 1); len(heads) != len(groups)*size {
		return unfit(wholeGroups, size)
	}
	c.Heads, c.KVHeads = len(heads), len(groups)
	c.Score = copyScore(c.Score)
	kept := &MultiHead{config: c, rng: m.rng, given: [3]int{c.QueryWidth, c.KeyWidth, c.ValueWidth}}
	kept.Q, kept.K = keepOutputs(m.Q, heads, c.HeadSize), keepOutputs(m.K, groups, c.HeadSize)
	kept.V, kept.Out = keepOutputs(m.V, groups, c.ValueSize), keepInputs(m.Out, heads, c.ValueSize)
	kept.joint = join(kept.Q, kept.K, kept.V)
	if m.Gate != nil {
		kept.Gate = keepOutputs(m.Gate, heads, c.OutputGate.Size)
	}
	if m.Sinks != nil {
		kept.Sinks = like(m.Sinks, keepBlocks(m.Sinks.Data(), heads, 1), len(heads))
	}
	if m.BiasK != nil {
		kept.BiasK = like(m.BiasK, keepBlocks(m.BiasK.Data(), groups, c.HeadSize), 1, 1, len(groups)*c.HeadSize)
		kept.BiasV = like(m.BiasV, keepBlocks(m.BiasV.Data(), groups, c.ValueSize), 1, 1, len(groups)*c.ValueSize)
	}
	return kept, nil
}

// keepBlocks returns the given blocks, each with size elements.
func keepBlocks(x []float32, blocks []int, size int) []float32 {
	y := make([]float32, 0, len(blocks)*size)
	for _, b := range blocks {
		y = append(y, x[b*size:(b+1)*size]...)
	}
	return y
}

// keepOutputs returns the map to the given blocks, each with size outputs.
func keepOutputs(l *nn.Linear, blocks []int, size int) *nn.Linear {
	in, n := l.Weight.Dim(1), len(blocks)*size
	kept := &nn.Linear{Weight: like(l.Weight, keepBlocks(l.Weight.Data(), blocks, size*in), n, in)}
	if l.Bias != nil {
		kept.Bias = like(l.Bias, keepBlocks(l.Bias.Data(), blocks, size), n)
	}
	return kept
}

// keepInputs returns the map from the given blocks, each with size inputs.
func keepInputs(l *nn.Linear, blocks []int, size int) *nn.Linear {
	out, in := l.Weight.Dim(0), l.Weight.Dim(1)
	var y []float32
	for i := range out {
		y = append(y, keepBlocks(l.Weight.Data()[i*in:][:in], blocks, size)...)
	}
	kept := &nn.Linear{Weight: like(l.Weight, y, out, len(blocks)*size)}
	if l.Bias != nil {
		kept.Bias = like(l.Bias, slices.Clone(l.Bias.Data()), out)
	}
	return kept
}

// like returns a tensor of data that is a parameter if x is one.
func like(x *tensor.Tensor, data []float32, shape ...int) *tensor.Tensor {
	y := tensor.New(data, shape...)
	if x.NeedsGrad() {
		y = y.Param()
	}
	return y
}
