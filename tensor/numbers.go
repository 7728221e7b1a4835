package tensor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/simd"
)

// Numbers is a number format: that of weights in a Packed, and of keys and values in a KV cache. Computation is in
// float32 whatever the format is.
//
// The zero value is no format. Where one may be left out, the documentation says what is used.
type Numbers uint8

// The number formats. A vector is a row of weights, or a key or a value.
const (
	// Float32 keeps elements as they are, in 4 bytes each.
	Float32 = Numbers(simd.Float32)
	// Float16 rounds each element to 11 bits of precision, in 2 bytes: the error is at most 2⁻¹¹ of the element, from
	// 6.2e-5 on, and at most 2⁻²⁵ below. 65520 and more becomes infinite. Products have no kernel for it and convert
	// a panel at a time, so it is slower than BFloat16.
	Float16 = Numbers(simd.Float16)
	// BFloat16 rounds each element to 8 bits of precision, in 2 bytes: the error is at most 2⁻⁸ of the element, from
	// 1.2e-38 on. More than 3.39e38 becomes infinite.
	BFloat16 = Numbers(simd.BFloat16)
	// Int8 stores integers from −127 to 127 times a scale of the vector, the largest of its elements divided by 127,
	// in 1 byte an element and 4 for the scale. The error is at most half of the scale: 1/254 of the vector's
	// largest element, from 1e-36 on. A vector that is not finite becomes NaN.
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

// wantNumbers lists the formats, for errors.
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

// String returns the name, as UnmarshalText reads it.
func (n Numbers) String() string {
	if !n.known() {
		return fmt.Sprintf("Numbers(%d)", uint8(n))
	}
	return numbersNames[n]
}

// MarshalText returns the name.
func (n Numbers) MarshalText() ([]byte, error) { return []byte(n.String()), n.Check() }

// UnmarshalText sets n to the format of a name, for flags and configurations.
func (n *Numbers) UnmarshalText(name []byte) error {
	i := slices.Index(numbersNames, string(name))
	if i < 1 {
		return fmt.Errorf("%.100q, want %s", name, wantNumbers())
	}
	*n = Numbers(i)
	return nil
}

// Bytes returns how many bytes a vector takes, its scale included.
func (n Numbers) Bytes(elements int) int { return simd.Format(n).Bytes(elements) }
