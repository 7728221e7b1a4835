package onnx

import (
	"encoding/binary"
	"math"
)

// message is a protobuf message being written; onnx.proto defines the fields. Each method appends a field by its
// number.
type message []byte

func (m *message) tag(field, wire int) {
	*m = binary.AppendUvarint(*m, uint64(field)<<3|uint64(wire))
}

func (m *message) int(field int, v int64) {
	m.tag(field, 0)
	*m = binary.AppendUvarint(*m, uint64(v))
}

func (m *message) float(field int, v float32) {
	m.tag(field, 5)
	*m = binary.LittleEndian.AppendUint32(*m, math.Float32bits(v))
}

// header starts a field of n bytes, which the caller appends.
func (m *message) header(field int, n int64) {
	m.tag(field, 2)
	*m = binary.AppendUvarint(*m, uint64(n))
}

func (m *message) bytes(field int, v []byte) {
	m.header(field, int64(len(v)))
	*m = append(*m, v...)
}

// string skips an empty string, which is the default of every field.
func (m *message) string(field int, v string) {
	if v != "" {
		m.bytes(field, []byte(v))
	}
}

// valueInfo returns a ValueInfoProto: the name, type and axes of a value.
func valueInfo(name string, t Type, axes []Axis) message {
	var shape, tensor, typ, info message
	for _, a := range axes {
		var dim message
		if a.Name != "" {
			dim.string(2, a.Name)
		} else {
			dim.int(1, int64(a.Size))
		}
		shape.bytes(1, dim)
	}
	tensor.int(1, int64(t))
	tensor.bytes(2, shape)
	typ.bytes(1, tensor)
	info.string(1, name)
	info.bytes(2, typ)
	return info
}

// Attribute is a constant setting of an operator.
type Attribute struct {
	name  string
	kind  int64   // its type
	value message // the field of its value
	body  *body   // in place of value, a graph
}

// Int returns an integer attribute.
func Int(name string, v int) Attribute {
	a := Attribute{name: name, kind: 2}
	a.value.int(3, int64(v))
	return a
}

// Ints returns an attribute with a list of integers.
func Ints(name string, v ...int) Attribute {
	a := Attribute{name: name, kind: 7}
	for _, n := range v {
		a.value.int(8, int64(n))
	}
	return a
}

// Float returns a float32 attribute.
func Float(name string, v float32) Attribute {
	a := Attribute{name: name, kind: 1}
	a.value.float(2, v)
	return a
}

// String returns a string attribute.
func String(name, v string) Attribute {
	a := Attribute{name: name, kind: 3}
	a.value.bytes(4, []byte(v))
	return a
}

// encode returns the AttributeProto.
func (a Attribute) encode(model *Model) message {
	var m message
	m.string(1, a.name)
	if m = append(m, a.value...); a.body != nil {
		m.bytes(6, a.body.encode(model))
	}
	m.int(20, a.kind)
	return m
}
