// Package simd computes on slices of float32: matrix products, exp and related functions, sums, and
// the loops of layers and of an optimiser. It does not use tensors.
//
// Every function has a version in plain Go, in the files named generic. That version is the
// specification. Kernels written in assembly for AVX2 with FMA, for AVX-512 and for NEON replace it
// on processors that support them. The best implementation for the machine is chosen when the
// program starts. The environment variable ATTN_SIMD overrides the choice: generic, avx2, avx512,
// neon or wasm. If the machine does not support the named implementation, the
// program exits at its start with status 2. The build tag purego leaves the assembly out.
//
// A program for WebAssembly has vectors if it is built with the tag wasmsimd and its host supplies
// the kernels in wasm/kernels.wasm with wasm/kernels.js, which works in pages, workers and Node. In
// an engine without vectors it runs generic Go.
//
// A table in the directory _asm lists the kernels and the implementations of each. The assembly,
// the declarations of its functions and the Go code that chooses between implementations are
// generated from that table.
//
// # Same bits
//
// An element of a result depends only on the numbers it is computed from and on the implementation.
// It does not depend on the length of the slice, on its alignment, on the number of threads, or on
// the tile of a matrix that contains it. Appending zero terms to a sum does not change a bit of it.
// Different implementations round differently, within the stated bounds.
//
// # Arguments
//
// The destination and a source may be the same slice, and must not overlap otherwise. Lengths that
// disagree are a mistake of the caller and panic. Except for Multiply, which uses all processors,
// every function runs on the calling goroutine.
package simd
