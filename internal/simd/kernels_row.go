//go:build (arm64 || (wasm && wasmsimd)) && !purego

package simd

// dotRows and dotColumns are the numbers of rows and columns that dots processes.
const dotRows = 1

func dotColumns() int { return rowGroups * vectorLanes() }

// dotsKernel is the kernel for a single row.
func dotsKernel(t *tileArgs) { gemvTransposedKernel(t) }
