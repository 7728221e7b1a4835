package statedict

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/hugepages"
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tensor"
)

// LoadOptions says how Load reads parameters. With the zero value, the file must contain exactly the module's
// parameters under attn's own names.
type LoadOptions struct {
	// Prefix precedes each name in the file, such as "encoder.". Tensors without it do not belong to the module and
	// are ignored.
	Prefix string
	// Names returns the table of names. Nil means nn.OwnNames; nn.TorchNames returns PyTorch's names.
	Names func(nn.Module) (nn.StateDict, error)
	// Unread lists tensors under Prefix that may be left unread: full names, or patterns of package path, such as
	// "*.position_ids".
	Unread []string
}

// Load reads the parameters of a module from a safetensors file, an index of several files, or a folder with
// model.safetensors or its index, or from a state dict of torch.save: see safetensors.Open. The file must contain a tensor for each parameter, of the same
// shape, and no other tensors except those that LoadOptions allows. A layer that takes its widths from its first batch
// takes them from the file instead. The types F16, BF16 and F32 are read exactly, and F64 is rounded to the nearest
// float32. Integers are rejected, because they may be quantized with a scale.
//
// Errors: a *safetensors.FormatError with the path if the file is invalid. It wraps a *MismatchError if tensors are
// missing, have another shape or are left over. After both errors, no parameter has changed; after an I/O error, some
// parameters may have changed.
func Load(path string, m nn.Module, o LoadOptions) error {
	r, err := safetensors.Open(path)
	if err != nil {
		return err
	}
	defer r.Close()
	return LoadFrom(r, m, o)
}

// LoadFrom is Load from an open file.
func LoadFrom(r *safetensors.Reader, m nn.Module, o LoadOptions) error {
	dict, err := stateDict(o.Names, m)
	if err != nil {
		return err
	}
	if err := o.check(r, dict); err != nil {
		return err
	}
	waited := false
	for i := range dict {
		if info, there := r.Lookup(o.Prefix + dict[i].Name); there && materialize(&dict[i], info.Shape) {
			waited = true
		}
	}
	if err := read(r, o.Prefix, dict); err != nil || !waited {
		return err
	}
	for range m.Params() { // completes layers that took their widths from the file
	}
	return nil
}

// check returns an error if the tensors of the file do not match the table.
func (o LoadOptions) check(r *safetensors.Reader, dict nn.StateDict) error {
	bad := func(err error) error { return &safetensors.FormatError{Path: r.Path(), Err: err} }
	var mismatch MismatchError
	read := make(map[string]bool, len(dict)+len(o.Unread))
	for _, name := range o.Unread {
		read[name] = true // there may be hundreds of these, all plain names
	}
	for i := range dict {
		e := &dict[i]
		name := o.Prefix + e.Name
		info, there := r.Lookup(name)
		switch {
		case e.Refused != "":
			if there {
				return bad(fmt.Errorf("tensor %q: %s", name, e.Refused))
			}
			continue
		case !there:
			mismatch.Missing = append(mismatch.Missing, name)
		case !fits(e, info.Shape):
			mismatch.Misshapen = append(mismatch.Misshapen, Misshapen{name, info.Shape, shapeOf(e)})
		}
		read[name] = true
	}
	var err error
	if mismatch.Unread, err = o.Leftover(r, read); err != nil {
		return err
	}
	if !mismatch.Empty() {
		return bad(&mismatch)
	}
	for i := range dict {
		if dict[i].Refused != "" {
			continue
		}
		// Reads no elements, but checks the type.
		if err := r.ReadFloat32s(o.Prefix+dict[i].Name, nil, 0); err != nil {
			return err
		}
	}
	return nil
}

// Leftover returns the names of the tensors of a file, under Prefix, that are neither in read nor in Unread. It returns
// an error if Unread contains an invalid pattern.
func (o LoadOptions) Leftover(r *safetensors.Reader, read map[string]bool) (names []string, err error) {
	for _, info := range r.Tensors() {
		left := strings.HasPrefix(info.Name, o.Prefix) && !read[info.Name]
		for i := 0; left && i < len(o.Unread); i++ {
			match, err := path.Match(o.Unread[i], info.Name)
			if err != nil {
				return nil, fmt.Errorf("statedict: Load: Unread has %q: %w", o.Unread[i], err)
			}
			left = !match && o.Unread[i] != info.Name
		}
		if left {
			names = append(names, info.Name)
		}
	}
	return names, nil
}

// pieceLength is the largest number of elements that a task reads. It is large enough that two processors rarely touch
// the same new huge page, which only one of them can clear.
const pieceLength = 1 << 20

// read sets the parameters of a table from the tensors with their names, whose shapes have been checked. It uses all
// processors, because clearing new memory takes longer than copying into it from the system's page cache.
func read(r *safetensors.Reader, prefix string, dict nn.StateDict) error {
	var tasks []func() error
	for i := range dict {
		if e := &dict[i]; !e.Transposed && e.Interleaved == 0 {
			tasks = append(tasks, floatTasks(r, prefix+e.Name, pieceLength, e.Parts)...)
			tasks = append(tasks, packedTasks(r, prefix+e.Name, e.Packed)...)
		}
	}
	if err := inParallel(tasks); err != nil {
		return err
	}
	var memory []float32 // for tensors that are read as a whole, because each row has elements of all parts
	for i := range dict {
		e := &dict[i]
		if !e.Transposed && e.Interleaved == 0 {
			continue
		}
		shape, n := shapeOf(e), 1
		for _, size := range shape {
			n *= size
		}
		if len(memory) < n {
			memory = hugepages.Make[float32](n)
		}
		all := tensor.New(memory[:n], shape...)
		if err := inParallel(floatTasks(r, prefix+e.Name, 1<<17, []*tensor.Tensor{all})); err != nil {
			return err
		}
		switch {
		case n == 0:
		case e.Transposed:
			setTransposed(e, all)
		default:
			setInterleaved(e, all)
		}
	}
	return nil
}

// inParallel runs tasks on all processors and returns the error of the first one that fails.
func inParallel(tasks []func() error) error {
	errs := make([]error, len(tasks))
	par.For(len(tasks), 1, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			errs[i] = tasks[i]()
		}
	})
	return cmp.Or(errs...)
}

// floatTasks returns tasks that read consecutive parts of a tensor, at most length elements each.
func floatTasks(r *safetensors.Reader, name string, length int, parts []*tensor.Tensor) (tasks []func() error) {
	at := 0
	for _, p := range parts {
		for part := range slices.Chunk(p.Data(), length) {
			first := at
			tasks = append(tasks, func() error { return r.ReadFloat32s(name, part, first) })
			at += len(part)
		}
	}
	return tasks
}

// setTransposed sets the parts to columns of a matrix [in out] or, if they are separate, to the transposes of its rows.
func setTransposed(e *nn.Entry, matrix *tensor.Tensor) {
	all, columns := matrix.Data(), matrix.Dim(matrix.Rank()-1)
	first := 0
	pass := func(out, in int) {
		if e.Separate {
			out *= in
		}
		first += out
	}
	for _, part := range e.Parts {
		stride := part.Dim(part.Rank() - 1)
		y, in := part.Data()[e.Columns[0]:], cmp.Or(e.Columns[1]-e.Columns[0], stride)
		par.For(part.Dim(0), 64, func(lo, hi int) {
			simd.CopyTransposed(y[lo*stride:], stride, all[first+lo:], columns, hi-lo, in)
		})
		pass(part.Dim(0), in)
	}
	for _, part := range e.Packed {
		part.SetTransposed(all[first:], columns)
		pass(part.Shape()[0], part.Shape()[1])
	}
}

// setInterleaved sets the parts to rows of a tensor, which alternate between them.
func setInterleaved(e *nn.Entry, x *tensor.Tensor) {
	all, at, block := x.Data(), 0, x.Len()/e.Interleaved
	copyOut := func(to []float32) {
		rows := len(to) / e.Interleaved // numbers of a block
		for i := range e.Interleaved {
			copy(to[i*rows:][:rows], all[i*block+at:])
		}
		at += rows
	}
	for _, part := range e.Parts {
		copyOut(part.Data())
	}
	for _, part := range e.Packed {
		rows := make([]float32, part.Shape()[0]*part.Shape()[1])
		copyOut(rows)
		part.SetRows(0, rows)
	}
}

// MismatchError describes the differences between the tensors of a file and the parameters to load. It uses the names
// in the file.
type MismatchError struct {
	Missing   []string    // parameters without a tensor
	Misshapen []Misshapen // tensors of another shape
	Unread    []string    // tensors without a parameter
}

// Misshapen is a tensor whose shape differs from its parameter's.
type Misshapen struct {
	Name      string
	Got, Want []int
}

// Empty reports whether there are no differences.
func (e *MismatchError) Empty() bool { return len(e.Missing)+len(e.Misshapen)+len(e.Unread) == 0 }

// Error names the first few of each kind, in one line.
func (e *MismatchError) Error() string {
	var kinds []string
	add := func(n int, names, one, many string) {
		switch {
		case n == 1:
			kinds = append(kinds, "tensor "+names+one)
		case n > 1:
			kinds = append(kinds, "tensors "+names+many)
		}
	}
	const most = 3
	var shapes []string
	for _, m := range e.Misshapen[:min(most, len(e.Misshapen))] {
		shapes = append(shapes, fmt.Sprintf("%s has shape %v, want %v", quote.Text(m.Name), m.Got, m.Want))
	}
	misshapen := strings.Join(shapes, ", ")
	if more := len(e.Misshapen) - most; more > 0 {
		misshapen += fmt.Sprintf(" and %d more", more)
	}
	add(len(e.Missing), quote.Texts(e.Missing), " is missing", " are missing")
	add(len(e.Misshapen), misshapen, "", "")
	add(len(e.Unread), quote.Texts(e.Unread), " is not read", " are not read")
	return strings.Join(kinds, "; ")
}
