package attn

import (
	"fmt"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// NoHeads is a value of MultiHeadConfig.Heads for a layer without heads, for example after
// pruning every head. Its output is the bias of the output projection, or zero without a bias,
// for all inputs.
const NoHeads = -1

// LayerHeads describes the heads of an attention layer: an *attn.MultiHead, or a *linear.Layer.
type LayerHeads struct {
	Name  string // of the layer
	Heads int    // H
	// KeyHeads is the number of heads of keys, each of which consecutive heads share.
	KeyHeads int
	// Group is the number of consecutive heads that are kept or removed together, usually because they share keys, or keys
	// and values; 0 for a layer without heads.
	Group int
	// Signed means that weights may be negative and that rows need not sum to 1, as in package linear.
	Signed bool
	// Fused means that queries, keys and values are not those of single heads, as in latent attention: Edits have none.
	Fused bool
	// Out reads the outputs of the heads, which are side by side.
	Out *nn.Linear
	// Vectors is the number of elements of the queries and keys of a token, and of its decays and strengths in package linear:
	// what weights are computed from.
	Vectors int
}

// Groups returns the groups of the given heads, or an error if these are not ascending heads of the layer in whole groups.
func (l LayerHeads) Groups(heads []int) (groups []int, err error) {
	for i, h := range heads {
		switch {
		case h < 0 || h >= l.Heads || i > 0 && h <= heads[i-1]:
			return nil, fmt.Errorf("heads %v of layer %q, want ascending numbers below %d", heads, l.Name, l.Heads)
		case i%l.Group == 0:
			groups = append(groups, h/l.Group)
		}
	}
	for i, h := range heads {
		if len(heads) != len(groups)*l.Group || h/l.Group != groups[i/l.Group] {
			return nil, fmt.Errorf("heads %v of layer %q, want whole groups of %d that share keys and values", heads, l.Name, l.Group)
		}
	}
	return groups, nil
}

// Heads describes the heads of the layer.
func (m *MultiHead) Heads() LayerHeads {
	c := &m.config
	return LayerHeads{Name: c.Name, Heads: c.Heads, KeyHeads: c.KVHeads, Group: c.Heads / max(c.KVHeads, 1), Out: m.Out, Vectors: max(c.Heads+c.KVHeads, 0) * c.HeadSize}
}

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
	if c.NormProjections && (c.QueryNorm != nil || c.KeyNorm != nil || c.ValueNorm != nil) {
		return nil, fmt.Errorf("attn: Keep: layer %q has a norm over all heads together, want a norm of each head", c.Name)
	}
	groups, err := m.Heads().Groups(heads)
	if err != nil {
		return nil, fmt.Errorf("attn: Keep: %w", err)
	}
	c.Heads, c.KVHeads = len(heads), len(groups)
	c.Score = copyScore(c.Score)
	kept := &MultiHead{config: c, rng: m.rng, given: [3]int{c.QueryWidth, c.KeyWidth, c.ValueWidth}}
	kept.Q, kept.K = m.Q.KeepOutputs(heads, c.HeadSize), m.K.KeepOutputs(groups, c.HeadSize)
	kept.V, kept.Out = m.V.KeepOutputs(groups, c.ValueSize), m.Out.KeepInputs(heads, c.ValueSize)
	kept.joint = join(kept.Q, kept.K, kept.V)
	if m.Gate != nil {
		kept.Gate = m.Gate.KeepOutputs(heads, c.OutputGate.Size)
	}
	kept.Sinks = nn.KeepBlocks(m.Sinks, 0, heads, 1)
	kept.BiasK, kept.BiasV = nn.KeepBlocks(m.BiasK, 2, groups, c.HeadSize), nn.KeepBlocks(m.BiasV, 2, groups, c.ValueSize)
	return kept, nil
}

// like returns a tensor of data that is a parameter if x is one.
func like(x *tensor.Tensor, data []float32, shape ...int) *tensor.Tensor {
	y := tensor.New(data, shape...)
	if x.NeedsGrad() {
		y = y.Param()
	}
	return y
}
