package attn

import (
	"github.com/attn-go/attn/internal/flash"
	"github.com/attn-go/attn/tensor"
)

// heads is a strided view [B H L E] of a tensor: Data begins with the first vector of the first head.
type heads struct {
	flash.Heads
	x           *tensor.Tensor
	at          int    // the element of x with which Data begins
	size, count int    // E and H
	layout      Layout // of x, unless it has four axes
}

// headFirst returns the view of a tensor [B H L E].
func headFirst(x *tensor.Tensor) heads {
	h, l, e := x.Dim(1), x.Dim(2), x.Dim(3)
	return heads{Heads: flash.Heads{Data: x.Data(), Batch: h * l * e, Head: l * e, Row: e}, x: x, size: e, count: h}
}

// headLast returns the view of count heads with size elements each, which are side by side on the
// last axis of x, starting at element at. x has three axes in the given layout.
func headLast(x *tensor.Tensor, layout Layout, at, size, count int) heads {
	width := x.Dim(2)
	h := heads{Heads: flash.Heads{Batch: x.Dim(1) * width, Head: size, Row: width}, x: x, at: at, size: size, count: count, layout: layout}
	if layout == SequenceFirst {
		h.Batch, h.Row = width, x.Dim(1)*width
	}
	h.Heads = h.in(x.Data())
	return h
}

// batches returns B.
func (h heads) batches() int {
	if h.layout == SequenceFirst {
		return h.x.Dim(1)
	}
	return h.x.Dim(0)
}

// length returns L, or 0 if h has no tensor.
func (h heads) length() int {
	switch {
	case h.x == nil:
		return 0
	case h.x.Rank() == 4:
		return h.x.Dim(2)
	case h.layout == SequenceFirst:
		return h.x.Dim(0)
	}
	return h.x.Dim(1)
}

// vector returns vector l of a head of sequence b. data has the layout of h.x: its values or its
// gradient.
func (h heads) vector(data []float32, b, head, l int) []float32 {
	return data[h.at+b*h.Batch+head*h.Head+l*h.Row:][:h.size]
}

// in returns the heads within data, which has the layout of h.x: its values or its gradient.
func (h heads) in(data []float32) flash.Heads {
	if data == nil {
		return flash.Heads{}
	}
	h.Data = data[min(h.at, len(data)):]
	return h.Heads
}

// own returns the heads of headLast as a tensor without other elements.
func (h heads) own(t *tensor.Tape) *tensor.Tensor {
	if width := h.count * h.size; width != h.x.Dim(2) {
		return tensor.Slice(t, h.x, 2, h.at, h.at+width)
	}
	return h.x
}

// split returns the heads as a tensor [B H L E].
func (h heads) split(t *tensor.Tape) *tensor.Tensor {
	if h.x.Rank() == 4 {
		return h.x
	}
	x := h.own(t)
	x = tensor.Reshape(t, x, x.Dim(0), x.Dim(1), h.count, h.size)
	if h.layout == SequenceFirst {
		return tensor.Transpose(t, x, 1, 2, 0, 3)
	}
	return tensor.Transpose(t, x, 0, 2, 1, 3)
}

// joined returns the heads side by side as a tensor [B L H·E] or [L B H·E].
func (h heads) joined(t *tensor.Tape, layout Layout) *tensor.Tensor {
	if h.x.Rank() == 3 {
		return h.own(t)
	}
	b, n, l, e := h.x.Dim(0), h.x.Dim(1), h.x.Dim(2), h.x.Dim(3)
	if layout == SequenceFirst {
		return tensor.Reshape(t, tensor.Transpose(t, h.x, 2, 0, 1, 3), l, b, n*e)
	}
	return tensor.Reshape(t, tensor.Transpose(t, h.x, 0, 2, 1, 3), b, l, n*e)
}

// mapped applies f to the vectors of the heads.
func (h heads) mapped(t *tensor.Tape, f func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor) heads {
	switch {
	case f == nil:
		return h
	case h.x.Rank() == 4:
		return headFirst(f(t, h.x))
	}
	x := h.own(t)
	y := f(t, tensor.Reshape(t, x, x.Dim(0), x.Dim(1), h.count, h.size))
	size := y.Dim(3)
	return headLast(tensor.Reshape(t, y, x.Dim(0), x.Dim(1), h.count*size), h.layout, 0, size, h.count)
}

// like returns new heads with arbitrary contents: the same number and layout as h, with vectors
// of the given size.
func (h heads) like(t *tensor.Tape, size int) heads {
	if h.x.Rank() == 4 {
		return headFirst(t.Make(h.x.Dim(0), h.x.Dim(1), h.x.Dim(2), size))
	}
	return headLast(t.Make(h.x.Dim(0), h.x.Dim(1), h.count*size), h.layout, 0, size, h.count)
}
