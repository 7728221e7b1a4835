package attn

import "github.com/attn-go/attn/internal/flash"

// Storage is in which numbers a Cache holds keys and values: Float32{}, BFloat16{} or
// Int8{}.
type Storage interface {
	// Bytes returns how many bytes a vector of so many elements takes.
	Bytes(elements int) int
	storage() flash.Storage
}

// Float32 holds keys and values as they are, in 4 bytes an element.
type Float32 struct{}

// BFloat16 holds each element rounded to 8 bits of precision, in 2 bytes: the error is at
// most 2⁻⁸ of the element, from 1.2e-38 on. More than 3.39e38 becomes infinite.
type BFloat16 struct{}

// Int8 holds the elements of a vector as integers from −127 to 127 times a scale, the
// largest of them divided by 127, in 1 byte an element and 4 for the scale. The error is
// at most half of the scale: 1/254 of the vector's largest element, from 1e-36 on. A
// vector that is not finite becomes NaN.
type Int8 struct{}

// Bytes returns 4 for each element.
func (Float32) Bytes(elements int) int { return flash.Float32{}.Bytes(elements) }

// Bytes returns 2 for each element.
func (BFloat16) Bytes(elements int) int { return flash.BFloat16{}.Bytes(elements) }

// Bytes returns 1 for each element and 4 for the scale.
func (Int8) Bytes(elements int) int { return flash.Int8{}.Bytes(elements) }

func (Float32) storage() flash.Storage  { return flash.Float32{} }
func (BFloat16) storage() flash.Storage { return flash.BFloat16{} }
func (Int8) storage() flash.Storage     { return flash.Int8{} }
