package onnx_test

import (
	"fmt"
	"slices"
)

func reshape(c *call) []*Array {
	x, shape := c.in[0], c.ints(1)
	rest := -1
	for i, d := range shape {
		switch d {
		case 0:
			shape[i] = x.Shape[i]
		case -1:
			rest = i
		}
	}
	if rest >= 0 {
		shape[rest] = 1
		shape[rest] = len(x.Data) / product(shape)
	}
	if product(shape) != len(x.Data) {
		panic(fmt.Sprintf("Reshape of %v to %v", x.Shape, shape))
	}
	return []*Array{{shape, x.Data}}
}

func transpose(x *Array, order []int) *Array {
	out := &Array{Shape: make([]int, len(order))}
	for i, a := range order {
		out.Shape[i] = x.Shape[a]
	}
	from := make([]int, len(order))
	for index := range indices(out.Shape) {
		for i, a := range order {
			from[a] = index[i]
		}
		out.Data = append(out.Data, x.at(from))
	}
	return out
}

func unsqueeze(c *call) []*Array {
	shape := slices.Clone(c.in[0].Shape)
	for _, a := range c.ints(1) { // ascending
		shape = slices.Insert(shape, a, 1)
	}
	return []*Array{{shape, c.in[0].Data}}
}

func squeeze(c *call) []*Array {
	axes := c.ints(1)
	if len(axes) != 1 || c.in[0].Shape[axes[0]] != 1 {
		panic(fmt.Sprintf("Squeeze of axes %v of %v", axes, c.in[0].Shape))
	}
	return []*Array{{slices.Delete(slices.Clone(c.in[0].Shape), axes[0], axes[0]+1), c.in[0].Data}}
}

func concat(axis int, xs ...*Array) *Array {
	out := &Array{Shape: slices.Clone(xs[0].Shape)}
	out.Shape[axis] = 0
	for _, x := range xs {
		for a, d := range x.Shape {
			if a != axis && d != out.Shape[a] || len(x.Shape) != len(out.Shape) {
				panic(fmt.Sprintf("Concat of %v and %v", xs[0].Shape, x.Shape))
			}
		}
		out.Shape[axis] += x.Shape[axis]
	}
	for block := range product(out.Shape[:axis]) {
		for _, x := range xs {
			n := product(x.Shape[axis:])
			out.Data = append(out.Data, x.Data[block*n:(block+1)*n]...)
		}
	}
	return out
}

func slice(c *call) []*Array {
	x, start, to, axis, step := c.in[0], c.ints(1)[0], c.ints(2)[0], c.ints(3)[0], c.ints(4)[0]
	if to < 0 {
		to += x.Shape[axis]
	}
	var places []int
	for i := start; i < min(to, x.Shape[axis]); i += step {
		places = append(places, i)
	}
	out := &Array{Shape: slices.Clone(x.Shape)}
	out.Shape[axis] = len(places)
	from := make([]int, len(x.Shape))
	for index := range indices(out.Shape) {
		copy(from, index)
		from[axis] = places[index[axis]]
		out.Data = append(out.Data, x.at(from))
	}
	return []*Array{out}
}

// gather looks up elements of an axis.
func gather(c *call) []*Array {
	x, at, axis := c.in[0], c.in[1], c.attr("axis", 0)
	out := &Array{Shape: slices.Concat(x.Shape[:axis], at.Shape, x.Shape[axis+1:])}
	size := product(x.Shape[axis+1:])
	for block := range product(x.Shape[:axis]) {
		for _, i := range at.Data {
			if i < 0 || int(i) >= x.Shape[axis] {
				panic(fmt.Sprintf("Gather of %v from axis %d of %v", i, axis, x.Shape))
			}
			out.Data = append(out.Data, x.Data[(block*x.Shape[axis]+int(i))*size:][:size]...)
		}
	}
	return []*Array{out}
}

// cumSum returns the sums up to each element of the last axis.
func cumSum(c *call) []*Array {
	x := c.in[0]
	if axis := int(c.in[1].Data[0]); axis != len(x.Shape)-1 || len(c.in[1].Shape) > 0 || len(c.Attributes) > 0 {
		panic(fmt.Sprintf("axis %d, attributes %v", axis, c.Attributes))
	}
	out := &Array{Shape: x.Shape}
	for row := range slices.Chunk(x.Data, x.Shape[len(x.Shape)-1]) {
		s := 0.0
		for _, v := range row {
			s += v
			out.Data = append(out.Data, s)
		}
	}
	return []*Array{out}
}

func shape(c *call) []*Array {
	c.since(15)
	all := c.in[0].Shape
	out := &Array{}
	for _, d := range all[c.attr("start", 0):c.attr("end", len(all))] {
		out.Data = append(out.Data, float64(d))
	}
	out.Shape = []int{len(out.Data)}
	return []*Array{out}
}

func rangeOf(c *call) []*Array {
	out := &Array{}
	for v := c.in[0].Data[0]; v < c.in[1].Data[0]; v += c.in[2].Data[0] {
		out.Data = append(out.Data, v)
	}
	out.Shape = []int{len(out.Data)}
	return []*Array{out}
}
