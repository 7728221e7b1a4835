package tensor

import (
	"io"

	"github.com/attn-go/attn/internal/npy"
)

// ReadNPY reads one array of NumPy, as numpy.save writes it, and leaves r behind
// its last byte: several arrays may follow one another, and where none is left,
// the error wraps io.EOF.
//
// It reads versions 1.0 to 3.0 of the format, either order of bytes and either
// order of indices. Booleans become 0 and 1. Halves and single precision are
// exact, and doubles are rounded to the nearest float32.
//
// Errors: a file that is cut off or malformed; numbers of another type, such as
// complex; a double beyond the largest float32; an integer that a float32 does
// not hold exactly, as most above 2²⁴. The file may come from a stranger: nothing
// in it is run, and memory is allocated as its bytes arrive.
//
// Source: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
func ReadNPY(r io.Reader) (*Tensor, error) {
	shape, data, err := npy.Read(r)
	if err != nil {
		return nil, err
	}
	return New(data, shape...), nil
}

// WriteNPY writes x as an array of NumPy, float32 in the order of x, which
// numpy.load reads. The bytes are those that numpy.save writes.
//
// Errors: those of w, and more than the 64 axes that NumPy knows.
func WriteNPY(w io.Writer, x *Tensor) error { return npy.Write(w, x.shape, x.data) }
