//go:build !purego

package simd

// hasNEON is true, for every arm64 has it.
func hasNEON() bool { return true }

// rowGroups is how many vectors of columns gemvTransposed takes at a time.
const rowGroups = 4

// storesPart reports whether the kernels for stored numbers take panels of which the last
// vector of C is not full.
func storesPart() bool { return true }

// dotRows is how many rows dots takes, and dotColumns how many columns.
const dotRows = 1

func dotColumns() int { return rowGroups * vectorLanes() }

// dotsKernel is the kernel for a single row.
func dotsKernel(t *tileArgs) { gemvTransposedKernel(t) }
