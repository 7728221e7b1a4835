package onnx_test

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Model is an ONNX file.
type Model struct {
	IR, Opset int64
	Domains   map[string]int64 // versions of other operators
	Metadata  map[string]string
	Graph     *Graph
}

// Graph is the nodes of a model or of a branch.
type Graph struct {
	Name            string
	Nodes           []*Node
	Inputs, Outputs []Port
	Weights         map[string]*Array
}

// Node is an operator with the names of its values.
type Node struct {
	Domain, Op string
	In, Out    []string
	Attributes map[string]Attribute
}

// Attribute is a setting of an operator.
type Attribute struct {
	Kind  int64
	Float float64
	Int   int
	Text  string
	Ints  []int
	Graph *Graph
}

// Port is an input or output. An axis that may have any size has a name.
type Port struct {
	Name string
	Type int64
	Axes []any // int or string
}

// Array is a tensor of numbers of any type; true is 1.
type Array struct {
	Shape []int
	Data  []float64
}

// field is a field of a protobuf message.
type field struct {
	number int
	int    uint64
	bytes  []byte
}

// text returns the string of a field.
func (f field) text() string { return string(f.bytes) }

// fields splits a message into its fields. It panics if the message is invalid.
func fields(b []byte) []field {
	var list []field
	varint := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			panic("no varint")
		}
		b = b[n:]
		return v
	}
	for len(b) > 0 {
		tag := varint()
		f := field{number: int(tag >> 3)}
		switch tag & 7 {
		case 0:
			f.int = varint()
		case 2:
			n := varint()
			f.bytes, b = b[:n], b[n:]
		case 5:
			f.int, b = uint64(binary.LittleEndian.Uint32(b)), b[4:]
		default:
			panic(fmt.Sprintf("wire type %d", tag&7))
		}
		list = append(list, f)
	}
	return list
}

// Read parses an ONNX file.
func Read(file []byte) (m *Model, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("interpreter: not an ONNX file: %v", r)
		}
	}()
	m = &Model{Metadata: map[string]string{}, Domains: map[string]int64{}}
	for _, f := range fields(file) {
		switch f.number {
		case 1:
			m.IR = int64(f.int)
		case 7:
			m.Graph = graph(f.bytes)
		case 8:
			domain, version := "", int64(0)
			for _, f := range fields(f.bytes) {
				switch f.number {
				case 1:
					domain = f.text()
				case 2:
					version = int64(f.int)
				}
			}
			if domain == "" {
				m.Opset = version
			} else {
				m.Domains[domain] = version
			}
		case 14:
			pair := fields(f.bytes)
			m.Metadata[pair[0].text()] = pair[1].text()
		}
	}
	return m, nil
}

func graph(b []byte) *Graph {
	g := &Graph{Weights: map[string]*Array{}}
	for _, f := range fields(b) {
		switch f.number {
		case 1:
			g.Nodes = append(g.Nodes, nodeOf(f.bytes))
		case 2:
			g.Name = f.text()
		case 5:
			name, x := weight(f.bytes)
			g.Weights[name] = x
		case 11:
			g.Inputs = append(g.Inputs, port(f.bytes))
		case 12:
			g.Outputs = append(g.Outputs, port(f.bytes))
		}
	}
	return g
}

func nodeOf(b []byte) *Node {
	n := &Node{Attributes: map[string]Attribute{}}
	for _, f := range fields(b) {
		switch f.number {
		case 1:
			n.In = append(n.In, f.text())
		case 2:
			n.Out = append(n.Out, f.text())
		case 4:
			n.Op = f.text()
		case 7:
			n.Domain = f.text()
		case 5:
			var name string
			var a Attribute
			for _, f := range fields(f.bytes) {
				switch f.number {
				case 1:
					name = f.text()
				case 2:
					a.Float = float64(math.Float32frombits(uint32(f.int)))
				case 3:
					a.Int = int(f.int)
				case 4:
					a.Text = f.text()
				case 6:
					a.Graph = graph(f.bytes)
				case 8:
					a.Ints = append(a.Ints, int(f.int))
				case 20:
					a.Kind = int64(f.int)
				}
			}
			n.Attributes[name] = a
		}
	}
	return n
}

// The types of elements.
const (
	float32Type = 1
	int32Type   = 6
	int64Type   = 7
	boolType    = 9
	float64Type = 11
)

func weight(b []byte) (name string, x *Array) {
	x = &Array{Shape: []int{}}
	var kind uint64
	var raw []byte
	for _, f := range fields(b) {
		switch f.number {
		case 1:
			x.Shape = append(x.Shape, int(f.int))
		case 2:
			kind = f.int
		case 8:
			name = f.text()
		case 9:
			raw = f.bytes
		}
	}
	size := map[uint64]int{float32Type: 4, int64Type: 8, float64Type: 8}[kind]
	for ; len(raw) > 0; raw = raw[size:] {
		var v float64
		switch kind {
		case float32Type:
			v = float64(math.Float32frombits(binary.LittleEndian.Uint32(raw)))
		case int64Type:
			v = float64(int64(binary.LittleEndian.Uint64(raw)))
		case float64Type:
			v = math.Float64frombits(binary.LittleEndian.Uint64(raw))
		default:
			panic(fmt.Sprintf("weight %s has type %d", name, kind))
		}
		x.Data = append(x.Data, v)
	}
	if n := product(x.Shape); n != len(x.Data) {
		panic(fmt.Sprintf("weight %s has %d numbers, want %d", name, len(x.Data), n))
	}
	return name, x
}

func port(b []byte) Port {
	var p Port
	for _, f := range fields(b) {
		if f.number == 1 {
			p.Name = f.text()
			continue
		}
		for _, f := range fields(fields(f.bytes)[0].bytes) { // of the tensor type
			if f.number == 1 {
				p.Type = int64(f.int)
				continue
			}
			for _, dim := range fields(f.bytes) {
				for _, f := range fields(dim.bytes) {
					if f.number == 1 {
						p.Axes = append(p.Axes, int(f.int))
					} else {
						p.Axes = append(p.Axes, f.text())
					}
				}
			}
		}
	}
	return p
}

// product returns the number of elements of a shape.
func product(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}
