package tensor

import (
	"io"

	"github.com/attn-go/attn/internal/npy"
)

// ReadNPY reads one NumPy array, as numpy.save writes it. It reads no further than the last byte of the array, so
// several arrays may follow one another in r; at the end of r, the error wraps io.EOF.
//
// It reads versions 1.0 to 3.0 of the format, both byte orders, and both C and Fortran order. Booleans become 0 and
// 1. Half and single precision are read exactly; doubles are rounded to the nearest float32.
//
// Errors: a truncated or malformed file; another type, such as complex; a double beyond the largest float32; an
// integer that float32 cannot represent exactly, as most integers above 2²⁴. The file may come from an untrusted
// source: nothing in it is executed, and memory is allocated only as its bytes arrive.
//
// Source: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
func ReadNPY(r io.Reader) (*Tensor, error) {
	shape, data, err := npy.Read(r)
	if err != nil {
		return nil, err
	}
	return New(data, shape...), nil
}

// WriteNPY writes x as a float32 NumPy array in C order, which numpy.load reads. The bytes are the same as numpy.save
// writes.
//
// Errors: errors of w, and more than the 64 axes that NumPy supports.
func WriteNPY(w io.Writer, x *Tensor) error { return npy.Write(w, x.shape, x.data) }
