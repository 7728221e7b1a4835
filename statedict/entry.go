package statedict

import (
	"fmt"
	"slices"

	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/tensor"
)

// shapeOf returns the shape of an entry's tensor in the file. It panics with a *tensor.ShapeError if the parts cannot be
// stacked.
func shapeOf(e *nn.Entry) []int {
	wrong := func(got []int, want string, args ...any) {
		panic(&tensor.ShapeError{Op: "statedict", Arg: fmt.Sprintf("entry %q", e.Name), Got: got, Want: fmt.Sprintf(want, args...)})
	}
	var shapes [][]int
	for _, p := range e.Parts {
		shapes = append(shapes, p.Shape())
	}
	for _, p := range e.Packed {
		shapes = append(shapes, p.Shape())
	}
	for i, part := range shapes {
		if !e.Separate {
			break
		}
		if len(part) != 2 || !e.Transposed {
			wrong(part, "a matrix to transpose")
		}
		shapes[i] = []int{part[1], part[0]}
	}
	if len(shapes) == 0 {
		panic(fmt.Sprintf("statedict: entry %q has no parts", e.Name))
	}
	shape := slices.Clone(shapes[0])
	for i, part := range shapes {
		if n := e.Interleaved; n > 0 && (len(part) == 0 || part[0]%n != 0 || e.Transposed) {
			wrong(part, "rows for %d blocks, not transposed", n)
		}
		if i == 0 {
			continue
		}
		if len(shape) == 0 || len(part) != len(shape) || !slices.Equal(part[1:], shape[1:]) {
			wrong(part, "[N %v] as its first part", shape[min(1, len(shape)):])
		}
		shape[0] += part[0]
	}
	if lo, hi := e.Columns[0], e.Columns[1]; hi > 0 {
		if last := len(shape) - 1; !e.Transposed || len(e.Parts) != 1 || last < 0 || lo < 0 || lo >= hi || hi > shape[last] {
			wrong(shape, "one part to transpose, with columns %d to %d", lo, hi)
		}
		shape[len(shape)-1] = hi - lo
	}
	if n := e.Blocks; n > 0 {
		if len(shape) < 2 || shape[0]%n != 0 || e.Transposed || e.Interleaved > 0 {
			wrong(shape, "rows for %d blocks, neither transposed nor interleaved", n)
		}
		return append([]int{n, shape[0] / n}, shape[1:]...)
	}
	if e.Transposed && !e.Separate {
		if last := len(shape) - 1; last < 1 || slices.ContainsFunc(shape[1:last], func(n int) bool { return n != 1 }) {
			wrong(shape, "a matrix to transpose")
		}
		slices.Reverse(shape)
	}
	return shape
}

// fits reports whether an entry's tensor may have that shape in the file. Unknown sizes of an uninitialized parameter match
// any size.
func fits(e *nn.Entry, shape []int) bool {
	return slices.EqualFunc(shape, shapeOf(e), func(n, want int) bool { return n == want || want < 0 && n > 0 })
}

// materialize gives uninitialized parameters the shapes that follow from the shape in the file, and reports whether
// there were any.
func materialize(e *nn.Entry, shape []int) (waited bool) {
	if e.Transposed {
		shape = slices.Clone(shape)
		slices.Reverse(shape)
	}
	for _, p := range e.Parts {
		if !p.Initialized() {
			p.Materialize(append(slices.Clone(p.Shape()[:1]), shape[1:]...)...)
			waited = true
		}
	}
	return waited
}
