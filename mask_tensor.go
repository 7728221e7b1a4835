package attn

import (
	"fmt"

	"github.com/attn-go/attn/tensor"
)

// Visible says which keys the queries of scores of the given shape may attend
// to: [B H Lq Lk], or [B Lq Lk], which is one head. Through it a Mask goes where
// package tensor takes one:
//
//	weights := tensor.MaskedSoftmax(tape, scores, attn.ValidLens(2, 3))
//
// It panics with a *tensor.ShapeError if the mask does not fit the shape.
func (m Mask) Visible(shape []int) tensor.Visible {
	const op = "tensor: MaskedSoftmax"
	var d dims
	switch len(shape) {
	case 3:
		d = dims{B: shape[0], H: 1, Lq: shape[1], Lk: shape[2], flat: true}
	case 4:
		d = dims{B: shape[0], H: shape[1], Lq: shape[2], Lk: shape[3]}
	default:
		if len(m.rules) > 0 {
			panic(&tensor.ShapeError{Op: op, Arg: "x", Got: shape, Want: "[B H Lq Lk] or [B Lq Lk], for the mask"})
		}
	}
	m.check(op, d)
	return m.rows(d).Visible(shape)
}

// Visible returns m, whose shape is settled, and nil if it hides nothing.
func (m maskRows) Visible([]int) tensor.Visible {
	if len(m.rules) == 0 {
		return nil
	}
	return m
}

// AllowTensor lets a query attend to the keys where m is 1 and hides those where
// it is 0: a mask of numbers, as many lessons have it. The shape broadcasts as
// that of Allow does. m is copied. AllowTensor panics with a *tensor.ShapeError
// if an element is neither 0 nor 1, such as the −∞ of a mask that is to be added
// to the scores, which is a Bias.
func AllowTensor(m *tensor.Tensor) Mask {
	const op = "attn: AllowTensor"
	return Mask{[]rule{newAllow(op, zeroOne(op, m), m.Shape())}}
}

// AllowTensorSequenceFirst is AllowTensor for a mask laid out as [Lq Lk B], of
// which the first and the last axis may be 1.
func AllowTensorSequenceFirst(m *tensor.Tensor) Mask {
	const op = "attn: AllowTensorSequenceFirst"
	a := newAllow(op, zeroOne(op, m), m.Shape())
	if a.sequenceFirst = true; m.Rank() != 3 {
		badMask(op, "", m.Shape(), "[Lq Lk B], where Lq and B may be 1")
	}
	return Mask{[]rule{a}}
}

// zeroOne returns where m is 1, and panics where it is neither 0 nor 1.
func zeroOne(op string, m *tensor.Tensor) []bool {
	if m == nil {
		badMask(op, "", nil, "a tensor")
	}
	seen := make([]bool, m.Len())
	for i, v := range m.Data() {
		if v != 0 && v != 1 {
			index := make([]int, m.Rank())
			for axis := m.Rank() - 1; axis >= 0; axis-- {
				index[axis], i = i%m.Dim(axis), i/m.Dim(axis)
			}
			badMask(op, fmt.Sprintf("element %v at", v), index, "0 where a key is hidden and 1 where a query attends to it")
		}
		seen[i] = v == 1
	}
	return seen
}
