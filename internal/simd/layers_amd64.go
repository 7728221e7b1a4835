//go:build amd64 && !purego

package simd

// The loops of layers, dispatched as those in dispatch_amd64.go.

func dropout(dst, x []float32, key uint64, threshold uint32, keep float32) {
	if active == generic {
		dropoutGeneric(dst, x, key, threshold, keep)
		return
	}
	for len(x) > 0 {
		n := min(len(x), piece)
		if active == avx512 {
			dropoutAVX512(&dst[0], &x[0], n, key, threshold, keep)
		} else {
			dropoutAVX2(&dst[0], &x[0], n, key, threshold, keep)
		}
		dst, x, key = dst[n:], x[n:], key+uint64(n)*golden
	}
}

func dropoutAdd(dst, x, y []float32, key uint64, threshold uint32, keep float32) {
	if active == generic {
		dropoutAddGeneric(dst, x, y, key, threshold, keep)
		return
	}
	for len(x) > 0 {
		n := min(len(x), piece)
		if active == avx512 {
			dropoutAddAVX512(&dst[0], &x[0], &y[0], n, key, threshold, keep)
		} else {
			dropoutAddAVX2(&dst[0], &x[0], &y[0], n, key, threshold, keep)
		}
		dst, x, y, key = dst[n:], x[n:], y[n:], key+uint64(n)*golden
	}
}

func relu(dst, x []float32) {
	if active == generic {
		reluGeneric(dst, x)
		return
	}
	for len(x) > 0 {
		n := min(len(x), piece)
		if active == avx512 {
			reluAVX512(&dst[0], &x[0], n)
		} else {
			reluAVX2(&dst[0], &x[0], n)
		}
		dst, x = dst[n:], x[n:]
	}
}

func reluGrad(dx, dy, x []float32) {
	if active == generic {
		reluGradGeneric(dx, dy, x)
		return
	}
	for len(x) > 0 {
		n := min(len(x), piece)
		if active == avx512 {
			reluGradAVX512(&dx[0], &dy[0], &x[0], n)
		} else {
			reluGradAVX2(&dx[0], &dy[0], &x[0], n)
		}
		dx, dy, x = dx[n:], dy[n:], x[n:]
	}
}

func softmaxGrad(dx, dy, y []float32, mean float32) {
	if active == generic {
		softmaxGradGeneric(dx, dy, y, mean)
		return
	}
	for len(y) > 0 {
		n := min(len(y), piece)
		if active == avx512 {
			softmaxGradAVX512(&dx[0], &dy[0], &y[0], n, mean)
		} else {
			softmaxGradAVX2(&dx[0], &dy[0], &y[0], n, mean)
		}
		dx, dy, y = dx[n:], dy[n:], y[n:]
	}
}

func norm(dst, x, gain, shift []float32, mean, inv float32) {
	if active == generic {
		normGeneric(dst, x, gain, shift, mean, inv)
		return
	}
	for len(x) > 0 {
		n := min(len(x), piece)
		if active == avx512 {
			normAVX512(&dst[0], &x[0], &gain[0], &shift[0], n, mean, inv)
		} else {
			normAVX2(&dst[0], &x[0], &gain[0], &shift[0], n, mean, inv)
		}
		dst, x, gain, shift = dst[n:], x[n:], gain[n:], shift[n:]
	}
}

func normGrad(dx, dy, x, gain []float32, mean, inv, flat, along float32) {
	if active == generic {
		normGradGeneric(dx, dy, x, gain, mean, inv, flat, along)
		return
	}
	for len(x) > 0 {
		n := min(len(x), piece)
		if active == avx512 {
			normGradAVX512(&dx[0], &dy[0], &x[0], &gain[0], n, mean, inv, flat, along)
		} else {
			normGradAVX2(&dx[0], &dy[0], &x[0], &gain[0], n, mean, inv, flat, along)
		}
		dx, dy, x, gain = dx[n:], dy[n:], x[n:], gain[n:]
	}
}

// The functions below get at least one element, and no more than are worth a
// piece.

func softmaxMean(dy, y []float32) float32 {
	switch active {
	case avx512:
		return softmaxMeanAVX512(&dy[0], &y[0], len(y))
	case avx2:
		return softmaxMeanAVX2(&dy[0], &y[0], len(y))
	}
	return softmaxMeanGeneric(dy, y)
}

func sumSquaresAbout(x []float32, mean float32) float32 {
	switch active {
	case avx512:
		return sumSquaresAboutAVX512(&x[0], len(x), mean)
	case avx2:
		return sumSquaresAboutAVX2(&x[0], len(x), mean)
	}
	return sumSquaresAboutGeneric(x, mean)
}

func normSums(dy, x, gain []float32, mean, inv float32) (flat, along float32) {
	switch active {
	case avx512:
		return normSumsAVX512(&dy[0], &x[0], &gain[0], len(x), mean, inv)
	case avx2:
		return normSumsAVX2(&dy[0], &x[0], &gain[0], len(x), mean, inv)
	}
	return normSumsGeneric(dy, x, gain, mean, inv)
}

func normGains(dgain, dshift, dy, x, mean, inv []float32, stride int) {
	switch active {
	case avx512:
		normGainsAVX512(&dgain[0], &dshift[0], &dy[0], &x[0], len(dgain), &mean[0], &inv[0], len(mean), stride)
	case avx2:
		normGainsAVX2(&dgain[0], &dshift[0], &dy[0], &x[0], len(dgain), &mean[0], &inv[0], len(mean), stride)
	default:
		normGainsGeneric(dgain, dshift, dy, x, mean, inv, stride)
	}
}

func sumRows(dst, x []float32, rows, stride int) {
	switch active {
	case avx512:
		sumRowsAVX512(&dst[0], &x[0], len(dst), rows, stride)
	case avx2:
		sumRowsAVX2(&dst[0], &x[0], len(dst), rows, stride)
	default:
		sumRowsGeneric(dst, x, rows, stride)
	}
}

func copyRows(dst []float32, dstStride int, x []float32, stride, rows, cols int) {
	switch active {
	case avx512:
		copyRowsAVX512(&dst[0], dstStride, &x[0], cols, rows, stride)
	case avx2:
		copyRowsAVX2(&dst[0], dstStride, &x[0], cols, rows, stride)
	default:
		copyRowsGeneric(dst, dstStride, x, stride, rows, cols)
	}
}

func addRows(dst []float32, dstStride int, x []float32, stride, rows, cols int) {
	switch active {
	case avx512:
		addRowsAVX512(&dst[0], dstStride, &x[0], cols, rows, stride)
	case avx2:
		addRowsAVX2(&dst[0], dstStride, &x[0], cols, rows, stride)
	default:
		addRowsGeneric(dst, dstStride, x, stride, rows, cols)
	}
}

// layerNorm and its gradient leave rows that are too long for a kernel to those
// for vectors.

func layerNorm(dst, x, gain, shift, mean, inv []float32, eps float32) {
	d, rows := len(gain), len(mean)
	switch {
	case active == avx512 && d <= mostBlock:
		layerNormAVX512(&dst[0], &x[0], &gain[0], &shift[0], &mean[0], &inv[0], d, rows, float32(d), eps)
	case active == avx2 && d <= mostBlock:
		layerNormAVX2(&dst[0], &x[0], &gain[0], &shift[0], &mean[0], &inv[0], d, rows, float32(d), eps)
	default:
		layerNormGeneric(dst, x, gain, shift, mean, inv, eps)
	}
}

func layerNormGrad(dx, dy, x, gain, mean, inv []float32) {
	d, rows := len(gain), len(mean)
	switch {
	case active == avx512 && d <= mostBlock:
		layerNormGradAVX512(&dx[0], &dy[0], &x[0], &gain[0], &mean[0], &inv[0], d, rows, float32(d))
	case active == avx2 && d <= mostBlock:
		layerNormGradAVX2(&dx[0], &dy[0], &x[0], &gain[0], &mean[0], &inv[0], d, rows, float32(d))
	default:
		layerNormGradGeneric(dx, dy, x, gain, mean, inv)
	}
}
