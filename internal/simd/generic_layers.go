package simd

import (
	"math"
	"slices"
)

func reluGeneric(dst, x []float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = max(v, 0)
	}
}

func reluGradGeneric(dx, dy, x []float32) {
	dx, dy = dx[:len(x)], dy[:len(x)]
	for i, v := range x {
		if v > 0 {
			dx[i] += dy[i]
		}
	}
}

func softmaxMeanGeneric(dy, y []float32) float32 {
	var sum float32
	dy = dy[:len(y)]
	for i, w := range y {
		if w != 0 {
			sum += float32(w * dy[i])
		}
	}
	return sum
}

func softmaxGradGeneric(dx, dy, y []float32, mean float32) {
	dx, dy = dx[:len(y)], dy[:len(y)]
	for i, w := range y {
		if w != 0 {
			dx[i] += float32(w * (dy[i] - mean))
		}
	}
}

func sumSquaresAboutGeneric(x []float32, mean float32) float32 {
	var s [4]float32 // lanes, as in sumGeneric
	for ; len(x) >= 4; x = x[4:] {
		a, b, c, d := x[0]-mean, x[1]-mean, x[2]-mean, x[3]-mean
		s[0] += float32(a * a)
		s[1] += float32(b * b)
		s[2] += float32(c * c)
		s[3] += float32(d * d)
	}
	for i, v := range x {
		s[i] += float32((v - mean) * (v - mean))
	}
	return (s[0] + s[2]) + (s[1] + s[3])
}

func normGeneric(dst, x, gain, shift []float32, mean, inv float32) {
	dst, gain, shift = dst[:len(x)], gain[:len(x)], shift[:len(x)]
	for i, v := range x {
		dst[i] = float32((v-mean)*inv*gain[i]) + shift[i]
	}
}

// layerNormGeneric processes one row at a time, of any length, with the functions for vectors.
func layerNormGeneric(dst, x, gain, shift, mean, inv []float32, eps float32) {
	d := len(gain)
	for r := range mean {
		x := x[r*d : (r+1)*d]
		mean[r] = Sum(x) / float32(d)
		inv[r] = float32(1 / math.Sqrt(float64(sumSquaresAbout(x, mean[r])/float32(d)+eps)))
		Norm(dst[r*d:(r+1)*d], x, gain, shift, mean[r], inv[r])
	}
}

func layerNormGradGeneric(dx, dy, x, gain, mean, inv []float32) {
	d := len(gain)
	for r := range mean {
		dx, dy, x := dx[r*d:(r+1)*d], dy[r*d:(r+1)*d], x[r*d:(r+1)*d]
		if !slices.ContainsFunc(dy, func(v float32) bool { return v != 0 }) {
			continue
		}
		flat, along := NormSums(dy, x, gain, mean[r], inv[r])
		NormGrad(dx, dy, x, gain, mean[r], inv[r], flat/float32(d), along/float32(d))
	}
}

func normSumsGeneric(dy, x, gain []float32, mean, inv float32) (flat, along float32) {
	dy, gain = dy[:len(x)], gain[:len(x)]
	for i, v := range x {
		g := float32(gain[i] * dy[i])
		flat += g
		along += float32(g * ((v - mean) * inv))
	}
	return flat, along
}

func normGradGeneric(dx, dy, x, gain []float32, mean, inv, flat, along float32) {
	dx, dy, gain = dx[:len(x)], dy[:len(x)], gain[:len(x)]
	for i, v := range x {
		u := (v - mean) * inv
		dx[i] += float32(inv * (float32(gain[i]*dy[i]) - flat - float32(u*along)))
	}
}

func normGainsGeneric(dgain, dshift, dy, x, mean, inv []float32, stride int) {
	dshift = dshift[:len(dgain)]
	for r, m := range mean {
		dy, x := dy[r*stride:][:len(dgain)], x[r*stride:][:len(dgain)]
		for j, d := range dy {
			if dshift[j] += d; d != 0 {
				dgain[j] += float32(d * ((x[j] - m) * inv[r]))
			}
		}
	}
}

func sumRowsGeneric(dst, x []float32, rows, stride int) {
	for r := range rows {
		addGeneric(dst, dst, x[r*stride:][:len(dst)])
	}
}

func copyRowsGeneric(dst []float32, dstStride int, x []float32, stride, rows, cols int) {
	for r := range rows {
		copy(dst[r*dstStride:][:cols], x[r*stride:])
	}
}

func addRowsGeneric(dst []float32, dstStride int, x []float32, stride, rows, cols int) {
	for r := range rows {
		d := dst[r*dstStride:][:cols]
		addGeneric(d, d, x[r*stride:][:cols])
	}
}
