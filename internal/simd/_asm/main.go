// Command asm writes the assembly of package simd:
//
//	go run . -out ../simd_amd64.s
//
// Every kernel is written once, in terms of vectors whose length is that of an
// instruction set, and comes out once for AVX2 with FMA and once for AVX-512.
// What the kernels compute is said by the Go functions of the same name that
// end in Generic; the declarations are in dispatch_amd64.go.
package main

import (
	. "github.com/mmcloughlin/avo/build"
)

func main() {
	ConstraintExpr("!purego")
	for _, s := range []isa{avx512, avx2} {
		gemm(s)
		transpose(s)
		gemvTransposed(s)
		linear(s)
		reductions(s)
		exponentials(s)
		normal(s)
		additive(s)
		strips(s)
		additiveTiles(s)
		adam(s)
		dropouts(s)
		layers(s)
		norms(s)
		layerNorm(s)
		layerNormGrad(s)
		columns(s)
	}
	for _, s := range []isa{avx512, avx2} { // for measuring only
		fmaLoop(s)
	}
	for _, s := range []isa{avx512, avx2} {
		storage(s)
	}
	Generate()
}
