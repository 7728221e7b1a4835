package nn

import (
	"slices"

	"github.com/attn-go/attn/internal/stats"
	"github.com/attn-go/attn/tensor"
)

// KeepBlocks returns a copy of some blocks of x along an axis, where block i has the indices from i·size up to (i+1)·size:
// the parameters of the heads that a smaller layer keeps. It is a parameter if x is one, and nil if x is.
func KeepBlocks(x *tensor.Tensor, axis int, blocks []int, size int) *tensor.Tensor {
	if x == nil {
		return nil
	}
	shape, length := slices.Clone(x.Shape()), size
	for _, n := range shape[axis+1:] {
		length *= n
	}
	row := shape[axis] * length / size
	shape[axis] = len(blocks) * size
	var kept []float32
	for at := 0; at < x.Len(); at += row {
		for _, b := range blocks {
			kept = append(kept, x.Data()[at+b*length:][:length]...)
		}
	}
	y := tensor.New(kept, shape...)
	if x.NeedsGrad() {
		y = y.Param()
	}
	return y
}

// KeepOutputs returns the map to the given blocks, each with size outputs. Its parameters are copies.
func (l *Linear) KeepOutputs(blocks []int, size int) *Linear {
	return &Linear{Weight: KeepBlocks(l.Weight, 0, blocks, size), Bias: KeepBlocks(l.Bias, 0, blocks, size)}
}

// KeepInputs returns the map from the given blocks, each with size inputs. Its parameters are copies.
func (l *Linear) KeepInputs(blocks []int, size int) *Linear {
	return &Linear{Weight: KeepBlocks(l.Weight, 1, blocks, size), Bias: KeepBlocks(l.Bias, 0, stats.Numbers(l.Weight.Dim(0)), 1)}
}

// KeepChannels returns the convolution of the given channels alone. Its parameters are copies.
func (c *CausalConv) KeepChannels(channels []int) *CausalConv {
	return &CausalConv{Weight: KeepBlocks(c.Weight, 2, channels, 1), Bias: KeepBlocks(c.Bias, 0, channels, 1), Activation: c.Activation}
}

// BlockElements returns the indexes of the elements of blocks of the given size. Block 0 begins at element from.
func BlockElements(from int, blocks []int, size int) []int {
	all := make([]int, 0, len(blocks)*size)
	for _, b := range blocks {
		for i := range size {
			all = append(all, from+b*size+i)
		}
	}
	return all
}
