package onnx

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/attn-go/attn/tensor"
)

// Value is a tensor in a graph: an input, a weight, or the output of a node. The zero value is an absent input.
type Value string

// Type is the type of a tensor's elements.
type Type int32

// The types that attention models need.
const (
	Float32 Type = 1
	Int32   Type = 6
	Int64   Type = 7
	Bool    Type = 9
	Float64 Type = 11
)

// Axis is an axis of an input or output: of fixed size or, if it has a name, of any size. Axes with the same name
// have the same size in a call.
type Axis struct {
	Name string
	Size int
}

// Port describes the type and the axes of an input or output.
type Port struct {
	Type Type
	Axes []Axis
}

// Sized returns an axis of n elements.
func Sized(n int) Axis { return Axis{Size: n} }

// Named returns an axis whose size each call chooses.
func Named(name string) Axis { return Axis{Name: name} }

// body contains the nodes of a graph, or of a branch of If.
type body struct {
	name            string
	nodes           []node
	inputs, outputs []message
	results         []Value         // values that are outputs
	ports           map[string]bool // the names of inputs and outputs
}

// node is an operator applied to values.
type node struct {
	domain, op string // the domain of ONNX's own operators is empty
	in, out    []Value
	attributes []Attribute
}

// use marks the values that the outputs need. Layers may have added other nodes that are not used.
func (b *body) use(used map[Value]bool) {
	for _, v := range b.results {
		used[v] = true
	}
	for _, n := range slices.Backward(b.nodes) {
		if !n.used(used) {
			continue
		}
		for _, v := range n.in {
			used[v] = true
		}
		for _, a := range n.attributes {
			if a.body != nil {
				a.body.use(used)
			}
		}
	}
}

// used reports whether any output of the node is needed.
func (n node) used(used map[Value]bool) bool {
	return slices.ContainsFunc(n.out, func(v Value) bool { return used[v] })
}

// encode returns the GraphProto without weights.
func (b *body) encode(model *Model) message {
	var g message
	for _, n := range b.nodes {
		if !n.used(model.used) {
			continue
		}
		var m message
		for _, v := range n.in {
			m.bytes(1, []byte(model.named(v))) // an empty name for an absent input
		}
		for _, v := range n.out {
			m.bytes(2, []byte(model.named(v)))
		}
		m.string(3, string(n.out[0]))
		m.string(4, n.op)
		m.string(7, n.domain)
		for _, a := range n.attributes {
			m.bytes(5, a.encode(model))
		}
		g.bytes(1, m)
	}
	g.string(2, b.name)
	for _, in := range b.inputs {
		g.bytes(11, in)
	}
	for _, out := range b.outputs {
		g.bytes(12, out)
	}
	return g
}

// Graph builds a model. Its methods add nodes and return their outputs. They do not return errors: the first error is
// stored and returned by Build, and the values returned after it are meaningless. The comment of a method that checks
// its arguments lists its errors. Methods do not check the shapes of values, because the graph does not know them; a
// runtime rejects a wrong shape when it loads or runs the model.
type Graph struct {
	model *Model
	body  *body
	scope string // prefix of names
}

// In returns the graph with a name for the part of the model that is added through it. Weights are named like the
// parameters of modules: "encoder.0.self.q.weight".
func (g *Graph) In(name string) *Graph {
	in := *g
	in.scope = joined(g.scope, name)
	return &in
}

func joined(scope, name string) string { return strings.Trim(scope+"."+name, ".") }

// Fail stores an error for Build, prefixed by the name that In has set, unless an error is already stored.
func (g *Graph) Fail(format string, args ...any) {
	if g.model.err == nil {
		at := cmp.Or(g.scope, g.model.main.name)
		g.model.err = fmt.Errorf("onnx: %s: %s", at, fmt.Sprintf(format, args...))
	}
}

// Opset returns the version of the operators: 17, 23 or 27.
func (g *Graph) Opset() int { return g.model.opset }

// Input adds an input to the model and returns its value, of shape axes. In a branch of If, it is an input of the
// whole model, too.
//
// Errors: an empty name, or a name that the model already uses.
func (g *Graph) Input(name string, t Type, axes ...Axis) Value {
	g.port("input", name)
	g.model.main.inputs = append(g.model.main.inputs, valueInfo(name, t, axes))
	return Value(name)
}

// Output makes v an output of the model. t and axes must be the type and shape of v; they are not checked.
//
// Errors: an empty name, or a name that the model already uses.
func (g *Graph) Output(name string, v Value, t Type, axes ...Axis) {
	g.port("output", name)
	m := g.model
	if _, taken := m.outputs[v]; taken || m.main.ports[string(v)] {
		v = g.Node("Identity", []Value{v})
	}
	m.outputs[v] = name
	m.main.results = append(m.main.results, v)
	m.main.outputs = append(m.main.outputs, valueInfo(name, t, axes))
}

// port reserves a name for an input or output.
func (g *Graph) port(what, name string) {
	m := g.model
	if m.main.ports == nil {
		m.main.ports = map[string]bool{}
	}
	if name == "" || m.counts[name] > 0 {
		g.Fail("%s %q: the name is empty or taken", what, name)
	}
	m.counts[name]++
	m.main.ports[name] = true
}

// Node adds an operator and returns its output. The operator defines the shapes; an absent optional input is "".
// Operators, inputs and attributes are not checked.
func (g *Graph) Node(op string, inputs []Value, attributes ...Attribute) Value {
	return g.Nodes(op, 1, inputs, attributes...)[0]
}

// Nodes is Node for an operator with n outputs.
func (g *Graph) Nodes(op string, n int, inputs []Value, attributes ...Attribute) []Value {
	return g.nodesOf("", op, n, inputs, attributes...)
}

// nodesOf is Nodes for an operator of version 1 of a domain.
func (g *Graph) nodesOf(domain, op string, n int, inputs []Value, attributes ...Attribute) []Value {
	out := make([]Value, n)
	for i := range out {
		out[i] = Value(g.model.unique(strings.TrimPrefix(g.scope+"/"+op, "/")))
	}
	for len(inputs) > 0 && inputs[len(inputs)-1] == "" {
		inputs = inputs[:len(inputs)-1]
	}
	g.body.nodes = append(g.body.nodes, node{domain, op, inputs, out, attributes})
	if domain != "" && !slices.Contains(g.model.domains, domain) {
		g.model.domains = append(g.model.domains, domain)
	}
	return out
}

// If returns the outputs of one of two graphs, depending on a boolean. Both graphs may use the values of g, and must
// return one value for each element of outputs, with the type and axes of that element.
//
// Shapes: condition [] of type Bool.
//
// Errors: a branch that returns another number of values.
func (g *Graph) If(condition Value, outputs []Port, then, otherwise func(*Graph) []Value) []Value {
	branch := func(name string, f func(*Graph) []Value) Attribute {
		b := &body{name: name}
		in := *g
		in.body = b
		values := f(&in)
		if len(values) != len(outputs) {
			g.Fail("If: %s returns %d values, want %d", name, len(values), len(outputs))
			values = nil
		}
		for i, v := range values {
			v = in.Node("Identity", []Value{v}) // the value may come from outside the branch
			b.results = append(b.results, v)
			b.outputs = append(b.outputs, valueInfo(string(v), outputs[i].Type, outputs[i].Axes))
		}
		return Attribute{name: name, kind: 5, body: b}
	}
	return g.Nodes("If", len(outputs), []Value{condition}, branch("then_branch", then), branch("else_branch", otherwise))
}

// Weight adds a parameter of a layer to the model and returns its value, of the shape of x and type Float32. A
// parameter that is used several times is added once. Its elements are read when the model is written.
func (g *Graph) Weight(name string, x *tensor.Tensor) Value {
	return g.weight(x, weight{name: name, shape: x.Shape(), data: x.Data()})
}

// WeightT is Weight for the transpose of a matrix.
//
// Shapes: x [Out In], out [In Out].
func (g *Graph) WeightT(name string, x *tensor.Tensor) Value {
	shape := []int{x.Dim(1), x.Dim(0)}
	return g.weight(transposed{x}, weight{name: name + ".T", shape: shape, data: x.Data(), transpose: true})
}

// weight adds a weight, unless the model already has one with this key.
func (g *Graph) weight(key any, w weight) Value {
	if v, ok := g.model.known[key]; ok {
		return v
	}
	w.name = g.model.unique(joined(g.scope, w.name))
	g.model.weights = append(g.model.weights, w)
	g.model.known[key] = Value(w.name)
	return Value(w.name)
}

// Scalar adds a constant of type Float32 and shape [] to the model.
func (g *Graph) Scalar(v float32) Value {
	return g.constant("float", v, weight{data: []float32{v}})
}

// Ints adds a constant of type Int64 and shape [len(v)] to the model.
func (g *Graph) Ints(v ...int) Value {
	return g.constant("ints", fmt.Sprint(v), weight{shape: []int{len(v)}, data: int64s(v)})
}

// Int adds a constant of type Int64 and shape [] to the model.
func (g *Graph) Int(v int) Value { return g.constant("int", v, weight{data: int64s([]int{v})}) }

func int64s(list []int) []int64 {
	all := make([]int64, len(list))
	for i, v := range list {
		all[i] = int64(v)
	}
	return all
}

// doubles adds numbers of type Float64 to the model.
func (g *Graph) doubles(v []float64, shape ...int) Value {
	return g.constant("doubles", fmt.Sprint(v, shape), weight{shape: shape, data: v})
}

// constant adds a weight that is shared by all parts of the model.
func (g *Graph) constant(kind string, key any, w weight) Value {
	everywhere := *g
	everywhere.scope = ""
	w.name = "constant/" + kind
	return everywhere.weight([2]any{kind, key}, w)
}
