package models

import (
	"fmt"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/internal/stats"
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
	state := convState{lens: make([]int, h.Dim(0))}
	if kept != nil {
		state = *kept.(CacheOf[*convState]).Cache
	}
	in := nn.Linears(t, h, s.in...)
	y, last := s.conv.Forward(t, tensor.Mul(t, in[0], in[2]), state.inputs, ends(lens))
	if kept != nil {
		kept.(CacheOf[*convState]).Cache.add(last, h.Dim(1), lens)
	}
	return s.out.Forward(t, tensor.Mul(t, in[1], y))
}

func (s shortConv) newCache(batch int, _ attn.CacheConfig) (LayerCache, error) {
	w := s.conv.Weight
	return CacheOf[*convState]{&convState{tensor.Zeros(batch, w.Dim(0)-1, w.Dim(2)), make([]int, batch)}}, nil
}

// ends returns the ends of sequences as nn.CausalConv has them.
func ends(lens []int) (list [][]int) {
	for _, n := range lens {
		list = append(list, []int{n})
	}
	return list
}

// convState is the last inputs of a convolution.
type convState struct {
	inputs *tensor.Tensor // [B N−1 C]
	lens   []int          // tokens read
}

// add notes l tokens of each sequence, or lens, after which the last inputs are last.
func (s *convState) add(last *tensor.Tensor, l int, lens []int) {
	s.inputs, s.lens = tensor.New(slices.Clone(last.Data()), last.Shape()...), slices.Clone(s.lens) // not in the memory of a tape
	for i := range s.lens {
		if lens != nil {
			l = lens[i]
		}
		s.lens[i] += l
	}
}

func (s *convState) Lens() []int { return slices.Clone(s.lens) }

func (s *convState) Bytes() int { return 4 * s.inputs.Len() }

func (s *convState) Select(sequences []int) *convState {
	return &convState{tensor.Gather(nil, s.inputs, sequences), stats.Pick(s.lens, sequences)}
}

func (s *convState) Join(others ...*convState) *convState {
	all, lens := []*tensor.Tensor{s.inputs}, slices.Clone(s.lens)
	for _, o := range others {
		all, lens = append(all, o.inputs), append(lens, o.lens...)
	}
	return &convState{tensor.Concat(nil, 0, all...), lens}
}

func (s *convState) Truncate(lens ...int) {
	if len(lens) != 1 && len(lens) != len(s.lens) {
		panic(&tensor.ValueError{Op: "models: Truncate", Arg: "lengths", Got: fmt.Sprint(len(lens)), Want: fmt.Sprintf("1 or %d", len(s.lens))})
	}
	if !slices.ContainsFunc(lens, func(n int) bool { return n != 0 }) {
		*s = convState{tensor.Zeros(s.inputs.Shape()...), make([]int, len(s.lens))}
	}
	for i, n := range s.lens {
		if want := lens[min(i, len(lens)-1)]; want != n {
			panic(&tensor.ShapeError{
				Op: "models: Truncate", Arg: fmt.Sprintf("sequence %d", i), What: "length", Got: []int{want}, Want: fmt.Sprintf("0 or %d", n),
			})
		}
	}
}
