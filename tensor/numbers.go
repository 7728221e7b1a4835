package tensor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/simd"
)

// Numbers is a number format: of the weights in a Packed, or of the keys and values in a KV cache. Computation is
// in float32, but for the products of NewReduced and of a tape with SetPrecision.
//
// The zero value is not a format. Where a format is optional, the documentation gives the default.
type Numbers uint8

// The number formats. A vector is a row of weights, or a key or a value.
const (
	// Float32 stores elements unchanged, in 4 bytes each.
	Float32 = Numbers(simd.Float32)
	// Float16 rounds each element to 11 bits of precision, in 2 bytes. The error is at most 2⁻¹¹ of the element for
	// magnitudes from 6.2e-5, and at most 2⁻²⁵ below. Magnitudes from 65520 become infinite. Products have no kernel
	// for it and convert one panel at a time, so it is slower than BFloat16.
	Float16 = Numbers(simd.Float16)
	// BFloat16 rounds each element to 8 bits of precision, in 2 bytes. The error is at most 2⁻⁸ of the element for
	// magnitudes from 1.2e-38. Magnitudes above 3.39e38 become infinite.
	BFloat16 = Numbers(simd.BFloat16)
	// Int8 stores integers from −127 to 127 and one scale per vector: the vector's largest magnitude divided by 127.
	// It takes 1 byte per element and 4 bytes for the scale. The error is at most half of the scale, which is 1/254
	// of the vector's largest magnitude, for magnitudes from 1e-36. A vector that is not finite becomes NaN.
	Int8 = Numbers(simd.Int8)
)

var numbersNames = []string{Float32: "float32", Float16: "float16", BFloat16: "bfloat16", Int8: "int8"}

// NumberFormats returns all formats, Float32 first.
func NumberFormats() []Numbers {
	var all []Numbers
	for i := range numbersNames[1:] {
		all = append(all, Float32+Numbers(i))
	}
	return all
}

// wantNumbers lists the formats, for error messages.
func wantNumbers() string { return strings.Join(numbersNames[1:], ", ") }

// known reports whether n is a format.
func (n Numbers) known() bool { return n > 0 && int(n) < len(numbersNames) }

// Check returns an error if n is not a format.
func (n Numbers) Check() error {
	if !n.known() {
		return fmt.Errorf("%v, want %s", n, wantNumbers())
	}
	return nil
}

// String returns the name, in the form that UnmarshalText reads.
func (n Numbers) String() string {
	if !n.known() {
		return fmt.Sprintf("Numbers(%d)", uint8(n))
	}
	return numbersNames[n]
}

// MarshalText returns the name.
func (n Numbers) MarshalText() ([]byte, error) { return []byte(n.String()), n.Check() }

// UnmarshalText sets n to the format with the given name, for flags and configuration files.
func (n *Numbers) UnmarshalText(name []byte) error {
	i := slices.Index(numbersNames, string(name))
	if i < 1 {
		return fmt.Errorf("%.100q, want %s", name, wantNumbers())
	}
	*n = Numbers(i)
	return nil
}

// Bytes returns the size of a stored vector in bytes, including its scale.
func (n Numbers) Bytes(elements int) int { return simd.Format(n).Bytes(elements) }
