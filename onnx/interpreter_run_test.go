package onnx_test

// The interpreter of these files runs ONNX models. It shares no code with package onnx: it parses the protobuf wire
// format and computes each operator by its definition, in float64 and one element at a time.

import (
	"fmt"
	"maps"
)

// Run computes the outputs of a model from its inputs.
func (m *Model) Run(inputs map[string]*Array) (outputs map[string]*Array, err error) {
	sizes := map[string]int{} // of named axes
	for _, p := range m.Graph.Inputs {
		x := inputs[p.Name]
		if x == nil {
			return nil, fmt.Errorf("interpreter: input %q is missing", p.Name)
		}
		if err := p.check("input", x, sizes); err != nil {
			return nil, err
		}
	}
	if len(inputs) != len(m.Graph.Inputs) {
		return nil, fmt.Errorf("interpreter: %d inputs, want %d", len(inputs), len(m.Graph.Inputs))
	}
	results, err := m.Graph.run(m.Opset, inputs)
	if err != nil {
		return nil, err
	}
	outputs = map[string]*Array{}
	for i, p := range m.Graph.Outputs {
		if err := p.check("output", results[i], sizes); err != nil {
			return nil, err
		}
		outputs[p.Name] = results[i]
	}
	return outputs, nil
}

// check returns an error unless an array has the axes of the port. A named axis has the size of its first occurrence.
func (p Port) check(what string, x *Array, sizes map[string]int) error {
	fits := len(x.Shape) == len(p.Axes) && product(x.Shape) == len(x.Data)
	for i, a := range p.Axes {
		if !fits {
			break
		}
		want, fixed := a.(int)
		if name, ok := a.(string); ok && !fixed {
			if _, known := sizes[name]; !known {
				sizes[name] = x.Shape[i]
			}
			want = sizes[name]
		}
		fits = x.Shape[i] == want
	}
	if !fits {
		return fmt.Errorf("interpreter: %s %q has shape %v, want %v with %v", what, p.Name, x.Shape, p.Axes, sizes)
	}
	return nil
}

// run returns the outputs of a graph, which may use the values of scope.
func (g *Graph) run(opset int64, scope map[string]*Array) (results []*Array, err error) {
	values := maps.Clone(scope)
	maps.Copy(values, g.Weights)
	for _, n := range g.Nodes {
		if err := n.run(opset, values); err != nil {
			return nil, err
		}
	}
	for _, p := range g.Outputs {
		x := values[p.Name]
		if x == nil {
			return nil, fmt.Errorf("interpreter: graph %q has no value %q", g.Name, p.Name)
		}
		results = append(results, x)
	}
	return results, nil
}

// run computes a node.
func (n *Node) run(opset int64, values map[string]*Array) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("interpreter: %s %v → %v: %v", n.Op, n.In, n.Out, r)
		}
	}()
	c := &call{Node: n, opset: opset}
	for _, name := range n.In {
		x := values[name]
		if x == nil && name != "" {
			panic(fmt.Sprintf("no value %q", name))
		}
		c.in = append(c.in, x)
	}
	var out []*Array
	if n.Op == "If" {
		branch := n.Attributes["else_branch"].Graph
		if c.in[0].Data[0] != 0 {
			branch = n.Attributes["then_branch"].Graph
		}
		if out, err = branch.run(opset, values); err != nil {
			return err
		}
	} else if f := operators[n.Op]; f != nil {
		out = f(c)
	} else {
		panic("unknown operator")
	}
	if len(out) != len(n.Out) {
		panic(fmt.Sprintf("%d results, want %d", len(out), len(n.Out)))
	}
	for i, name := range n.Out {
		if values[name] != nil {
			panic(fmt.Sprintf("value %q is there already", name))
		}
		values[name] = out[i]
	}
	return nil
}

// call is a node with its inputs.
type call struct {
	*Node
	opset int64
	in    []*Array
}

// arg returns an input, or nil if it is absent.
func (c *call) arg(i int) *Array {
	if i < len(c.in) {
		return c.in[i]
	}
	return nil
}

// ints returns an input that is a list of integers.
func (c *call) ints(i int) []int {
	x := c.arg(i)
	list := make([]int, len(x.Data))
	for j, v := range x.Data {
		list[j] = int(v)
	}
	return list
}

// attr returns an integer attribute, or the default if it is absent.
func (c *call) attr(name string, absent int) int {
	if a, ok := c.Attributes[name]; ok {
		return a.Int
	}
	return absent
}

// since panics unless the model's opset is at least the given one.
func (c *call) since(opset int64) {
	if c.opset < opset {
		panic(fmt.Sprintf("is of opset %d, the model of %d", opset, c.opset))
	}
}
