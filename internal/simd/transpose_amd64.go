//go:build !purego

package simd

import "math"

// The drivers of the kernels that transpose bfloat16.

// packStep is how many rows packBFloat16 writes at a time, at most: so many that they stay in
// a first-level cache until all of their columns are there.
const packStep = 128

func packBFloat16(dst, x []uint16, stride, depth, cols, width int) {
	if packBFloat16IsGeneric() {
		packBFloat16Generic(dst, x, stride, depth, cols, width)
		return
	}
	lanes := vectorLanes()
	for k := 0; k+1 < depth; k += packStep {
		for j := 0; j < cols; j += lanes {
			transposeBFloat16Kernel(&dst[k*width+j], 2*width, &x[j*stride+k], 2*stride, min(lanes, cols-j), min(packStep, depth-k)/2)
		}
	}
	if k := depth - 1; depth%2 != 0 {
		for j := range cols {
			dst[k*width+j] = x[j*stride+k]
		}
	}
}

func packWiden(dst []float32, x []uint16, stride, depth, cols, width int) {
	if packWidenIsGeneric() {
		packWidenGeneric(dst, x, stride, depth, cols, width)
		return
	}
	lanes := vectorLanes()
	for k := 0; k+1 < depth; k += packStep {
		for j := 0; j < cols; j += lanes {
			transposeWidenKernel(&dst[k*width+j], 4*width, &x[j*stride+k], 2*stride, min(lanes, cols-j), min(packStep, depth-k)/2)
		}
	}
	if k := depth - 1; depth%2 != 0 {
		for j := range cols {
			dst[k*width+j] = math.Float32frombits(uint32(x[j*stride+k]) << 16)
		}
	}
}
