package tensor

import "slices"

// broadcast returns the shape to which both operands broadcast.
func broadcast(op string, a, b *Tensor) []int {
	long, short := a.shape, b.shape
	if len(long) < len(short) {
		long, short = short, long
	}
	shape := slices.Clone(long)
	for i, d := range short {
		switch at := len(long) - len(short) + i; {
		case shape[at] == 1:
			shape[at] = d
		case d != 1 && d != shape[at]:
			badShape(op, "b", b.shape, "a shape that broadcasts with %v", a.shape)
		}
	}
	return shape
}

// BroadcastTo returns x repeated along its axes of size 1 and along missing axes; axes are aligned at the end. Its
// gradient is the sum over the repeated axes.
func BroadcastTo(t *Tape, x *Tensor, shape ...int) *Tensor {
	operand("BroadcastTo", "x", x)
	if slices.Equal(x.shape, shape) {
		return x
	}
	lead := len(shape) - len(x.shape)
	if lead < 0 {
		badShape("BroadcastTo", "x", x.shape, "at most %d axes", len(shape))
	}
	// stride[a] is the distance in x of neighbours along axis a of the result.
	stride := t.list(len(shape))
	clear(stride)
	for a, step := len(shape)-1, 1; a >= lead; a-- {
		switch d := x.shape[a-lead]; d {
		case shape[a]:
			stride[a] = step
			step *= d
		case 1:
		default:
			badShape("BroadcastTo", "x", x.shape, "a shape that broadcasts to %v", shape)
		}
	}
	y := t.Make(shape...)
	to := strides(t, shape)
	spread(shape, to, stride, func(p plane) { p.copy(y.data, x.data) })
	if t.Needs(x) {
		t.Record(y, func(dy []float32) {
			dx := t.GradOf(x)
			spread(y.shape, to, stride, func(p plane) { p.swapped().add(dx, dy) })
		})
	}
	return y
}
