package nn

import "github.com/attn-go/attn/tensor"

// StateDict maps the tensors of a file to parameters. Package statedict saves and loads them.
type StateDict []Entry

// Entry is one tensor of a file and the parameters that form it.
type Entry struct {
	// Name is the tensor's name in the file.
	Name string
	// Parts are stacked along their first axis: [N1 …], [N2 …] are [N1+N2 …] in the file. Most entries have one part.
	// To store a parameter in pieces or in another order, use tensor.Tensor.Rows.
	Parts []*tensor.Tensor
	// Packed are packed matrices, stacked along their outputs. An entry has either Parts or Packed. Loading fills
	// them, saving rejects them.
	Packed []*tensor.Packed
	// Transposed says that the file stores the transpose of the stacked matrix: [in out] for a linear map. The axes of other
	// parts are reversed, [a 1 b] in the file for [b 1 a]; those between the first and the last must be 1.
	Transposed bool
	// Separate, with Transposed, says that the file stores the transpose of each part, one below the other: the parts
	// [N1 in], [N1 in], … are [in N1], [in N1], …
	Separate bool
	// Columns, unless it is zero, is the range of columns of the part that the tensor has: several tensors of a file are
	// then one parameter, such as a convolution of queries, keys and values. Such an entry is Transposed and has one part.
	Columns [2]int
	// Interleaved, if positive, is the number of blocks of rows in the file: each has as many rows of the first part, then
	// of the second, and so on. It is for maps of queries, keys and values that are stored head by head.
	Interleaved int
	// Blocks, if positive, says that the file has the rows in as many blocks: [B N/B …] for [N …]. It is for the maps of
	// experts in one tensor.
	Blocks int
	// Refused, if not empty, says why a file with this tensor is rejected. Such an entry has no parts, and is not saved.
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
