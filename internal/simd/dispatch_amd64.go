//go:build amd64 && !purego

package simd

import "golang.org/x/sys/cpu"

func detect() []implementation {
	impls := []implementation{generic}
	if x := cpu.X86; x.HasAVX2 && x.HasFMA && x.HasBMI2 {
		impls = append([]implementation{avx2}, impls...)
		if x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL {
			impls = append([]implementation{avx512}, impls...)
		}
	}
	return impls
}

// The kernels below are in simd_amd64.s, which the generator in _asm writes.
// Go does not interrupt assembly, not even to collect garbage, so no call may
// get more work than some tens of microseconds' worth.

//go:noescape
func gemm1AVX512(t *tileArgs)

//go:noescape
func gemm2AVX512(t *tileArgs)

//go:noescape
func gemm3AVX512(t *tileArgs)

//go:noescape
func gemm4AVX512(t *tileArgs)

//go:noescape
func gemm1AVX2(t *tileArgs)

//go:noescape
func gemm1maskedAVX2(t *tileArgs)

//go:noescape
func gemm2AVX2(t *tileArgs)

//go:noescape
func gemm2maskedAVX2(t *tileArgs)

//go:noescape
func transposeAVX512(dst *float32, dstRow int, src *float32, srcRow, rows, depth int)

//go:noescape
func transposeAVX2(dst *float32, dstRow int, src *float32, srcRow, rows, depth int)
