package simd

import (
	"unsafe"
)

// Format is a number format of stored numbers. A new format needs a constant, a size, and cases in
// Stored.Floats and Stored.round.
type Format uint8

// The formats. 0 is not a format.
const (
	Float32  Format = iota + 1
	BFloat16        // the upper half of a float32: 8 bits of precision
	Int8            // −127 to 127, times a scale of each vector: its largest element/127
)

var sizes = [...]int{Float32: 4, BFloat16: 2, Int8: 1}

// Size returns the size of an element in bytes.
func (f Format) Size() int { return sizes[f] }

// Scaled reports whether a vector has a scale.
func (f Format) Scaled() bool { return f == Int8 }

// Bytes returns the size of a vector in bytes, including its scale.
func (f Format) Bytes(elements int) int {
	bytes := f.Size() * elements
	if f.Scaled() {
		bytes += 4
	}
	return bytes
}

// Stored is numbers as a KV cache stores them, or the weights of a model.
type Stored struct {
	Format Format
	Memory []byte // Size bytes a number
}

// view returns memory as numbers of another type.
func view[T any](memory []byte) []T {
	var one T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(memory))), len(memory)/int(unsafe.Sizeof(one)))
}

// Part returns numbers lo to hi.
func (s Stored) Part(lo, hi int) Stored {
	size := s.Format.Size()
	return Stored{s.Format, s.Memory[lo*size : hi*size]}
}

// Copy copies n numbers from src, which has the same format, starting at number from, to the
// numbers starting at number at.
func (s Stored) Copy(at int, src Stored, from, n int) {
	copy(s.Part(at, at+n).Memory, src.Part(from, from+n).Memory)
}

// Floats returns numbers lo to hi as floats, without applying their scales. It converts them into
// scratch unless they are floats already.
func (s Stored) Floats(lo, hi int, scratch []float32) []float32 {
	s = s.Part(lo, hi)
	if s.Format == Float32 {
		return view[float32](s.Memory)
	}
	scratch = scratch[:hi-lo]
	switch s.Format {
	case BFloat16:
		fromBFloat16(scratch, view[uint16](s.Memory))
	case Int8:
		fromInt8(scratch, view[int8](s.Memory))
	}
	return scratch
}

// round sets all numbers to x, or in a format with scales to x·inverse, rounded to the nearest.
func (s Stored) round(x []float32, inverse float64) {
	switch s.Format {
	case Float32:
		copy(view[float32](s.Memory), x)
	case BFloat16:
		toBFloat16(view[uint16](s.Memory), x)
	case Int8:
		toInt8(view[int8](s.Memory), x, inverse)
	}
}

// apart is the count of scattered numbers that are converted at a time, in memory on the stack.
const apart = 64

// Round sets the numbers starting at number at, step apart, to x, or in a format with scales to
// x·inverse. It rounds to the nearest, ties to even. As an integer, NaN becomes an undefined value.
func (s Stored) Round(at, step int, x []float32, inverse float64) {
	if step == 1 {
		s.Part(at, at+len(x)).round(x, inverse)
		return
	}
	var memory [apart / 2]uint64 // aligned
	for len(x) > 0 {
		n := min(len(x), apart)
		some := Stored{s.Format, bytesOf(memory[:])}.Part(0, n)
		some.round(x[:n], inverse)
		s.spread(at, step, some, 0, 1, n)
		at, x = at+n*step, x[n:]
	}
}

// Read sets x to the numbers starting at number at, step apart, without applying their scales.
func (s Stored) Read(x []float32, at, step int) {
	if step == 1 {
		copy(x, s.Floats(at, at+len(x), x))
		return
	}
	var memory [apart / 2]uint64
	for len(x) > 0 {
		n := min(len(x), apart)
		some := Stored{s.Format, bytesOf(memory[:])}.Part(0, n)
		some.spread(0, 1, s, at, step, n)
		copy(x, some.Floats(0, n, x))
		at, x = at+n*step, x[n:]
	}
}

// bytesOf returns the memory of x.
func bytesOf[T any](x []T) []byte {
	var one T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), len(x)*int(unsafe.Sizeof(one)))
}

// spread sets n numbers, step apart, to numbers of src, srcStep apart, which has the same format.
func (s Stored) spread(at, step int, src Stored, from, srcStep, n int) {
	switch s.Format.Size() {
	case 1:
		spread(s.Memory[at:], step, src.Memory[from:], srcStep, n)
	case 2:
		spread(view[uint16](s.Memory)[at:], step, view[uint16](src.Memory)[from:], srcStep, n)
	default:
		spread(view[float32](s.Memory)[at:], step, view[float32](src.Memory)[from:], srcStep, n)
	}
}

func spread[T any](dst []T, step int, x []T, xStep, n int) {
	for i := range n {
		dst[i*step] = x[i*xStep]
	}
}
