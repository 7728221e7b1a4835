package attn

import (
	"fmt"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// TorchState returns the state dict mapping of torch.nn.MultiheadAttention, which stacks the maps
// of q, k and v:
//
//	in_proj_weight                        rows of q, k and v, if their inputs have the layer's width
//	q_proj_weight k_proj_weight v_proj_weight   otherwise
//	in_proj_bias                          of q, k and v
//	out_proj.weight out_proj.bias
//	bias_k bias_v                         of add_bias_kv
//
// PyTorch's batch_first=True is layout BatchFirst, batch_first=False is SequenceFirst. PyTorch's
// masks are the inverse: True hides a key.
//
// TorchState returns an error if PyTorch has no such layer: if keys and values are shared by
// several heads, head sizes differ from Width/Heads, a query or output width differs from Width,
// only some maps have a bias, the score is not ScaledDot, or the layer has norms of queries and
// keys, sinks or an OutputGate. It also returns an error if the layer's widths are still unknown. A PyTorch file
// does not record add_zero_attn; set ZeroKV of the configuration instead.
func (m *MultiHead) TorchState() (nn.StateDict, error) {
	c := &m.config
	refuse := func(format string, args ...any) (nn.StateDict, error) {
		return nil, fmt.Errorf("attn: TorchState: torch.nn.MultiheadAttention does not support "+format, args...)
	}
	switch {
	case m.Q == nil:
		return nil, fmt.Errorf("attn: TorchState: the widths of the layer's inputs are not known yet: call Build or Forward first")
	case c.Heads == 0 || c.Heads*c.HeadSize != c.Width || c.ValueSize != c.HeadSize:
		return refuse("%d heads of key size %d and value size %d in width %d, want both sizes to be width/heads", c.Heads, c.HeadSize, c.ValueSize, c.Width)
	case c.KVHeads != c.Heads:
		return refuse("%d key/value heads for %d heads, want equal numbers", c.KVHeads, c.Heads)
	case c.QueryWidth != c.Width || c.OutWidth != c.Width:
		return refuse("queries of width %d and output of width %d, want the layer's width %d for both", c.QueryWidth, c.OutWidth, c.Width)
	case !plainDot(c.Score):
		return refuse("a score of type %T, want the scaled dot product", c.Score)
	case c.QueryNorm != nil || c.KeyNorm != nil || c.ValueNorm != nil:
		return refuse("norms of queries, keys or values")
	case m.Sinks != nil:
		return refuse("learnt sinks")
	case m.Gate != nil:
		return refuse("an output gate")
	}
	biased := m.Q.Bias != nil
	for _, l := range []*nn.Linear{m.Q, m.K, m.V, m.Out} {
		if l.Weight == nil {
			return nil, fmt.Errorf("attn: TorchState: the weights are packed for inference, want parameters; models.Options{Trainable: true} loads them")
		}
		if (l.Bias != nil) != biased {
			return refuse("biases on some projections, want biases on all or none")
		}
	}
	var d nn.StateDict
	add := func(name string, parts ...*tensor.Tensor) { d = append(d, nn.Entry{Name: name, Parts: parts}) }
	if c.KeyWidth == c.Width && c.ValueWidth == c.Width {
		add("in_proj_weight", m.Q.Weight, m.K.Weight, m.V.Weight)
	} else {
		add("q_proj_weight", m.Q.Weight)
		add("k_proj_weight", m.K.Weight)
		add("v_proj_weight", m.V.Weight)
	}
	add("out_proj.weight", m.Out.Weight)
	if biased {
		add("in_proj_bias", m.Q.Bias, m.K.Bias, m.V.Bias)
		add("out_proj.bias", m.Out.Bias)
	}
	if m.BiasK != nil {
		add("bias_k", m.BiasK)
		add("bias_v", m.BiasV)
		return d, nil
	}
	for _, name := range []string{"bias_k", "bias_v"} {
		d = append(d, nn.Entry{Name: name, Refused: "of add_bias_kv, want a layer with BiasKV"})
	}
	return d, nil
}

// plainDot reports whether a layer's score is the scaled dot product.
func plainDot(s Score) bool {
	if s == nil {
		return true
	}
	f := s.Form()
	return f.isDot() && f.Queries == nil && f.Keys == nil && f.MappedKeys == nil && f.Scale == 1 && f.PerRoot
}
