package onnx_test

import (
	"fmt"
	"math"
	"slices"
)

// linearAttention is the operator of opset 27, and that of com.microsoft, token by token.
func linearAttention(c *call) []*Array {
	if c.Domain == "" {
		c.since(27)
	}
	heads, groups, rule := c.attr("q_num_heads", 0), c.attr("kv_num_heads", 0), c.Attributes["update_rule"].Text
	q, k, v, past, decay, beta := c.in[0], c.in[1], c.in[2], c.arg(3), c.arg(4), c.arg(5)
	if (rule == "gated" || rule == "gated_delta") != (decay != nil) || (rule == "delta" || rule == "gated_delta") != (beta != nil) {
		panic(fmt.Sprintf("rule %q with decay: %v, beta: %v", rule, decay != nil, beta != nil))
	}
	b, steps, e, size := q.Shape[0], q.Shape[1], q.Shape[2]/heads, v.Shape[2]/groups
	if heads%groups != 0 || !slices.Equal(k.Shape, []int{b, steps, groups * e}) || !slices.Equal(v.Shape, []int{b, steps, groups * size}) {
		panic(fmt.Sprintf("%d and %d heads of query %v, key %v, value %v", heads, groups, q.Shape, k.Shape, v.Shape))
	}
	scale := c.Attributes["scale"].Float
	if scale == 0 {
		scale = 1 / math.Sqrt(float64(e))
	}
	state := &Array{Shape: []int{b, groups, e, size}, Data: make([]float64, b*groups*e*size)}
	if past != nil {
		if !slices.Equal(past.Shape, state.Shape) {
			panic(fmt.Sprintf("past_state %v, want %v", past.Shape, state.Shape))
		}
		copy(state.Data, past.Data)
	}
	out := &Array{Shape: []int{b, steps, heads * size}, Data: make([]float64, b*steps*heads*size)}
	for s := range b {
		for t := range steps {
			for g := range groups {
				at := func(x *Array, n int) []float64 { // the numbers of a head
					n = x.Shape[2] / n
					return x.Data[(s*steps+t)*x.Shape[2]+g*n:][:n]
				}
				rows := state.Data[(s*groups+g)*e*size:][:e*size]
				for col := range size {
					read := 0.0
					for i := range e {
						if decay != nil {
							d := at(decay, groups)
							rows[i*size+col] *= math.Exp(d[min(i, len(d)-1)])
						}
						read += rows[i*size+col] * at(k, groups)[i]
					}
					u := at(v, groups)[col]
					if beta != nil {
						u = at(beta, groups)[0] * (u - read)
					}
					for i := range e {
						rows[i*size+col] += at(k, groups)[i] * u
						for h := g * heads / groups; h < (g+1)*heads/groups; h++ {
							out.Data[((s*steps+t)*heads+h)*size+col] += scale * rows[i*size+col] * q.Data[((s*steps+t)*heads+h)*e+i]
						}
					}
				}
			}
		}
	}
	return []*Array{out, state}
}

// conv is the depthwise convolution of [B C L] without padding.
func conv(c *call) []*Array {
	x, w, bias := c.in[0], c.in[1], c.arg(2)
	channels, n := x.Shape[1], w.Shape[2]
	if c.attr("group", 1) != channels || len(c.Attributes) != 1 || !slices.Equal(w.Shape, []int{channels, 1, n}) {
		panic(fmt.Sprintf("attributes %v, input %v, weight %v", c.Attributes, x.Shape, w.Shape))
	}
	out := &Array{Shape: []int{x.Shape[0], channels, x.Shape[2] - n + 1}}
	for index := range indices(out.Shape) {
		ch, y := index[1], 0.0
		if bias != nil {
			y = bias.Data[ch]
		}
		for j := range n {
			y += w.Data[ch*n+j] * x.at([]int{index[0], ch, index[2] + j})
		}
		out.Data = append(out.Data, y)
	}
	return []*Array{out}
}
