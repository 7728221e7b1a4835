package safetensors

import (
	"encoding/binary"
	"fmt"
	"math"
)

var little = binary.LittleEndian

// Float32s returns the elements of a tensor of type F16, BF16, F32 or F64. Those
// of F64 are rounded to the nearest float32, the others are exact.
//
// Errors: a *FormatError for any other type.
//
// Aliasing: the result is a copy.
func (t *Tensor) Float32s() ([]float32, error) {
	switch t.DType {
	case F16:
		return decodeAll(t, func(b []byte) float32 { return fromF16(little.Uint16(b)) })
	case BF16:
		return decodeAll(t, func(b []byte) float32 { return fromBF16(little.Uint16(b)) })
	case F32:
		// The one type that comes by the gigabyte has a loop without a call.
		if err := t.checkData(); err != nil {
			return nil, t.bad(err)
		}
		x := make([]float32, len(t.Data)/4)
		for i := range x {
			x[i] = math.Float32frombits(little.Uint32(t.Data[4*i:]))
		}
		return x, nil
	case F64:
		return decodeAll(t, func(b []byte) float32 { return float32(math.Float64frombits(little.Uint64(b))) })
	}
	return nil, t.wrongType("F16, BF16, F32 or F64")
}

// Float64s returns the elements of a tensor of type F16, BF16, F32 or F64, all
// of them exact.
//
// Errors: a *FormatError for any other type.
//
// Aliasing: the result is a copy.
func (t *Tensor) Float64s() ([]float64, error) {
	switch t.DType {
	case F16:
		return decodeAll(t, func(b []byte) float64 { return float64(fromF16(little.Uint16(b))) })
	case BF16:
		return decodeAll(t, func(b []byte) float64 { return float64(fromBF16(little.Uint16(b))) })
	case F32:
		return decodeAll(t, func(b []byte) float64 { return float64(math.Float32frombits(little.Uint32(b))) })
	case F64:
		return decodeAll(t, func(b []byte) float64 { return math.Float64frombits(little.Uint64(b)) })
	}
	return nil, t.wrongType("F16, BF16, F32 or F64")
}

// Ints returns the elements of a tensor of any integer type.
//
// Errors: a *FormatError for any other type, and for an element that does not
// fit an int.
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

// FromFloat32s returns a tensor of type F32.
//
// Panics: if shape does not have len(x) elements.
//
// Aliasing: shape and x are copied.
func FromFloat32s(name string, shape []int, x []float32) Tensor {
	return encodeAll("FromFloat32s", name, F32, shape, x, func(b []byte, v float32) []byte {
		return little.AppendUint32(b, math.Float32bits(v))
	})
}

// FromFloat64s returns a tensor of type F64.
//
// Panics: if shape does not have len(x) elements.
//
// Aliasing: shape and x are copied.
func FromFloat64s(name string, shape []int, x []float64) Tensor {
	return encodeAll("FromFloat64s", name, F64, shape, x, func(b []byte, v float64) []byte {
		return little.AppendUint64(b, math.Float64bits(v))
	})
}

// FromInts returns a tensor of type I64.
//
// Panics: if shape does not have len(x) elements.
//
// Aliasing: shape and x are copied.
func FromInts(name string, shape []int, x []int) Tensor {
	return encodeAll("FromInts", name, I64, shape, x, func(b []byte, v int) []byte {
		return little.AppendUint64(b, uint64(v))
	})
}

// FromBools returns a tensor of type BOOL.
//
// Panics: if shape does not have len(x) elements.
//
// Aliasing: shape and x are copied.
func FromBools(name string, shape []int, x []bool) Tensor {
	return encodeAll("FromBools", name, BOOL, shape, x, func(b []byte, v bool) []byte {
		if v {
			return append(b, 1)
		}
		return append(b, 0)
	})
}

func decodeAll[T any](t *Tensor, decode func([]byte) T) ([]T, error) {
	if err := t.checkData(); err != nil {
		return nil, t.bad(err)
	}
	width := t.DType.bits() / 8
	x := make([]T, len(t.Data)/width)
	for i := range x {
		x[i] = decode(t.Data[i*width:])
	}
	return x, nil
}

func encodeAll[T any](op, name string, d DType, shape []int, x []T, encode func([]byte, T) []byte) Tensor {
	size, err := byteSize(d, shape)
	if err != nil {
		panic(fmt.Sprintf("safetensors: %s: tensor %s: %v", op, quote(name), err))
	}
	if want := size / (d.bits() / 8); len(x) != want {
		panic(fmt.Sprintf("safetensors: %s: tensor %s: got %d values, want %d for shape %v", op, quote(name), len(x), want, shape))
	}
	data := make([]byte, 0, size)
	for _, v := range x {
		data = encode(data, v)
	}
	return Tensor{Name: name, DType: d, Shape: append([]int{}, shape...), Data: data}
}

func toInts[T int64 | uint64](t *Tensor, x []T, err error) ([]int, error) {
	if err != nil {
		return nil, err
	}
	out := make([]int, len(x))
	for i, v := range x {
		out[i] = int(v)
		// A value above 1<<63 survives the way to int and back: only its sign
		// tells.
		if T(out[i]) != v || (v < 0) != (out[i] < 0) {
			return nil, t.bad(fmt.Errorf("element %d is %d, which overflows an int", i, v))
		}
	}
	return out, nil
}

func (t *Tensor) wrongType(want string) error {
	return t.bad(fmt.Errorf("dtype is %s, want %s", t.DType, want))
}

func (t *Tensor) bad(err error) error {
	return &FormatError{Err: inTensor(t.Name, err)}
}

// fromF16 returns the value of a half: (-1)^s * 1.m * 2^(e-15), and for e = 0
// (-1)^s * 0.m * 2^-14.
func fromF16(h uint16) float32 {
	sign := uint32(h>>15) << 31
	exponent, mantissa := uint32(h>>10&0x1f), uint32(h&0x3ff)
	switch exponent {
	case 0: // a product with a power of two: exact
		return math.Float32frombits(sign | math.Float32bits(float32(mantissa)*0x1p-24))
	case 31: // infinity or NaN
		return math.Float32frombits(sign | 0xff<<23 | mantissa<<13)
	}
	return math.Float32frombits(sign | (exponent+127-15)<<23 | mantissa<<13)
}

func fromBF16(h uint16) float32 {
	return math.Float32frombits(uint32(h) << 16)
}
