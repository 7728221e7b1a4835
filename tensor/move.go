package tensor

import (
	"slices"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
)

// Reshape returns a view of x with another shape and the same elements in the same order. One axis may be −1: its
// size is computed from the others.
func Reshape(t *Tape, x *Tensor, shape ...int) *Tensor {
	operand("Reshape", "x", x)
	y := t.header(shape)
	free, known, fits := -1, 1, true
	for a, d := range shape {
		switch {
		case d >= 0:
			known *= d
		case d == -1 && free < 0:
			free = a
		default:
			fits = false
		}
	}
	if free >= 0 && known > 0 {
		y.shape[free] = len(x.data) / known
		known *= y.shape[free]
	}
	if !fits || known != len(x.data) || (free >= 0 && y.shape[free] < 0) {
		badShape("Reshape", "x", x.shape, "as many elements as %v", slices.Clone(shape))
	}
	// The view shares the gradient too, so there is nothing to record.
	y.data, y.base, y.needs = x.data, x, x.needs
	if x.home != nil && x.home != t { // the view lives as long as x
		y.shape, y.home, y.life = slices.Clone(y.shape), x.home, x.life
	}
	return y
}

// Index returns the element of x at the given indices along its first axes, with the remaining axes: Index(t,
// weights, b, h) is one head of weights [B H Lq Lk], as [Lq Lk]. It is a view, which shares the elements and the
// gradient of x. It panics with a *ShapeError if an index is out of range.
func Index(t *Tape, x *Tensor, index ...int) *Tensor {
	at := 0
	for a, i := range index {
		checkAxis("Index", x, a)
		if i < 0 || i >= x.shape[a] {
			badShape("Index", "x", x.shape, "an element %v", slices.Clone(index))
		}
		at = at*x.shape[a] + i
	}
	lead, left := x.shape[:len(index)], x.shape[len(index):]
	row := Reshape(t, x, append([]int{size(lead)}, left...)...).Rows(at, at+1)
	return Reshape(t, row, left...)
}

// Transpose returns x with its axes in another order: axis a of the result is
// axis order[a] of x.
func Transpose(t *Tape, x *Tensor, order ...int) *Tensor {
	operand("Transpose", "x", x)
	taken := uint64(0)
	for _, a := range order {
		if a >= 0 && a < 64 {
			taken |= 1 << a
		}
	}
	if len(order) != x.Rank() || taken != 1<<len(order)-1 {
		badShape("Transpose", "order", order, "every axis of x %v once", slices.Clone(x.shape))
	}
	shape, from, dense := t.list(len(order)), t.list(len(order)), strides(t, x.shape)
	for a, o := range order {
		shape[a], from[a] = x.shape[o], dense[o]
	}
	to := strides(t, shape)
	y := t.Make(shape...)
	spread(shape, to, from, func(p plane) { p.copy(y.data, x.data) })
	if t.Needs(x) {
		t.Record(y, func(dy []float32) {
			dx, fresh := t.FreshGradOf(x)
			if fresh {
				spread(shape, from, to, func(p plane) { p.copy(dx, dy) })
			} else {
				spread(shape, from, to, func(p plane) { p.add(dx, dy) })
			}
		})
	}
	return y
}

// Concat returns the operands joined along an axis. All other axes must be equal.
func Concat(t *Tape, axis int, xs ...*Tensor) *Tensor {
	const op = "Concat"
	if len(xs) == 0 {
		badShape(op, "xs", nil, "at least one tensor")
	}
	checkAxis(op, xs[0], axis)
	shape := slices.Clone(xs[0].shape)
	shape[axis] = 0
	needs := false
	for _, x := range xs {
		operand(op, "xs", x)
		if x.Rank() != len(shape) || !slices.Equal(x.shape[:axis], shape[:axis]) || !slices.Equal(x.shape[axis+1:], shape[axis+1:]) {
			badShape(op, "xs", x.shape, "%v apart from axis %d", xs[0].shape, axis)
		}
		shape[axis] += x.shape[axis]
		needs = needs || t.Needs(x)
	}
	y := t.Make(shape...)
	outer, n, inner := split(shape, axis)
	if outer == 0 {
		return y // empty: no operand has elements
	}
	at := 0
	for _, x := range xs {
		w := x.shape[axis] * inner
		onRows(simd.CopyRows, y.data[at:], n*inner, x.data, w, outer, w)
		at += w
	}
	if needs {
		xs := slices.Clone(xs)
		t.Record(y, func(dy []float32) {
			at := 0
			for _, x := range xs {
				w := x.shape[axis] * inner
				if dx, fresh := t.FreshGradOf(x); fresh {
					onRows(simd.CopyRows, dx, w, dy[at:], n*inner, outer, w)
				} else if dx != nil {
					onRows(simd.AddRows, dx, w, dy[at:], n*inner, outer, w)
				}
				at += w
			}
		})
	}
	return y
}

// Slice returns elements [lo, hi) along an axis.
func Slice(t *Tape, x *Tensor, axis, lo, hi int) *Tensor {
	checkAxis("Slice", x, axis)
	outer, n, inner := split(x.shape, axis)
	if lo < 0 || hi < lo || hi > n {
		badShape("Slice", "x", x.shape, "elements %d to %d along axis %d", lo, hi, axis)
	}
	y := t.header(x.shape)
	y.shape[axis] = hi - lo
	y.data = t.Floats(size(y.shape))
	if outer == 0 {
		return y
	}
	w := (hi - lo) * inner
	onRows(simd.CopyRows, y.data, w, x.data[lo*inner:], n*inner, outer, w)
	if t.Needs(x) {
		t.Record(y, func(dy []float32) {
			onRows(simd.AddRows, t.GradOf(x)[lo*inner:], n*inner, dy, w, outer, w)
		})
	}
	return y
}

// Gather returns the rows of x, along the first axis, with the numbers in index: an embedding, or a selection from a
// batch. A row that is selected several times gets the sum of the gradients. index must not change until Backward.
//
// Shapes:
//
//	x    [N …]
//	out  [len(index) …]
func Gather(t *Tape, x *Tensor, index []int) *Tensor {
	return gatherSum(t, "Gather", []*Tensor{x}, [][]int{index})
}

// GatherSum returns Gather(xs[0], index[0]) + Gather(xs[1], index[1]) + …, computed in one pass: the sum of several
// embeddings. The indexes must have the same length, and the rows of all xs the same shape.
func GatherSum(t *Tape, xs []*Tensor, index [][]int) *Tensor {
	const op = "GatherSum"
	if len(xs) == 0 || len(index) != len(xs) {
		badShape(op, "index", []int{len(index)}, "one list of rows for each of at least one tensor, %d", len(xs))
	}
	return gatherSum(t, op, slices.Clone(xs), slices.Clone(index))
}

func gatherSum(t *Tape, op string, xs []*Tensor, index [][]int) *Tensor {
	rows := len(index[0])
	needs := false
	for i, x := range xs {
		checkAxis(op, x, 0)
		if len(index[i]) != rows || !slices.Equal(x.shape[1:], xs[0].shape[1:]) {
			badShape(op, "x", x.shape, "%d rows with the shape %v", rows, xs[0].shape[1:])
		}
		for _, r := range index[i] {
			if r < 0 || r >= x.shape[0] {
				badShape(op, "x", x.shape, "a row %d", r)
			}
		}
		needs = t.Needs(x) || needs
	}
	y := t.header(xs[0].shape)
	y.shape[0] = rows
	w := size(y.shape[1:])
	y.data = t.Floats(rows * w)
	cost := w*costAdd + costMiss
	par.For(rows, par.Chunk(rows, len(xs)*cost), func(lo, hi int) {
		for r := lo; r < hi; r++ {
			to := y.data[r*w : (r+1)*w]
			copy(to, xs[0].data[index[0][r]*w:])
			for i, x := range xs[1:] {
				simd.Add(to, to, x.data[index[i+1][r]*w:][:w])
			}
		}
	})
	if needs {
		t.Record(y, func(dy []float32) {
			for n := range xs { // in the order of the backward steps of separate calls
				i := len(xs) - 1 - n
				dx := t.GradOf(xs[i])
				if dx == nil {
					continue
				}
				// Each part has some of the rows of dx, because a row of dy may not be the only one for its row.
				parts := 1
				for chunks := rows / par.Chunk(rows, cost); 2*parts <= min(chunks, 2*par.Threads()); {
					parts *= 2
				}
				par.For(parts, 1, func(part, _ int) {
					for r, at := range index[i] {
						if at&(parts-1) == part {
							to := dx[at*w:][:w]
							simd.Add(to, to, dy[r*w:][:w])
						}
					}
				})
			}
		})
	}
	return y
}
