package safetensors

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/simd"
)

// FromFloat32s returns a tensor of type F32.
//
// Panics: if shape does not have len(x) elements.
//
// Aliasing: shape and x are copied.
func FromFloat32s(name string, shape []int, x []float32) Tensor {
	return encodeAll("FromFloat32s", name, F32, shape, x)
}

// FromFloat64s returns a tensor of type F64.
//
// Panics: if shape does not have len(x) elements.
//
// Aliasing: shape and x are copied.
func FromFloat64s(name string, shape []int, x []float64) Tensor {
	return encodeAll("FromFloat64s", name, F64, shape, x)
}

// FromInts returns a tensor of type I64.
//
// Panics: if shape does not have len(x) elements.
//
// Aliasing: shape and x are copied.
func FromInts(name string, shape []int, x []int) Tensor {
	all := make([]int64, len(x))
	for i, v := range x {
		all[i] = int64(v)
	}
	return encodeAll("FromInts", name, I64, shape, all)
}

// FromBools returns a tensor of type BOOL.
//
// Panics: if shape does not have len(x) elements.
//
// Aliasing: shape and x are copied.
func FromBools(name string, shape []int, x []bool) Tensor {
	return encodeAll("FromBools", name, BOOL, shape, x)
}

func encodeAll[T float32 | float64 | int64 | bool](op, name string, d DType, shape []int, x []T) Tensor {
	size, err := byteSize(d, shape)
	if err != nil {
		panic(fmt.Sprintf("safetensors: %s: tensor %s: %v", op, quote.Text(name), err))
	}
	if want := size / (d.Bits() / 8); len(x) != want {
		panic(fmt.Sprintf("safetensors: %s: tensor %s: got %d values, want %d for shape %v",
			op, quote.Text(name), len(x), want, shape))
	}
	data, _ := binary.Append(make([]byte, 0, size), little, x) // these types cannot fail
	return Tensor{Name: name, DType: d, Shape: append([]int{}, shape...), Data: data}
}

// AppendFloat32s appends numbers to b as elements of type d: F32 or F64, which are exact, or F16 or BF16, which round
// to nearest, ties to even. NaN stays NaN; bits of its payload may be lost.
//
// Errors: any other type; a finite number that would become infinite.
func AppendFloat32s(b []byte, d DType, x []float32) ([]byte, error) {
	switch d {
	case F32:
		return binary.Append(b, little, x)
	case F64:
		for _, v := range x {
			b = little.AppendUint64(b, math.Float64bits(float64(v)))
		}
	case F16, BF16:
		narrow, infinite := simd.NearestFloat16, uint16(0x7c00)
		if d == BF16 {
			narrow, infinite = simd.NearestBFloat16, 0x7f80
		}
		for i, v := range x {
			h := narrow(v)
			if h&0x7fff == infinite && !math.IsInf(float64(v), 0) {
				return nil, fmt.Errorf("safetensors: %w", fmt.Errorf("element %d is %v, which overflows %s", i, v, d))
			}
			b = little.AppendUint16(b, h)
		}
	default:
		return nil, fmt.Errorf("safetensors: %w", wrongType(d, floatTypes))
	}
	return b, nil
}
