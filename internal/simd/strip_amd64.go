//go:build amd64 && !purego

package simd

// The functions below get at least one row and one element.

func rowMax(dst, x []float32, stride, n int) {
	switch active {
	case avx512:
		rowMaxAVX512(&dst[0], &x[0], 4*stride, len(dst), n)
	case avx2:
		rowMaxAVX2(&dst[0], &x[0], 4*stride, len(dst), n)
	default:
		rowMaxGeneric(dst, x, stride, n)
	}
}

func powerRows(x []float32, stride, n int, c float32, shift, sum []float32) {
	switch active {
	case avx512:
		powerRowsAVX512(&x[0], 4*stride, len(sum), n, c, &shift[0], &sum[0])
	case avx2:
		powerRowsAVX2(&x[0], 4*stride, len(sum), n, c, &shift[0], &sum[0])
	default:
		powerRowsGeneric(x, stride, n, c, shift, sum)
	}
}

func weightRows(x []float32, stride, n int, c float32, shift, factor []float32) {
	switch active {
	case avx512:
		weightRowsAVX512(&x[0], 4*stride, len(factor), n, c, &shift[0], &factor[0])
	case avx2:
		weightRowsAVX2(&x[0], 4*stride, len(factor), n, c, &shift[0], &factor[0])
	default:
		weightRowsGeneric(x, stride, n, c, shift, factor)
	}
}

func gradRows(dw, w []float32, stride, n int, mean []float32, factor float32) {
	switch active {
	case avx512:
		gradRowsAVX512(&dw[0], &w[0], 4*stride, len(mean), n, &mean[0], factor)
	case avx2:
		gradRowsAVX2(&dw[0], &w[0], 4*stride, len(mean), n, &mean[0], factor)
	default:
		gradRowsGeneric(dw, w, stride, n, mean, factor)
	}
}

func scaleRows(dst []float32, dstStride int, src []float32, srcStride, n int, factor []float32) {
	switch active {
	case avx512:
		scaleRowsAVX512(&dst[0], 4*dstStride, &src[0], 4*srcStride, len(factor), n, &factor[0])
	case avx2:
		scaleRowsAVX2(&dst[0], 4*dstStride, &src[0], 4*srcStride, len(factor), n, &factor[0])
	default:
		scaleRowsGeneric(dst, dstStride, src, srcStride, n, factor)
	}
}

// hide gives the kernels whole vectors and does the rest itself.
func hide(x []float32, seen []bool) {
	for len(x) >= 16 && active != generic {
		n := min(len(x), piece) &^ 15
		if active == avx512 {
			hideAVX512(&x[0], &seen[0], n)
		} else {
			hideAVX2(&x[0], &seen[0], n)
		}
		x, seen = x[n:], seen[n:]
	}
	hideGeneric(x, seen)
}
