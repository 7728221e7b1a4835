// Package safetensors reads and writes the safetensors format: named arrays of
// numbers behind a JSON header, with nothing in the file that could be run.
//
// A file is the length N of the header (8 bytes, little-endian), N bytes of
// JSON, and the bytes of all tensors one after the other:
//
//	{"__metadata__": {"format": "pt"},
//	 "q": {"dtype": "F32", "shape": [2, 5], "data_offsets": [0, 40]}}
//
// Read and Parse read a file whole. Open reads its header only, and single
// tensors, or parts of one, when they are asked for; it also opens models that
// are spread over several files, which an index names:
//
//	{"metadata": {"total_size": 1234},
//	 "weight_map": {"q": "model-00001-of-00002.safetensors", …}}
//
// File.Write writes tensors that are in memory, Stream.Write those that are made
// while they are written, and WriteShards of either spreads them over several
// files. Package nn saves and loads the parameters of layers on top of this.
//
// The files come from strangers, so nothing in them is believed. Every byte of
// an accepted file belongs to the header or to exactly one tensor; a file that
// two programs could read differently, say because a name comes twice, is
// refused. Memory is allocated only in proportion to bytes that are there.
package safetensors

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/quote"
)

// Limits of a file. The first is the one of the reference implementation; the
// others are far above any real model and bound the work that a header can
// cause.
const (
	maxHeader   = 100_000_000 // bytes of JSON
	maxTensors  = 250_000
	maxMetadata = 250_000 // keys
	maxName     = 4096    // bytes of a tensor's name
	maxRank     = 64
	maxFile     = 1 << 40 // bytes; a sparse file may claim any size at no cost
)

// metadataKey is the name in the header that is not a tensor.
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

// These element types are known by their size only, so that a file which holds
// some still opens.
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

// Bits returns the size of one element in bits, or 0 for a type that is not known.
func (d DType) Bits() int {
	switch d {
	case F4:
		return 4
	case F6E2M3, F6E3M2:
		return 6
	case BOOL, U8, I8, F8E4M3, F8E5M2, F8E8M0, F8E4M3Uz, F8E5M2Uz:
		return 8
	case I16, U16, F16, BF16:
		return 16
	case I32, U32, F32:
		return 32
	case I64, U64, F64, C64:
		return 64
	}
	return 0
}

// Info is what a header says of a tensor: all but its data. An empty Shape is a
// single number.
type Info struct {
	Name  string
	DType DType
	Shape []int
}

// Tensor is a named array. Data holds its elements little-endian and row-major,
// that is, with the last index running fastest. An empty Shape is a single
// number; a dimension of 0 makes Data empty.
type Tensor struct {
	Name  string
	DType DType
	Shape []int
	Data  []byte
}

// File is the content of a safetensors file. Tensors are in the order of their
// data in the file. Metadata is free text, and nil where a file has none.
type File struct {
	Metadata map[string]string
	Tensors  []Tensor
}

// Lookup returns the tensor called name, or nil if there is none. It searches
// all tensors.
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

// FormatError says what is wrong with a file, or with a tensor in it. Any other
// error of this package is a failure to read or write, or, from Write, a File
// that cannot be written.
type FormatError struct {
	Path string // empty if the bytes did not come from a file by name
	Err  error
}

// Error names the file, if there is one, and what is wrong with it.
func (e *FormatError) Error() string {
	if e.Path == "" {
		return "safetensors: " + e.Err.Error()
	}
	return "safetensors: " + quote.Name(e.Path) + ": " + e.Err.Error()
}

// Unwrap returns what is wrong without the path.
func (e *FormatError) Unwrap() error { return e.Err }

// byteSize returns the number of bytes of a tensor, or what is wrong with its
// type or shape.
func byteSize(d DType, shape []int) (int, error) {
	width := d.Bits()
	if width == 0 {
		return 0, fmt.Errorf("unknown dtype %s", quote.Text(string(d)))
	}
	if len(shape) > maxRank {
		return 0, fmt.Errorf("shape has %d dimensions, want at most %d", len(shape), maxRank)
	}
	// A zero among the dimensions must not hide that the others overflow:
	// a caller that computes strides from such a shape would overflow later.
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

// checkName returns what forbids a name for a tensor.
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

// inTensor puts the name of a tensor before what is wrong with it.
func inTensor(name string, err error) error {
	return fmt.Errorf("tensor %s: %w", quote.Text(name), err)
}
