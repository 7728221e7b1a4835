package onnx

import "math"

// Operators with the names used in formulas. Values broadcast as in NumPy.

// Add returns a + b, such as a residual connection.
//
// Shapes: a and b broadcast to the shape of the result.
func (g *Graph) Add(a, b Value) Value { return g.Node("Add", []Value{a, b}) }

func (g *Graph) sub(a, b Value) Value    { return g.Node("Sub", []Value{a, b}) }
func (g *Graph) mul(a, b Value) Value    { return g.Node("Mul", []Value{a, b}) }
func (g *Graph) div(a, b Value) Value    { return g.Node("Div", []Value{a, b}) }
func (g *Graph) matmul(a, b Value) Value { return g.Node("MatMul", []Value{a, b}) }
func (g *Graph) tanh(x Value) Value      { return g.Node("Tanh", []Value{x}) }
func (g *Graph) abs(x Value) Value       { return g.Node("Abs", []Value{x}) }
func (g *Graph) sqrt(x Value) Value      { return g.Node("Sqrt", []Value{x}) }

// and is true where both conditions are true; an absent condition is always true.
func (g *Graph) and(a, b Value) Value {
	switch {
	case a == "":
		return b
	case b == "":
		return a
	}
	return g.Node("And", []Value{a, b})
}

// where returns x where the condition is true, and y elsewhere.
func (g *Graph) where(condition, x, y Value) Value {
	return g.Node("Where", []Value{condition, x, y})
}

func (g *Graph) cast(x Value, to Type) Value {
	return g.Node("Cast", []Value{x}, Int("to", int(to)))
}

// reshape changes the shape of x: 0 keeps an axis, and -1 is computed from the other axes.
func (g *Graph) reshape(x Value, shape ...int) Value {
	return g.Node("Reshape", []Value{x, g.Ints(shape...)})
}

func (g *Graph) transpose(x Value, order ...int) Value {
	return g.Node("Transpose", []Value{x}, Ints("perm", order...))
}

func (g *Graph) unsqueeze(x Value, axes ...int) Value {
	return g.Node("Unsqueeze", []Value{x, g.Ints(axes...)})
}

func (g *Graph) concat(axis int, values ...Value) Value {
	return g.Node("Concat", values, Int("axis", axis))
}

// slice returns the elements from, from+step, … of an axis, up to but excluding to.
func (g *Graph) slice(x Value, axis, from, to, step int) Value {
	return g.Node("Slice", []Value{x, g.Ints(from), g.Ints(to), g.Ints(axis), g.Ints(step)})
}

// sum returns the sums along the last axis, which is kept with size 1.
func (g *Graph) sum(x Value) Value {
	return g.Node("ReduceSum", []Value{x, g.Ints(-1)}, Int("keepdims", 1))
}

// Reduce reduces the last axis, which is kept with size 1, by an operator whose axes became an input in opset 18, such
// as ReduceMax.
func (g *Graph) Reduce(op string, x Value) Value {
	if g.Opset() < 18 {
		return g.Node(op, []Value{x}, Ints("axes", -1), Int("keepdims", 1))
	}
	return g.Node(op, []Value{x, g.Ints(-1)}, Int("keepdims", 1))
}

// dims returns the sizes of axes from to to, as a list.
func (g *Graph) dims(x Value, from, to int) Value {
	return g.Node("Shape", []Value{x}, Int("start", from), Int("end", to))
}

// Length returns the size of an axis of x.
//
// Shapes: out [] of type Int64.
func (g *Graph) Length(x Value, axis int) Value {
	return g.Node("Squeeze", []Value{g.dims(x, axis, axis+1), g.Ints(0)})
}

// Count returns the integers from, from+1, …, to − 1.
//
// Shapes: from and to [] of type Int64, out [to − from].
func (g *Graph) Count(from, to Value) Value {
	return g.Node("Range", []Value{from, to, g.Int(1)})
}

// negativeInfinity is the score of a hidden key.
var negativeInfinity = float32(math.Inf(-1))
