//go:build !purego

package simd

// hasNEON is true, for every arm64 has it.
func hasNEON() bool { return true }

// rowGroups is how many vectors of columns gemvTransposed takes at a time.
const rowGroups = 4

// storesPart reports whether the kernels for stored numbers take panels of which the last
// vector of C is not full.
func storesPart() bool { return true }

// gemmKernel calls a kernel: that for panels of so many vectors, or one of the others.
func gemmKernel(t *tileArgs, kernel int) {
	switch kernel {
	case kernelBFloat16:
		gemmBFloat16NEON(t)
		return
	case kernelInt8:
		gemmInt8NEON(t)
		return
	}
	if t.last < 4 {
		switch kernel {
		case 1:
			gemm1maskedNEON(t)
		case 2:
			gemm2maskedNEON(t)
		case 3:
			gemm3maskedNEON(t)
		default:
			gemm4maskedNEON(t)
		}
		return
	}
	switch kernel {
	case 1:
		gemm1NEON(t)
	case 2:
		gemm2NEON(t)
	case 3:
		gemm3NEON(t)
	default:
		gemm4NEON(t)
	}
}

// additiveTileKernel calls the kernel for so many vectors of keys.
func additiveTileKernel(t *scoreArgs, vectors int) {
	if vectors == 1 {
		additiveTile1NEON(t)
	} else {
		additiveTile2NEON(t)
	}
}

// distanceKernel calls the kernel for so many vectors of columns.
func distanceKernel(t *distanceArgs, vectors int) {
	switch vectors {
	case 1:
		distance1NEON(t)
	case 2:
		distance2NEON(t)
	case 3:
		distance3NEON(t)
	default:
		distance4NEON(t)
	}
}
