//go:build !purego

package simd

// hasNEON is true, because every arm64 processor has NEON.
func hasNEON() bool { return true }

// storesPart reports whether the kernels for stored numbers support panels whose last vector of C
// is not full.
func storesPart() bool { return true }

// dotRows and dotColumns are the numbers of rows and columns that dots processes.
const dotRows = 1

func dotColumns() int { return rowGroups * vectorLanes() }

// dotsKernel is the kernel for a single row.
func dotsKernel(t *tileArgs) { gemvTransposedKernel(t) }
