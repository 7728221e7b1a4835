//go:build (amd64 || arm64) && !purego

package simd

// The functions whose names end in Asm prepare calls of kernels. The generated functions
// of the same name without it call them, or generic Go, and say what they do.

// A round is two operations for each lane of 24 vectors.
func fmaLoopAsm(n int) float64 {
	fmaLoopKernel(n)
	return float64(24 * vectorLanes() * 2)
}
