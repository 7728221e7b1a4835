package nn

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/pages"
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/safetensors"
)

// LoadOptions says how Load reads parameters. The zero value is a file of exactly
// the module's parameters under attn's own names.
type LoadOptions struct {
	// Prefix stands before each name in the file: "encoder.". Tensors without it
	// are not the module's.
	Prefix string
	// Names makes the table of names. Nil means OwnNames; TorchNames is
	// PyTorch's.
	Names func(Module) (StateDict, error)
	// Unread are the tensors under Prefix that need not be read: full names, or
	// patterns of package path, such as "*.position_ids".
	Unread []string
}

// Load reads the parameters of a module from a safetensors file, an index of
// several files, or a folder with model.safetensors or its index: see
// safetensors.Open. Each parameter must be there in its shape, and each tensor
// must be read. A layer that waits for the widths of its first batch gets them from the file.
// Types F16, BF16 and F32 are exact, F64 is rounded to the nearest
// float32; integers, which may stand for other numbers by a scale, are refused.
//
// Errors: a *safetensors.FormatError with the path if the file is not what it
// should be; it wraps a *MismatchError if tensors are missing, have another
// shape or are left over. Then no parameter has changed. After an error of the
// disk some may have.
func Load(path string, m Module, o LoadOptions) error {
	r, err := safetensors.Open(path)
	if err != nil {
		return err
	}
	defer r.Close()
	return LoadFrom(r, m, o)
}

// LoadFrom is Load from a file that is open.
func LoadFrom(r *safetensors.Reader, m Module, o LoadOptions) error {
	dict, err := stateDict(o.Names, m)
	if err != nil {
		return err
	}
	if err := o.check(r, dict); err != nil {
		return err
	}
	waited := false
	for i := range dict {
		if info, there := r.Lookup(o.Prefix + dict[i].Name); there && dict[i].materialize(info.Shape) {
			waited = true
		}
	}
	if err := dict.read(r, o.Prefix); err != nil || !waited {
		return err
	}
	for range m.Params() { // layers begin to use what they have waited for
	}
	return nil
}

// check returns what keeps the tensors of a file from being those of the table.
func (o LoadOptions) check(r *safetensors.Reader, dict StateDict) error {
	bad := func(err error) error { return &safetensors.FormatError{Path: r.Path(), Err: err} }
	var mismatch MismatchError
	read := make(map[string]bool, len(dict)+len(o.Unread))
	for _, name := range o.Unread {
		read[name] = true // a model may have hundreds of them, which are names and no patterns
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
		case !e.fits(info.Shape):
			mismatch.Misshapen = append(mismatch.Misshapen, Misshapen{name, info.Shape, e.shape()})
		}
		read[name] = true
	}
	for _, info := range r.Tensors() {
		if !strings.HasPrefix(info.Name, o.Prefix) || read[info.Name] {
			continue
		}
		unread, err := o.Skips(info.Name)
		if err != nil {
			return err
		}
		if !unread {
			mismatch.Unread = append(mismatch.Unread, info.Name)
		}
	}
	if len(mismatch.Missing)+len(mismatch.Misshapen)+len(mismatch.Unread) > 0 {
		return bad(&mismatch)
	}
	for i := range dict {
		if dict[i].Refused != "" {
			continue
		}
		// Nothing is read, but the type is checked.
		if err := r.ReadFloat32s(o.Prefix+dict[i].Name, nil, 0); err != nil {
			return err
		}
	}
	return nil
}

// Skips reports whether a tensor need not be read. It returns an error if Unread has what is
// no pattern.
func (o LoadOptions) Skips(name string) (bool, error) {
	for _, pattern := range o.Unread {
		ok, err := path.Match(pattern, name)
		if err != nil {
			return false, fmt.Errorf("nn: Load: Unread has %q: %w", pattern, err)
		}
		if ok || pattern == name {
			return true, nil
		}
	}
	return false, nil
}

// piece is a part of a tensor in the file, and where it belongs.
type piece struct {
	name string
	at   int // its first element
	to   []float32
}

// pieceLength is how many elements a piece has at most: so many that two processors seldom ask
// for the same new huge page, which only one of them can clear.
const pieceLength = 1 << 20

// read sets the parameters of a table to the tensors of their names, whose shapes fit, on all
// processors: to clear new memory takes longer than to read into it from the system's.
func (d StateDict) read(r *safetensors.Reader, prefix string) error {
	var pieces []piece
	for i := range d {
		at := 0
		for _, p := range d[i].Parts {
			if d[i].Transposed {
				continue
			}
			for part := range slices.Chunk(p.Data(), pieceLength) {
				pieces = append(pieces, piece{prefix + d[i].Name, at, part})
				at += len(part)
			}
		}
	}
	if err := readPieces(r, pieces); err != nil {
		return err
	}
	var memory []float32
	var err error
	for i := range d {
		if !d[i].Transposed {
			continue
		}
		if memory, err = d[i].readTransposed(r, prefix+d[i].Name, memory); err != nil {
			return err
		}
	}
	return nil
}

func readPieces(r *safetensors.Reader, pieces []piece) error {
	errs := make([]error, len(pieces))
	par.For(len(pieces), 1, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			p := &pieces[i]
			errs[i] = r.ReadFloat32s(p.name, p.to, p.at)
		}
	})
	return cmp.Or(errs...)
}

// readTransposed reads a tensor whose rows become columns of the parts, and returns the memory
// for the next one.
func (e *Entry) readTransposed(r *safetensors.Reader, name string, memory []float32) ([]float32, error) {
	shape := e.shape()
	in, columns := shape[0], shape[1]
	if len(memory) < in*columns {
		memory = pages.Make[float32](in * columns)
	}
	all := memory[:in*columns]
	var pieces []piece
	const most = 1 << 17 // elements of a piece
	for part := range slices.Chunk(all, most) {
		pieces = append(pieces, piece{name, len(pieces) * most, part})
	}
	if err := readPieces(r, pieces); err != nil || len(all) == 0 {
		return memory, err
	}
	first := 0
	for _, part := range e.Parts {
		y := part.Data()
		par.For(part.Dim(0), 64, func(lo, hi int) {
			simd.CopyTransposed(y[lo*in:], in, all[first+lo:], columns, hi-lo, in)
		})
		first += part.Dim(0)
	}
	return memory, nil
}

// MismatchError says in what the tensors of a file differ from the parameters
// that they were to be loaded into. Names are those in the file.
type MismatchError struct {
	Missing   []string    // parameters without a tensor
	Misshapen []Misshapen // tensors of another shape
	Unread    []string    // tensors without a parameter
}

// Misshapen is a tensor whose shape is not that of its parameter.
type Misshapen struct {
	Name      string
	Got, Want []int
}

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
