package nn

import (
	"fmt"
	"slices"

	"github.com/attn-go/attn/tensor"
)

// StateDict maps the tensors of a file to parameters. Save and Load both use it, so one table serves both.
type StateDict []Entry

// Entry is one tensor of a file and the parameters that form it.
type Entry struct {
	// Name is the tensor's name in the file.
	Name string
	// Parts are stacked along their first axis: [N1 …], [N2 …] are [N1+N2 …] in the file. Most entries have one part.
	// To store a parameter in pieces or in another order, use tensor.Tensor.Rows.
	Parts []*tensor.Tensor
	// Packed are packed matrices, stacked along their outputs. An entry has either Parts or Packed. Load fills them,
	// Save rejects them.
	Packed []*tensor.Packed
	// Transposed says that the file stores the transpose of the stacked matrix: [in out] for a linear map.
	Transposed bool
	// Interleaved, if positive, is the number of blocks of rows in the file: each has as many rows of the first part, then
	// of the second, and so on. It is for maps of queries, keys and values that are stored head by head.
	Interleaved int
	// Refused, if not empty, says why Load rejects a file with this tensor. Such an entry has no parts, and Save does
	// not write it.
	Refused string
}

// OwnNames returns the table of attn's own names: the names that Params gives.
//
// Errors: a module whose weights are packed for inference.
func OwnNames(m Module) (d StateDict, err error) {
	err = tensor.Catch(func() {
		for name, p := range m.Params() {
			d = append(d, Entry{Name: name, Parts: []*tensor.Tensor{p}})
		}
	})
	return d, err
}

// ModuleFunc turns a function that returns parameters into a Module. An example is the state of an optimiser:
// ModuleFunc(optimizer.State).
type ModuleFunc func() Params

// Params calls f.
func (f ModuleFunc) Params() Params { return f() }

// shape returns the shape of the tensor in the file. It panics with a
// *tensor.ShapeError if the parts cannot be stacked.
func (e *Entry) shape() []int {
	wrong := func(got []int, want string, args ...any) {
		panic(&tensor.ShapeError{Op: "nn: StateDict", Arg: fmt.Sprintf("entry %q", e.Name), Got: got, Want: fmt.Sprintf(want, args...)})
	}
	var shapes [][]int
	for _, p := range e.Parts {
		shapes = append(shapes, p.Shape())
	}
	for _, p := range e.Packed {
		shapes = append(shapes, p.Shape())
	}
	if len(shapes) == 0 {
		panic(fmt.Sprintf("nn: StateDict: entry %q has no parts", e.Name))
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
	if e.Transposed {
		if len(shape) != 2 {
			wrong(shape, "a matrix to transpose")
		}
		slices.Reverse(shape)
	}
	return shape
}

// fits reports whether the tensor may have that shape in the file. Unknown sizes of an uninitialized parameter match
// any size.
func (e *Entry) fits(shape []int) bool {
	return slices.EqualFunc(shape, e.shape(), func(n, want int) bool { return n == want || want < 0 && n > 0 })
}

// materialize gives uninitialized parameters the shapes that follow from the shape in the file, and reports whether
// there were any.
func (e *Entry) materialize(shape []int) (waited bool) {
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
