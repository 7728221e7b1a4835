//go:build !purego

package simd

import "golang.org/x/sys/cpu"

func hasAVX2() bool { return cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasBMI2 }

func hasAVX512() bool {
	x := &cpu.X86
	return hasAVX2() && x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL
}

// hasAMX reports whether the processor multiplies tiles of bfloat16 and the system lets
// programs ask for it, which permitTiles does.
func hasAMX() bool {
	return hasAVX512() && cpu.X86.HasAMXTile && cpu.X86.HasAMXBF16 && offersTiles()
}

// rowGroups is how many vectors of columns gemvTransposed takes at a time.
const rowGroups = 2

// storesPart reports whether the kernels for stored numbers take panels of which the last
// vector of C is not full.
func storesPart() bool { return active != avx2 }

// gemmKernel calls a kernel: that for panels of so many vectors, or one of the others.
func gemmKernel(t *tileArgs, kernel int) {
	if active != avx2 {
		switch kernel {
		case kernelBFloat16:
			gemmBFloat16AVX512(t)
		case kernelInt8:
			gemmInt8AVX512(t)
		case kernelFloat32:
			gemmFloat32AVX512(t)
		case 1:
			gemm1AVX512(t)
		case 2:
			gemm2AVX512(t)
		case 3:
			gemm3AVX512(t)
		default:
			gemm4AVX512(t)
		}
		return
	}
	switch full := t.last == 8; {
	case kernel == kernelBFloat16:
		gemmBFloat16AVX2(t)
	case kernel == kernelInt8:
		gemmInt8AVX2(t)
	case kernel == kernelFloat32:
		gemmFloat32AVX2(t)
	case kernel == 1 && full:
		gemm1AVX2(t)
	case kernel == 1:
		gemm1maskedAVX2(t)
	case full:
		gemm2AVX2(t)
	default:
		gemm2maskedAVX2(t)
	}
}

// additiveTileKernel calls the kernel for so many vectors of keys.
func additiveTileKernel(t *scoreArgs, vectors int) {
	switch {
	case active == avx2:
		additiveTile1AVX2(t)
	case vectors == 1:
		additiveTile1AVX512(t)
	default:
		additiveTile2AVX512(t)
	}
}

// distanceKernel calls the kernel for so many vectors of columns.
func distanceKernel(t *distanceArgs, vectors int) {
	switch {
	case active == avx2 && vectors == 1:
		distance1AVX2(t)
	case active == avx2:
		distance2AVX2(t)
	case vectors == 1:
		distance1AVX512(t)
	case vectors == 2:
		distance2AVX512(t)
	case vectors == 3:
		distance3AVX512(t)
	default:
		distance4AVX512(t)
	}
}
