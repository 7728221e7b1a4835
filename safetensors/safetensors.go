// Package safetensors reads and writes the safetensors format: named arrays of numbers after a JSON header, and
// nothing that could be executed.
//
// A file is the length N of the header (8 bytes, little-endian), N bytes of JSON, and the data of all tensors one
// after another:
//
//	{"__metadata__": {"format": "pt"},
//	 "q": {"dtype": "F32", "shape": [2, 5], "data_offsets": [0, 40]}}
//
// Read and Parse read a whole file. Open reads only the header; single tensors, or parts of a tensor, are read later
// on request. Open also opens state dicts of torch.save, and models that are split over several files, which an index
// lists:
//
//	{"metadata": {"total_size": 1234},
//	 "weight_map": {"q": "model-00001-of-00002.safetensors", …}}
//
// File.Write writes tensors that are in memory, and Stream.Write writes tensors that are created during the write.
// The WriteShards methods of both split them over several files. Package nn uses this package to save and load the
// parameters of layers.
//
// Files are untrusted, so everything in them is checked. Every byte of an accepted file belongs to the header or to
// exactly one tensor. A file that two programs could read differently, for instance because a name occurs twice, is
// rejected. Memory is allocated only in proportion to bytes that exist.
package safetensors

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strings"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/quote"
)

// Limits of a file. The reference implementation has the same limit for the header. The others are far above any real
// model and bound the work that a header can cause.
const (
	maxHeader   = 100_000_000 // bytes of JSON
	maxTensors  = 250_000
	maxMetadata = 250_000 // keys
	maxName     = 4096    // bytes of a tensor's name
	maxRank     = 64
	maxFile     = 1 << 40 // bytes; a sparse file may claim any size at no cost
)

// metadataKey is the only name in the header that is not a tensor.
const metadataKey = "__metadata__"

// DType is the type of the elements of a tensor, spelled as in the file.
type DType string

// These element types can be converted to and from Go slices.
const (
	BOOL DType = "BOOL" // one byte, 0 or 1
	U8   DType = "U8"
	I8   DType = "I8"
	I16  DType = "I16"
	U16  DType = "U16"
	I32  DType = "I32"
	U32  DType = "U32"
	I64  DType = "I64"
	U64  DType = "U64"
	F16  DType = "F16"  // IEEE 754 half precision
	BF16 DType = "BF16" // the upper half of an F32
	F32  DType = "F32"
	F64  DType = "F64"
)

// These element types are known by their size only, so that files that contain them can be opened.
const (
	F4       DType = "F4"
	F6E2M3   DType = "F6_E2M3"
	F6E3M2   DType = "F6_E3M2"
	F8E4M3   DType = "F8_E4M3"
	F8E5M2   DType = "F8_E5M2"
	F8E8M0   DType = "F8_E8M0"
	F8E4M3Uz DType = "F8_E4M3FNUZ"
	F8E5M2Uz DType = "F8_E5M2FNUZ"
	C64      DType = "C64" // two F32: real and imaginary part
)

var dtypes = []struct {
	name DType
	bits int
}{
	{BOOL, 8}, {U8, 8}, {I8, 8}, {I16, 16}, {U16, 16}, {I32, 32}, {U32, 32}, {I64, 64}, {U64, 64}, {F16, 16}, {BF16, 16},
	{F32, 32}, {F64, 64}, {F4, 4}, {F6E2M3, 6}, {F6E3M2, 6}, {F8E4M3, 8}, {F8E5M2, 8}, {F8E8M0, 8}, {F8E4M3Uz, 8},
	{F8E5M2Uz, 8}, {C64, 64},
}

// unknownType returns the error for a type of elements that is not in dtypes.
func unknownType(d DType) error {
	names := make([]string, len(dtypes))
	for i, known := range dtypes {
		names[i] = string(known.name)
	}
	return fmt.Errorf("unknown dtype %s, want one of %s", quote.Text(string(d)), strings.Join(names, ", "))
}

// Bits returns the size of one element in bits, or 0 for an unknown type.
func (d DType) Bits() int {
	for _, known := range dtypes {
		if known.name == d {
			return known.bits
		}
	}
	return 0
}

// Info is a tensor's entry in the header, without the data. An empty Shape is a single number.
type Info struct {
	Name  string
	DType DType
	Shape []int
}

// Len returns the number of elements. It may overflow for an Info that is not of a Reader.
func (t Info) Len() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// Tensor is a named array. Data contains its elements in little-endian, row-major order, with the last index running
// fastest. An empty Shape is a single number; a dimension of 0 makes Data empty.
type Tensor struct {
	Name  string
	DType DType
	Shape []int
	Data  []byte
}

// File is the content of a safetensors file. Tensors are in the order of their data in the file. Metadata is free
// text, or nil if the file has none.
type File struct {
	Metadata map[string]string
	Tensors  []Tensor
}

// Lookup returns the tensor called name, or nil if there is none. It searches all tensors.
//
// Aliasing: the result points into f.Tensors.
func (f *File) Lookup(name string) *Tensor {
	for i := range f.Tensors {
		if f.Tensors[i].Name == name {
			return &f.Tensors[i]
		}
	}
	return nil
}

// info returns the tensor without its data.
func (t *Tensor) info() Info { return Info{t.Name, t.DType, t.Shape} }

// FormatError describes an error in a file, or in a tensor of the file. Any other error of this package is a failure
// to read or write or, from Write, a File that cannot be written.
type FormatError struct {
	Path string // empty if the bytes did not come from a file by name
	Err  error
}

// Error returns the path of the file, if it has one, and the problem.
func (e *FormatError) Error() string {
	if e.Path == "" {
		return "safetensors: " + e.Err.Error()
	}
	return "safetensors: " + quote.Name(e.Path) + ": " + e.Err.Error()
}

// Unwrap returns the problem without the path.
func (e *FormatError) Unwrap() error { return e.Err }

// byteSize returns the number of bytes of a tensor, or an error if its type or shape is invalid.
func byteSize(d DType, shape []int) (int, error) {
	width := d.Bits()
	if width == 0 {
		return 0, unknownType(d)
	}
	if len(shape) > maxRank {
		return 0, fmt.Errorf("shape has %d dimensions, want at most %d", len(shape), maxRank)
	}
	// A zero dimension must not hide that the product of the others overflows: a caller that computes strides from
	// such a shape would overflow later.
	count, empty := uint64(width), false
	for _, n := range shape {
		if n < 0 {
			return 0, fmt.Errorf("shape %v has a negative dimension", shape)
		}
		if n == 0 {
			empty = true
			continue
		}
		hi, lo := bits.Mul64(count, uint64(n))
		if hi != 0 || lo/8 > math.MaxInt {
			return 0, fmt.Errorf("shape %v of %s overflows", shape, d)
		}
		count = lo
	}
	if empty {
		return 0, nil
	}
	if count%8 != 0 {
		return 0, fmt.Errorf("shape %v of %s ends inside a byte", shape, d)
	}
	return int(count / 8), nil
}

// checkName returns an error if name is not valid for a tensor.
func checkName(name string) error {
	switch {
	case len(name) > maxName:
		return fmt.Errorf("name has %d bytes, want at most %d", len(name), maxName)
	case !utf8.ValidString(name):
		return errors.New("name is not UTF-8")
	case name == metadataKey:
		return errors.New("name is reserved")
	}
	return nil
}

// inTensor adds the name of a tensor to an error.
func inTensor(name string, err error) error {
	return fmt.Errorf("tensor %s: %w", quote.Text(name), err)
}
