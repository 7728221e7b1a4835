//go:build !purego

package simd

import (
	"math"
	"unsafe"
)

// The drivers of the kernels that transpose bfloat16.

// packStep is the largest number of rows that packBFloat16 writes at a time. They stay in a
// first-level cache until all of their columns are written.
const packStep = 128

func packBFloat16Asm(dst, x []uint16, stride, depth, cols, width int) {
	packPairs(dst, x, stride, depth, cols, width, transposeBFloat16Kernel, func(v uint16) uint16 { return v })
}

func packWidenAsm(dst []float32, x []uint16, stride, depth, cols, width int) {
	packPairs(dst, x, stride, depth, cols, width, transposeWidenKernel, func(v uint16) float32 {
		return math.Float32frombits(uint32(v) << 16)
	})
}

// packPairs calls a kernel that transposes pairs of rows. The last of an odd number of rows is
// converted by single.
func packPairs[T any](dst []T, x []uint16, stride, depth, cols, width int,
	kernel func(dst *T, dstRow int, src *uint16, srcRow, cols, pairs int), single func(uint16) T) {
	lanes, row := vectorLanes(), width*int(unsafe.Sizeof(dst[0]))
	for k := 0; k+1 < depth; k += packStep {
		for j := 0; j < cols; j += lanes {
			kernel(&dst[k*width+j], row, &x[j*stride+k], 2*stride, min(lanes, cols-j), min(packStep, depth-k)/2)
		}
	}
	if k := depth - 1; depth%2 != 0 {
		for j := range cols {
			dst[k*width+j] = single(x[j*stride+k])
		}
	}
}
