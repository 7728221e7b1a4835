package onnx_test

import (
	"fmt"
	"math"
	"slices"
)

// operators implements the operators that the models use, as defined at https://onnx.ai/onnx/operators.
var operators = map[string]func(c *call) []*Array{
	"Add":         pairwise(func(a, b float64) float64 { return a + b }),
	"Sub":         pairwise(func(a, b float64) float64 { return a - b }),
	"Mul":         pairwise(func(a, b float64) float64 { return a * b }),
	"Div":         pairwise(func(a, b float64) float64 { return a / b }),
	"Max":         pairwise(math.Max),
	"Less":        pairwise(func(a, b float64) float64 { return truth(a < b) }),
	"LessOrEqual": pairwise(func(a, b float64) float64 { return truth(a <= b) }),
	"Greater":     pairwise(func(a, b float64) float64 { return truth(a > b) }),
	"Equal":       pairwise(func(a, b float64) float64 { return truth(a == b) }),
	"And":         pairwise(func(a, b float64) float64 { return a * b }),
	"Identity":    elementwise(func(x float64) float64 { return x }),
	"Abs":         elementwise(math.Abs),
	"Sqrt":        elementwise(math.Sqrt),
	"Tanh":        elementwise(math.Tanh),
	"Neg":         elementwise(func(x float64) float64 { return -x }),
	"Exp":         elementwise(math.Exp),
	"Softplus":    elementwise(func(x float64) float64 { return math.Log1p(math.Exp(x)) }),
	"Elu": elementwise(func(x float64) float64 {
		if x > 0 {
			return x
		}
		return math.Expm1(x)
	}),
	"Sin":     elementwise(math.Sin),
	"Cos":     elementwise(math.Cos),
	"Erf":     elementwise(math.Erf),
	"Sigmoid": elementwise(sigmoid),
	"Relu":    elementwise(func(x float64) float64 { return math.Max(x, 0) }),
	"Cast":    cast,
	"Where": func(c *call) []*Array {
		return []*Array{broadcast(func(v []float64) float64 {
			if v[0] != 0 {
				return v[1]
			}
			return v[2]
		}, c.in...)}
	},
	"Expand": func(c *call) []*Array {
		ones := &Array{Shape: c.ints(1)}
		ones.Data = make([]float64, product(ones.Shape))
		return []*Array{broadcast(func(v []float64) float64 { return v[0] }, c.in[0], ones)}
	},
	"MatMul":     func(c *call) []*Array { return []*Array{matMul(c.in[0], c.in[1])} },
	"Softmax":    func(c *call) []*Array { return []*Array{lastAxis(c, softmax)} },
	"ReduceSum":  func(c *call) []*Array { return []*Array{reduce(c, true, sum)} },
	"ReduceMean": func(c *call) []*Array { return []*Array{reduce(c, c.opset >= 18, mean)} },
	"ReduceMax": func(c *call) []*Array {
		return []*Array{reduce(c, c.opset >= 18, func(v []float64) float64 { return slices.Max(v) })}
	},
	"Reshape":            reshape,
	"Transpose":          func(c *call) []*Array { return []*Array{transpose(c.in[0], c.Attributes["perm"].Ints)} },
	"Unsqueeze":          unsqueeze,
	"Squeeze":            squeeze,
	"Concat":             func(c *call) []*Array { return []*Array{concat(c.attr("axis", 0), c.in...)} },
	"Slice":              slice,
	"Gather":             gather,
	"CumSum":             cumSum,
	"Shape":              shape,
	"Range":              rangeOf,
	"LayerNormalization": layerNormalization,
	"Attention":          attention,
	"LinearAttention":    linearAttention,
	"Conv":               conv,
	"GRU":                gru,
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func elementwise(f func(float64) float64) func(*call) []*Array {
	return func(c *call) []*Array {
		return []*Array{broadcast(func(v []float64) float64 { return f(v[0]) }, c.in[0])}
	}
}

func pairwise(f func(a, b float64) float64) func(*call) []*Array {
	return func(c *call) []*Array {
		return []*Array{broadcast(func(v []float64) float64 { return f(v[0], v[1]) }, c.in[0], c.in[1])}
	}
}

// broadcast applies f to the elements of arrays whose shapes are broadcast.
func broadcast(f func(v []float64) float64, xs ...*Array) *Array {
	var out Array
	for _, x := range xs {
		for len(out.Shape) < len(x.Shape) {
			out.Shape = append([]int{1}, out.Shape...)
		}
	}
	for _, x := range xs {
		for i, d := range x.Shape {
			at := &out.Shape[i+len(out.Shape)-len(x.Shape)]
			if d != *at && d != 1 && *at != 1 {
				panic(fmt.Sprintf("shapes do not go together: %v and %v", x.Shape, out.Shape))
			}
			if *at == 1 {
				*at = d
			}
		}
	}
	if out.Shape == nil {
		out.Shape = []int{}
	}
	v := make([]float64, len(xs))
	for index := range indices(out.Shape) {
		for i, x := range xs {
			v[i] = x.at(index)
		}
		out.Data = append(out.Data, f(v))
	}
	return &out
}

// indices yields every index of a shape, in row-major order.
func indices(shape []int) func(yield func([]int) bool) {
	return func(yield func([]int) bool) {
		index := make([]int, len(shape))
		for range product(shape) {
			if !yield(index) {
				return
			}
			for a := len(shape) - 1; a >= 0; a-- {
				if index[a]++; index[a] < shape[a] {
					break
				}
				index[a] = 0
			}
		}
	}
}

// at returns the element at an index, which may have more axes than x. Axes of size 1 are repeated.
func (x *Array) at(index []int) float64 {
	at, index := 0, index[len(index)-len(x.Shape):]
	for a, d := range x.Shape {
		if at *= d; d > 1 {
			at += index[a]
		}
	}
	return x.Data[at]
}

func cast(c *call) []*Array {
	to := c.attr("to", 0)
	return elementwise(func(x float64) float64 {
		switch to {
		case float32Type:
			return float64(float32(x))
		case int32Type, int64Type:
			return math.Trunc(x)
		case boolType:
			return truth(x != 0)
		}
		return x
	})(c)
}

// matMul multiplies the matrices of the last two axes; the others broadcast.
func matMul(a, b *Array) *Array {
	vector := len(b.Shape) == 1
	if vector {
		b = &Array{[]int{b.Shape[0], 1}, b.Data}
	}
	m, k, n := a.Shape[len(a.Shape)-2], a.Shape[len(a.Shape)-1], b.Shape[len(b.Shape)-1]
	if b.Shape[len(b.Shape)-2] != k {
		panic(fmt.Sprintf("MatMul of %v and %v", a.Shape, b.Shape))
	}
	lead := func(x *Array) *Array { // the leading axes
		y := &Array{Shape: x.Shape[:len(x.Shape)-2]}
		for i := range product(y.Shape) {
			y.Data = append(y.Data, float64(i))
		}
		return y
	}
	la, lb := lead(a), lead(b)
	places := broadcast(func(v []float64) float64 { return v[0]*float64(1+len(lb.Data)) + v[1] }, la, lb)
	out := &Array{Shape: append(slices.Clone(places.Shape), m, n)}
	for _, p := range places.Data {
		pa, pb := int(p)/(1+len(lb.Data))*m*k, int(p)%(1+len(lb.Data))*k*n
		for i := range m {
			for j := range n {
				s := 0.0
				for l := range k {
					s += a.Data[pa+i*k+l] * b.Data[pb+l*n+j]
				}
				out.Data = append(out.Data, s)
			}
		}
	}
	if vector {
		out.Shape = out.Shape[:len(out.Shape)-1]
	}
	return out
}

// lastAxis applies f to each vector along the last axis.
func lastAxis(c *call, f func(v []float64) []float64) *Array {
	x := c.in[0]
	if axis := c.attr("axis", -1); axis != -1 {
		panic(fmt.Sprintf("axis %d", axis))
	}
	out := &Array{Shape: x.Shape}
	n := x.Shape[len(x.Shape)-1]
	for at := 0; at < len(x.Data); at += n {
		out.Data = append(out.Data, f(x.Data[at:at+n])...)
	}
	return out
}

// softmax returns NaN if every element is −∞.
func softmax(v []float64) []float64 {
	top, total := slices.Max(v), 0.0
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = math.Exp(x - top)
		total += out[i]
	}
	for i := range out {
		out[i] /= total
	}
	return out
}

func sum(v []float64) (s float64) {
	for _, x := range v {
		s += x
	}
	return s
}

func mean(v []float64) float64 { return sum(v) / float64(len(v)) }

// reduce implements reductions over the last axis. The axis is an input or, in earlier opsets, an attribute.
func reduce(c *call, byInput bool, f func([]float64) float64) *Array {
	var axes []int
	if byInput {
		axes = c.ints(1)
	} else if axes = c.Attributes["axes"].Ints; len(c.in) != 1 {
		panic("axes are an attribute")
	}
	if !slices.Equal(axes, []int{-1}) {
		panic(fmt.Sprintf("axes %v", axes))
	}
	x := c.in[0]
	last := len(x.Shape) - 1
	out := &Array{Shape: slices.Clone(x.Shape[:last])}
	if c.attr("keepdims", 1) == 1 {
		out.Shape = append(out.Shape, 1)
	}
	for i := range product(x.Shape[:last]) {
		n := x.Shape[last]
		out.Data = append(out.Data, f(x.Data[i*n:(i+1)*n]))
	}
	return out
}

func layerNormalization(c *call) []*Array {
	c.since(17)
	gain, shift, eps := c.in[1].Data, c.in[2].Data, c.Attributes["epsilon"].Float
	return []*Array{lastAxis(c, func(v []float64) []float64 {
		m, squares := mean(v), 0.0
		for _, x := range v {
			squares += (x - m) * (x - m)
		}
		out := make([]float64, len(v))
		for i, x := range v {
			out[i] = (x-m)/math.Sqrt(squares/float64(len(v))+eps)*gain[i] + shift[i]
		}
		return out
	})}
}

// attention is the operator of opset 23, without cache, soft-cap and causal flag. ONNX does not define the result of
// a query that attends to nothing: here it is NaN.
func attention(c *call) []*Array {
	c.since(23)
	q, k, v := c.in[0], c.in[1], c.in[2]
	for name := range c.Attributes {
		if !slices.Contains([]string{"scale", "q_num_heads", "kv_num_heads"}, name) {
			panic("attribute " + name)
		}
	}
	joined := len(q.Shape) == 3
	if joined {
		split := func(x *Array, heads int) *Array {
			b, l, d := x.Shape[0], x.Shape[1], x.Shape[2]
			return transpose(&Array{[]int{b, l, heads, d / heads}, x.Data}, []int{0, 2, 1, 3})
		}
		q = split(q, c.attr("q_num_heads", 0))
		k, v = split(k, c.attr("kv_num_heads", 0)), split(v, c.attr("kv_num_heads", 0))
	}
	b, h, g, lq, lk, e, size := q.Shape[0], q.Shape[1], k.Shape[1], q.Shape[2], k.Shape[2], q.Shape[3], v.Shape[3]
	mask := c.arg(3)
	if mask != nil && !slices.Equal(mask.Shape[len(mask.Shape)-2:], []int{lq, lk}) {
		panic(fmt.Sprintf("mask %v for %d queries and %d keys", mask.Shape, lq, lk))
	}
	// The type of the mask is unknown here; a mask of only 0 and 1 is treated as boolean.
	boolean := mask != nil && !slices.ContainsFunc(mask.Data, func(v float64) bool { return v != 0 && v != 1 })
	out := &Array{Shape: []int{b, h, lq, size}}
	for index := range indices(out.Shape[:3]) {
		n, head, i := index[0], index[1], index[2]
		kv := head / (h / g)
		scores := make([]float64, lk)
		for j := range scores {
			for f := range e {
				scores[j] += q.at([]int{n, head, i, f}) * k.at([]int{n, kv, j, f})
			}
			scores[j] *= c.Attributes["scale"].Float
			switch {
			case boolean && mask.at([]int{n, head, i, j}) == 0:
				scores[j] = math.Inf(-1)
			case mask != nil && !boolean:
				scores[j] += mask.at([]int{n, head, i, j})
			}
		}
		weights := softmax(scores)
		for f := range size {
			s := 0.0
			for j, w := range weights {
				s += w * v.at([]int{n, kv, j, f})
			}
			out.Data = append(out.Data, s)
		}
	}
	if joined {
		out = transpose(out, []int{0, 2, 1, 3})
		out.Shape = []int{b, lq, h * size}
	}
	return []*Array{out}
}

// gru is the operator with linear_before_reset. Gates are stacked z, r, h.
func gru(c *call) []*Array {
	x, w, r, bias, lens, start := c.in[0], c.in[1], c.in[2], c.in[3], c.arg(4), c.arg(5)
	l, b, n, size, in := x.Shape[0], x.Shape[1], w.Shape[0], r.Shape[2], x.Shape[2]
	if c.attr("linear_before_reset", 0) != 1 || c.attr("hidden_size", 0) != size ||
		c.Attributes["direction"].Text != map[int]string{1: "forward", 2: "bidirectional"}[n] {
		panic("attributes")
	}
	y := &Array{[]int{l, n, b, size}, make([]float64, l*n*b*size)}
	last := &Array{[]int{n, b, size}, make([]float64, n*b*size)}
	for index := range indices([]int{n, b}) {
		d, i := index[0], index[1]
		h := last.Data[(d*b+i)*size:][:size]
		if start != nil {
			copy(h, start.Data[(d*b+i)*size:])
		}
		steps := l
		if lens != nil {
			steps = int(lens.Data[i])
		}
		for s := range steps {
			at := s
			if d == 1 {
				at = steps - 1 - s
			}
			gate := func(m *Array, width, row, biasRow int, v func(j int) float64) float64 {
				sum := bias.Data[d*6*size+biasRow]
				for j := range width {
					sum += m.Data[(d*3*size+row)*width+j] * v(j)
				}
				return sum
			}
			input := func(row int) float64 {
				return gate(w, in, row, row, func(j int) float64 { return x.Data[(at*b+i)*in+j] })
			}
			old := slices.Clone(h)
			state := func(row int) float64 {
				return gate(r, size, row, 3*size+row, func(j int) float64 { return old[j] })
			}
			for f := range size {
				z := sigmoid(input(f) + state(f))
				reset := sigmoid(input(size+f) + state(size+f))
				h[f] = (1-z)*math.Tanh(input(2*size+f)+reset*state(2*size+f)) + z*old[f]
			}
			copy(y.Data[((at*n+d)*b+i)*size:], h)
		}
	}
	return []*Array{y, last}
}
