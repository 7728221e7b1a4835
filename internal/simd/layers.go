package simd

// ReLU sets dst[i] = max(x[i], 0), and NaN where x[i] is NaN.
func ReLU(dst, x []float32) {
	sameLen("ReLU", "dst", len(dst), "x", len(x))
	relu(dst, x)
}

// ReLUGrad sets dx[i] += dy[i] where x[i] > 0.
func ReLUGrad(dx, dy, x []float32) {
	sameLen("ReLUGrad", "dx", len(dx), "dy", len(dy))
	sameLen("ReLUGrad", "dx", len(dx), "x", len(x))
	reluGrad(dx, dy, x)
}

// SoftmaxGrad adds to dx the gradient of y = softmax(x), given the gradient dy of y:
//
//	dx[i] += y[i]·(dy[i] - Σ y[j]·dy[j])
//
// Where y is 0 nothing is added, and dy has no influence there.
func SoftmaxGrad(dx, dy, y []float32) {
	sameLen("SoftmaxGrad", "dx", len(dx), "dy", len(dy))
	sameLen("SoftmaxGrad", "dx", len(dx), "y", len(y))
	softmaxGrad(dx, dy, y, softmaxMean(dy, y))
}

// Norm is the last step of a layer normalisation. It sets
//
//	dst[i] = gain[i]·u[i] + shift[i],  u[i] = (x[i]-mean)·inv
//
// where mean is the mean of x and inv is 1 over its standard deviation.
func Norm(dst, x, gain, shift []float32, mean, inv float32) {
	sameLen("Norm", "dst", len(dst), "x", len(x))
	sameLen("Norm", "dst", len(dst), "gain", len(gain))
	sameLen("Norm", "dst", len(dst), "shift", len(shift))
	norm(dst, x, gain, shift, mean, inv)
}

// LayerNorm applies Norm to every row of a matrix with len(gain) columns. It computes the mean and
// the inverse deviation, 1/√(variance + eps), of each row and writes them to mean and inv.
func LayerNorm(dst, x, gain, shift, mean, inv []float32, eps float32) {
	d, rows := len(gain), len(mean)
	sameLen("LayerNorm", "dst", len(dst), "mean by gain", rows*d)
	sameLen("LayerNorm", "x", len(x), "mean by gain", rows*d)
	sameLen("LayerNorm", "gain", d, "shift", len(shift))
	sameLen("LayerNorm", "mean", rows, "inv", len(inv))
	eachPiece(rows, d, func(r, end int) {
		layerNorm(dst[r*d:end*d], x[r*d:end*d], gain, shift, mean[r:end], inv[r:end], eps)
	})
}

// LayerNormGrad adds to dx the gradient of LayerNorm, given the gradient dy of its rows. mean and
// inv are the values that LayerNorm wrote. A row of dy that is all 0 adds nothing, whatever x
// contains.
func LayerNormGrad(dx, dy, x, gain, mean, inv []float32) {
	d, rows := len(gain), len(mean)
	sameLen("LayerNormGrad", "dx", len(dx), "mean by gain", rows*d)
	sameLen("LayerNormGrad", "dx", len(dx), "dy", len(dy))
	sameLen("LayerNormGrad", "dx", len(dx), "x", len(x))
	sameLen("LayerNormGrad", "mean", rows, "inv", len(inv))
	eachPiece(rows, d, func(r, end int) {
		layerNormGrad(dx[r*d:end*d], dy[r*d:end*d], x[r*d:end*d], gain, mean[r:end], inv[r:end])
	})
}

// NormSums returns two sums over a vector, from which the gradient of Norm is computed: the sum of
// gain[i]·dy[i] and the sum of gain[i]·dy[i]·u[i].
func NormSums(dy, x, gain []float32, mean, inv float32) (flat, along float32) {
	sameLen("NormSums", "dy", len(dy), "x", len(x))
	sameLen("NormSums", "dy", len(dy), "gain", len(gain))
	for len(x) > 0 {
		n := min(len(x), piece)
		f, a := normSums(dy[:n], x[:n], gain[:n], mean, inv)
		flat, along = flat+f, along+a
		dy, x, gain = dy[n:], x[n:], gain[n:]
	}
	return flat, along
}

// NormGrad sets dx[i] += inv·(gain[i]·dy[i] - flat - along·u[i]). This is the gradient of Norm,
// with mean and inv as functions of x, if flat and along are the sums of NormSums divided by the
// length.
func NormGrad(dx, dy, x, gain []float32, mean, inv, flat, along float32) {
	sameLen("NormGrad", "dx", len(dx), "dy", len(dy))
	sameLen("NormGrad", "dx", len(dx), "x", len(x))
	sameLen("NormGrad", "dx", len(dx), "gain", len(gain))
	normGrad(dx, dy, x, gain, mean, inv, flat, along)
}

// NormGains adds the gradients of gain and shift to dgain and dshift, row after row:
//
//	dgain[j]  += dy[r·stride+j]·u[r·stride+j]   where dy is not 0
//	dshift[j] += dy[r·stride+j]
//
// The number of rows is the length of mean.
func NormGains(dgain, dshift, dy, x, mean, inv []float32, stride int) {
	sameLen("NormGains", "dgain", len(dgain), "dshift", len(dshift))
	sameLen("NormGains", "mean", len(mean), "inv", len(inv))
	inBlocks(len(mean), len(dgain), func(r0, r1, j0, j1 int) {
		at, end := r0*stride+j0, (r1-1)*stride+j1
		normGains(dgain[j0:j1], dshift[j0:j1], dy[at:end], x[at:end], mean[r0:r1], inv[r0:r1], stride)
	})
}
