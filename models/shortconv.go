package models

import (
	"github.com/attn-go/attn"
	"github.com/attn-go/attn/linear"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// shortConv mixes each token with the few before it, channel by channel, between two gates:
//
//	b, c, u = x·W_in,   out = (c ⊙ conv(b ⊙ u))·W_out
type shortConv struct {
	in   []*nn.Linear // of b, c and u
	conv *nn.CausalConv
	out  *nn.Linear
}

func (shortConv) kind() string { return "conv" }

func (s shortConv) mix(t *tensor.Tape, h *tensor.Tensor, _ *Run, kept LayerCache, lens []int) *tensor.Tensor {
	in := nn.Linears(t, h, s.in...)
	state, first := layerState(kept)
	y, last := s.conv.Forward(t, tensor.Mul(t, in[0], in[2]), first, ends(lens))
	if state != nil {
		state.Read(last, h.Dim(1), lens)
	}
	return s.out.Forward(t, tensor.Mul(t, in[1], y))
}

func (s shortConv) newCache(batch int, _ attn.CacheConfig) (LayerCache, error) {
	return CacheOf[*linear.LayerState]{linear.NewLayerState(batch, s.conv, nil)}, nil
}

// layerState returns the state in the cache of a layer with a convolution, and its last inputs; nil for no cache.
func layerState(kept LayerCache) (s *linear.LayerState, inputs *tensor.Tensor) {
	if kept == nil {
		return nil, nil
	}
	s = kept.(CacheOf[*linear.LayerState]).Cache
	return s, s.Inputs()
}

// ends returns the ends of sequences as nn.CausalConv has them.
func ends(lens []int) (list [][]int) {
	for _, n := range lens {
		list = append(list, []int{n})
	}
	return list
}
