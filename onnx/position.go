package onnx

import (
	"cmp"
	"math"
	"reflect"
	"slices"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/position"
	"github.com/attn-go/attn/tensor"
)

// placed applies the position encoding to split heads; positions is a list of integers.
func (g *Graph) placed(p attn.Position, h heads, positions Value) heads {
	h = g.splitHeads(h)
	switch p := p.(type) {
	case *position.RoPE:
		h.v = g.rope(p, h.v, h.size, positions)
	default:
		g.Fail("a position of type %T, want *position.RoPE", p)
	}
	return h
}

// RelativeBias returns the numbers that position.T5Bias or position.ALiBi adds to the scores of n queries with n keys, for
// n up to most. They are computed now.
//
// Shapes: n [] of type Int64, out [H n n].
//
// Errors: another change of scores, and too few buckets.
func (g *Graph) RelativeBias(c attn.ScoreChange, heads int, n Value, most int) Value {
	kind := reflect.TypeOf(c)
	if kind != reflect.TypeOf(position.T5Bias(nil, position.T5Config{})) && kind != reflect.TypeOf(position.ALiBi()) {
		g.Fail("a change of scores of type %T, want position.T5Bias or position.ALiBi", c)
		return n
	}
	sizes := attn.Sizes{B: 1, H: heads, G: heads, Lq: most, Lk: most}
	table := c.Param(nil, attn.Inputs{Sizes: sizes}) // [1 H buckets], or [1 H 1]: the slopes
	h, keys := table.Dim(1), 2*most-1
	if c.Check(sizes) != nil {
		g.Fail("T5Bias has %d buckets, want more, for distances below %d", table.Dim(2), most)
		return n
	}
	numbers := tensor.Zeros(h, keys) // from the key most−1 before a query to the one most−1 behind it
	for i, bucket := range slices.Collect(slices.Chunk(table.Data(), table.Dim(2))) {
		c.Apply(attn.Row{Position: most - 1}, bucket, numbers.Data()[i*keys:][:keys])
	}
	all := g.Count(g.Int(0), n)
	at := g.Add(g.sub(all, g.unsqueeze(all, 1)), g.Int(most-1)) // [n n], key − query + most − 1
	return g.Node("Gather", []Value{g.weight([2]any{c, most}, weight{
		name: "bias", shape: numbers.Shape(), data: numbers.Data(),
	}), at}, Int("axis", 1))
}

// rope rotates pairs of the first elements of vectors. The angles are computed in Float64 when the model runs, so any
// position is supported:
//
//	y_a = x_a·cos − x_b·sin
//	y_b = x_a·sin + x_b·cos
//
// Shapes: x and out [B H L e], positions [L].
func (g *Graph) rope(r *position.RoPE, x Value, e int, positions Value) Value {
	c := r.Config()
	n := cmp.Or(c.Size, e)
	frequencies, factor := make([]float64, n/2), 1.0
	for i := range frequencies {
		frequencies[i] = math.Pow(c.Base, -2*float64(i)/float64(n))
	}
	if c.Scaling != nil {
		var err error
		if factor, err = c.Scaling(c.Base, frequencies); err != nil {
			g.Fail("RoPE: %v", err)
		}
	}
	angle := g.mul(g.unsqueeze(g.cast(positions, Float64), 1), g.doubles(frequencies, n/2)) // [L n/2]
	cos, sin := g.Node("Cos", []Value{angle}), g.Node("Sin", []Value{angle})
	if factor != 1 {
		f := g.doubles([]float64{factor})
		cos, sin = g.mul(cos, f), g.mul(sin, f)
	}
	cos, sin = g.cast(cos, Float32), g.cast(sin, Float32)

	var a, b Value
	if c.Pairs == position.AdjacentPairs {
		a, b = g.slice(x, 3, 0, n, 2), g.slice(x, 3, 1, n, 2)
	} else {
		a, b = g.slice(x, 3, 0, n/2, 1), g.slice(x, 3, n/2, n, 1)
	}
	a, b = g.sub(g.mul(a, cos), g.mul(b, sin)), g.Add(g.mul(a, sin), g.mul(b, cos))
	var y Value
	if c.Pairs == position.AdjacentPairs {
		y = g.reshape(g.concat(4, g.unsqueeze(a, 4), g.unsqueeze(b, 4)), 0, 0, 0, n)
	} else {
		y = g.concat(3, a, b)
	}
	if n < e {
		y = g.concat(3, y, g.slice(x, 3, n, e, 1))
	}
	return y
}
