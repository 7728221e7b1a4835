//go:build (amd64 || arm64 || (wasm && wasmsimd)) && !purego

package simd

// The functions whose names end in Asm prepare calls of kernels. The generated functions with the
// same name but without Asm call either these or generic Go; see there for what they compute.

// fmaLoopAsm runs n rounds. A round is a multiply-add, which counts as two operations, for each lane of 24 vectors.
func fmaLoopAsm(n int) float64 {
	fmaLoopKernel(n)
	return float64(24 * vectorLanes() * 2)
}
