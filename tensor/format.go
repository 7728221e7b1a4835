package tensor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/simd"
)

// Format is a number format: of the weights in a Packed and their products, of the keys and values in a KV cache, or of
// products with parameters and of attention (Tape.SetFormat). What is not a product is computed in float32.
//
// The zero value is not a format. Where a format is optional, the documentation gives the default.
type Format uint8

const (
	// Float32 stores elements unchanged, in 4 bytes each.
	Float32 Format = iota + 1
	// BFloat16 rounds each element to 8 bits of precision, in 2 bytes. The error is at most 2⁻⁸ of the element for
	// magnitudes from 1.2e-38; smaller ones may count as 0 in products. Magnitudes above 3.39e38 become infinite. In a
	// product both factors are rounded, and their products are added in float32; keys and values of a cache are only
	// stored like that.
	BFloat16
	// Int8 stores integers from −127 to 127, in 1 byte each, and scales: the largest magnitude of a vector divided by 127.
	// The error is at most half of the scale for magnitudes from 1e-36. A vector that is not finite becomes NaN. A key or
	// value in a cache is a vector; products with it are in float32. A row of weights has a vector for each group of 128
	// consecutive elements, which becomes NaN from a magnitude of 1e34 on. Inputs of products with weights are rounded to
	// one of 256 numbers, a scale apart, from the least element of a group, or 0, to its largest, or 0.
	Int8
	// BFloat16Weights stores the weights of a Packed as BFloat16 does, but products and their inputs are in float32. So
	// weights from a file in bfloat16 are exact.
	BFloat16Weights
)

// formats is the table of formats.
var formats = [...]struct {
	name    string
	stored  simd.Format
	rounded bool // in products, inputs too
}{
	Float32:         {"float32", simd.Float32, false},
	BFloat16:        {"bfloat16", simd.BFloat16, true},
	Int8:            {"int8", simd.Int8, true},
	BFloat16Weights: {"bfloat16-weights", simd.BFloat16, false},
}

// Formats returns all formats, Float32 first.
func Formats() []Format { return []Format{Float32, BFloat16, Int8, BFloat16Weights} }

// check returns an error if f is not one of the given formats.
func (f Format) check(all []Format) error {
	if slices.Contains(all, f) {
		return nil
	}
	var names []string
	for _, f := range all {
		names = append(names, f.String())
	}
	return fmt.Errorf("%v, want %s", f, strings.Join(names, ", "))
}

// Check returns an error if f is not a format.
func (f Format) Check() error { return f.check(Formats()) }

// CheckStorage returns an error if f is not a format of keys and values in a cache.
func (f Format) CheckStorage() error { return f.check([]Format{Float32, BFloat16, Int8}) }

// String returns the name, in the form that UnmarshalText reads.
func (f Format) String() string {
	if f == 0 || int(f) >= len(formats) {
		return fmt.Sprintf("Format(%d)", uint8(f))
	}
	return formats[f].name
}

// MarshalText returns the name.
func (f Format) MarshalText() ([]byte, error) { return []byte(f.String()), f.Check() }

// UnmarshalText sets f to the format with the given name, for flags and configuration files.
func (f *Format) UnmarshalText(name []byte) error {
	for _, g := range Formats() {
		if g.String() == string(name) {
			*f = g
			return nil
		}
	}
	_, all, _ := strings.Cut(Format(0).Check().Error(), ", ")
	return fmt.Errorf("%.100q, %s", name, all)
}

// Bytes returns the size of a vector in a cache in bytes, including its scale.
func (f Format) Bytes(elements int) int { return formats[f].stored.Bytes(elements) }
