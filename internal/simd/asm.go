//go:build (amd64 || arm64) && !purego

package simd

// What the drivers and the generated calls of kernels have in common.

// piece is how many elements a kernel gets at a time. Go does not interrupt
// assembly, not even to collect garbage, so no call may run for long; this many
// take some ten microseconds.
const piece = 1 << 14

// vectorLanes returns how many floats a vector of the kernels has.
func vectorLanes() int { return shapes[active].lanes }

// fmaLoop runs n rounds of multiply-adds, n at least 1, and returns the
// floating-point operations of a round: two for each lane of 24 vectors.
func fmaLoop(n int) float64 {
	if fmaLoopIsGeneric() {
		return fmaLoopGeneric(n)
	}
	fmaLoopKernel(n)
	return float64(24 * vectorLanes() * 2)
}
