//go:build !purego

package simd

// hasNEON is true, because every arm64 processor has NEON.
func hasNEON() bool { return true }

// The number of rows of the largest tiles: for panels of several vectors, and for panels of one.
const (
	tileRows   = 6
	narrowRows = 12
)

// rowGroups is the number of vectors of columns that gemvTransposed processes at a time.
const rowGroups = 4

// storesPart reports whether the kernels for stored numbers support panels whose last vector of C
// is not full.
func storesPart() bool { return true }

// dotRows and dotColumns are the numbers of rows and columns that dots processes.
const dotRows = 1

func dotColumns() int { return rowGroups * vectorLanes() }

// dotsKernel is the kernel for a single row.
func dotsKernel(t *tileArgs) { gemvTransposedKernel(t) }
