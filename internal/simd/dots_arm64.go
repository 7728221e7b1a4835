//go:build !purego

package simd

// dotRows is how many rows dots takes, and dotColumns how many columns.
const dotRows = 1

func dotColumns() int { return rowGroups * vectorLanes() }

// dotsKernel is the kernel for a single row.
func dotsKernel(t *tileArgs) { gemvTransposedKernel(t) }
