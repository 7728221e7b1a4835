package safetensors

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/attn-go/attn/internal/simd"
)

var little = binary.LittleEndian

// floatTypes are the floating-point types without a scale that this package can read and write as floats.
const floatTypes = "F16, BF16, F32 or F64"

func (d DType) isFloat() bool { return d == F16 || d == BF16 || d == F32 || d == F64 }

// Float32s returns the elements of a tensor of type F16, BF16, F32 or F64. F64 is rounded to the nearest float32; the
// other types are exact. Integers are rejected, because they are often quantized, with a scale stored elsewhere; Ints
// and Bools return them unchanged.
//
// Errors: a *FormatError for any other type.
//
// Aliasing: the result is a copy.
func (t *Tensor) Float32s() ([]float32, error) {
	if !t.DType.isFloat() {
		return nil, t.wrongType(floatTypes)
	}
	if err := t.checkData(); err != nil {
		return nil, t.bad(err)
	}
	x := make([]float32, len(t.Data)*8/t.DType.Bits())
	decodeFloat32s(x, t.DType, t.Data)
	return x, nil
}

// decodeFloat32s fills x with elements of a type that isFloat.
func decodeFloat32s(x []float32, d DType, data []byte) {
	// A separate loop for each type, because tensors may be gigabytes.
	switch d {
	case F16:
		for i := range x {
			x[i] = simd.Float16Value(little.Uint16(data[2*i:]))
		}
	case BF16:
		for i := range x {
			x[i] = fromBF16(little.Uint16(data[2*i:]))
		}
	case F32:
		for i := range x {
			x[i] = math.Float32frombits(little.Uint32(data[4*i:]))
		}
	case F64:
		for i := range x {
			x[i] = float32(math.Float64frombits(little.Uint64(data[8*i:])))
		}
	}
}

// Float64s returns the elements of a tensor of type F16, BF16, F32 or F64, all exactly.
//
// Errors: a *FormatError for any other type.
//
// Aliasing: the result is a copy.
func (t *Tensor) Float64s() ([]float64, error) {
	switch t.DType {
	case F16:
		return decodeAll(t, func(b []byte) float64 { return float64(simd.Float16Value(little.Uint16(b))) })
	case BF16:
		return decodeAll(t, func(b []byte) float64 { return float64(fromBF16(little.Uint16(b))) })
	case F32:
		return decodeAll(t, func(b []byte) float64 { return float64(math.Float32frombits(little.Uint32(b))) })
	case F64:
		return decodeAll(t, func(b []byte) float64 { return math.Float64frombits(little.Uint64(b)) })
	}
	return nil, t.wrongType(floatTypes)
}

// Ints returns the elements of a tensor of any integer type.
//
// Errors: a *FormatError for any other type, and for an element that overflows an int.
//
// Aliasing: the result is a copy.
func (t *Tensor) Ints() ([]int, error) {
	switch t.DType {
	case U8:
		return decodeAll(t, func(b []byte) int { return int(b[0]) })
	case I8:
		return decodeAll(t, func(b []byte) int { return int(int8(b[0])) })
	case U16:
		return decodeAll(t, func(b []byte) int { return int(little.Uint16(b)) })
	case I16:
		return decodeAll(t, func(b []byte) int { return int(int16(little.Uint16(b))) })
	case I32:
		return decodeAll(t, func(b []byte) int { return int(int32(little.Uint32(b))) })
	case U32:
		x, err := decodeAll(t, func(b []byte) uint64 { return uint64(little.Uint32(b)) })
		return toInts(t, x, err)
	case U64:
		x, err := decodeAll(t, func(b []byte) uint64 { return little.Uint64(b) })
		return toInts(t, x, err)
	case I64:
		x, err := decodeAll(t, func(b []byte) int64 { return int64(little.Uint64(b)) })
		return toInts(t, x, err)
	}
	return nil, t.wrongType("an integer type")
}

// Bools returns the elements of a tensor of type BOOL or U8.
//
// Errors: a *FormatError for any other type, and for a byte other than 0 and 1.
//
// Aliasing: the result is a copy.
func (t *Tensor) Bools() ([]bool, error) {
	if t.DType != BOOL && t.DType != U8 {
		return nil, t.wrongType("BOOL or U8")
	}
	if err := t.checkData(); err != nil {
		return nil, t.bad(err)
	}
	x := make([]bool, len(t.Data))
	for i, b := range t.Data {
		if b > 1 {
			return nil, t.bad(fmt.Errorf("element %d is the byte %d, want 0 or 1", i, b))
		}
		x[i] = b == 1
	}
	return x, nil
}

func decodeAll[T any](t *Tensor, decode func([]byte) T) ([]T, error) {
	if err := t.checkData(); err != nil {
		return nil, t.bad(err)
	}
	width := t.DType.Bits() / 8
	x := make([]T, len(t.Data)/width)
	for i := range x {
		x[i] = decode(t.Data[i*width:])
	}
	return x, nil
}

func toInts[T int64 | uint64](t *Tensor, x []T, err error) ([]int, error) {
	if err != nil {
		return nil, err
	}
	out := make([]int, len(x))
	for i, v := range x {
		out[i] = int(v)
		// A value above 1<<63 survives the conversion to int and back, but its sign changes.
		if T(out[i]) != v || (v < 0) != (out[i] < 0) {
			return nil, t.bad(fmt.Errorf("element %d is %d, which overflows an int", i, v))
		}
	}
	return out, nil
}

func (t *Tensor) wrongType(want string) error { return t.bad(wrongType(t.DType, want)) }

func wrongType(got DType, want string) error { return fmt.Errorf("dtype is %s, want %s", got, want) }

func (t *Tensor) bad(err error) error {
	return &FormatError{Err: inTensor(t.Name, err)}
}

func fromBF16(h uint16) float32 {
	return math.Float32frombits(uint32(h) << 16)
}
