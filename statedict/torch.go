package statedict

import (
	"fmt"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/safetensors"
)

// TorchConfig returns the configuration of a layer whose state dict torch.nn.MultiheadAttention has saved with the given
// prefix. The tensors in the file give the widths and whether the layer has biases and bias_k. The file contains neither
// the number of heads nor add_zero_attn.
//
//	c, err := statedict.TorchConfig(r, "encoder.layers.0.self_attn.", 8)
//	layer, err := attn.NewMultiHead(c, rng)
//	err = statedict.LoadFrom(r, layer, statedict.LoadOptions{Names: nn.TorchNames, Prefix: "encoder.layers.0.self_attn."})
//
// TorchConfig returns a *safetensors.FormatError if tensors are missing or are no matrices. Loading checks whether all
// tensors fit.
func TorchConfig(r *safetensors.Reader, prefix string, heads int) (attn.MultiHeadConfig, error) {
	c := attn.MultiHeadConfig{Heads: heads}
	for _, f := range []struct {
		name string
		axis int
		to   *int
	}{
		{"out_proj.weight", 0, &c.Width},
		{"k_proj_weight", 1, &c.KeyWidth},
		{"v_proj_weight", 1, &c.ValueWidth},
	} {
		info, there := r.Lookup(prefix + f.name)
		switch {
		case !there && f.axis == 0:
			return c, &safetensors.FormatError{Path: r.Path(), Err: fmt.Errorf("tensor %q is missing", prefix+f.name)}
		case !there: // part of in_proj_weight; has the layer's width
			continue
		case len(info.Shape) != 2 || info.Shape[f.axis] == 0:
			return c, &safetensors.FormatError{Path: r.Path(), Err: fmt.Errorf("tensor %q has shape %v, want a matrix", prefix+f.name, info.Shape)}
		}
		*f.to = info.Shape[f.axis]
	}
	if _, biased := r.Lookup(prefix + "in_proj_bias"); biased {
		c.Bias = attn.AllProjections
	}
	_, c.BiasKV = r.Lookup(prefix + "bias_k")
	return c, nil
}
