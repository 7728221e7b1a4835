// Package simd computes on slices of float32: matrix products, exp and its
// relatives, sums, and the loops of layers and of an optimiser. It knows nothing
// of tensors.
//
// Every function stands in this package as plain Go, in the files named
// generic; that Go is the specification. On processors that have them, kernels
// written in assembly for AVX2 with FMA, for AVX-512 and for NEON take over. The
// best that the machine has is found out once, when the program starts, unless the
// environment variable ATTN_SIMD names one: generic, avx2, avx512, amx (tile units) or
// neon. A program ends at its start, with status 2, if it does not have the one that is
// named. The build tag purego leaves the assembly out.
//
// Which kernels there are, and which implementation has them, is a table in the
// directory _asm. The assembly, the declarations of its functions and the Go that
// chooses between implementations are generated from it.
//
// # Same bits
//
// What an element of a result comes to depends on the numbers that go into it
// and on the implementation, not on the company it keeps: not on the length of
// the slice, on its alignment, on the number of threads, nor on which tile of a
// matrix the element falls in. Terms that are zero may be appended to a sum
// without changing a bit of it. Different implementations round differently,
// within the bounds that are stated.
//
// # Arguments
//
// The destination and a source may be the same slice, and must not overlap
// otherwise. Lengths that disagree are a mistake of the caller and panic.
// Except for Multiply, which spreads over all processors, everything runs on
// the calling goroutine.
package simd
