//go:build !amd64 || purego

package simd

func detect() []implementation { return []implementation{generic} }

func panelWidth() int { return genericWidth }

func panelLanes() int { return genericWidth }

func readsDirectly(p *Product) bool { return readsDirectlyGeneric(p) }

func packPanel(dst []float32, m Mat, rows, cols, width int) {
	packPanelGeneric(dst, m, rows, cols, width)
}

func blockOfA(p *Product, i0, i1, _, k0, k1 int, s *scratch) Mat {
	return blockOfAGeneric(p, i0, i1, k0, k1, s)
}

func block(p *Product, a Mat, i0, i1, j0, j1, k0, k1 int, b *panels) {
	blockGeneric(p, a, i0, i1, j0, j1, k0, k1, b)
}

func multiplyPanels(c, a Mat, m int, b *Panels, k0, k1, j0, j1 int, accumulate bool) {
	multiplyPanelsGeneric(c, a, m, b, k0, k1, j0, j1, accumulate)
}

func singleRow(*Product, int, int, *scratch) bool { return false }

func exp(dst, x []float32) { expGeneric(dst, x) }

func tanh(dst, x []float32) { tanhGeneric(dst, x) }

func sigmoid(dst, x []float32) { sigmoidGeneric(dst, x) }

func gelu(dst, x []float32) { geluGeneric(dst, x) }

func geluGrad(dst, x []float32) { geluGradGeneric(dst, x) }

func add(dst, x, y []float32) { addGeneric(dst, x, y) }

func mul(dst, x, y []float32) { mulGeneric(dst, x, y) }

func mulAdd(dst, x, y []float32) { mulAddGeneric(dst, x, y) }

func axpy(a float32, x, y []float32) { axpyGeneric(a, x, y) }

func scale(dst []float32, a float32, x []float32) { scaleGeneric(dst, a, x) }

func scaleShift(dst []float32, a float32, x []float32, b float32) { scaleShiftGeneric(dst, a, x, b) }

func expSum(dst, x []float32, shift float32) float32 { return expSumGeneric(dst, x, shift) }

func sum(x []float32) float32 { return sumGeneric(x) }

func dot(x, y []float32) float32 { return dotGeneric(x, y) }

func maximum(x []float32) float32 { return maxGeneric(x) }

func finite(x []float32) bool { return finiteGeneric(x) }

func additiveScores(dst, q, k, w []float32, nk, h int) { additiveScoresGeneric(dst, q, k, w, nk, h) }

func additiveGrad(dq, dk, dw, ds, q, k, w []float32, nk, h int) {
	additiveGradGeneric(dq, dk, dw, ds, q, k, w, nk, h)
}

func additiveWidth() int { return additiveWidthGeneric }

func additiveExp(dst, x []float32, limit, factor float32) bool {
	return additiveExpGeneric(dst, x, limit, factor)
}

func additiveKeys(panel, w []float32, n int) { additiveKeysGeneric(panel, w, n) }

func additiveTile(c []float32, cRow int, q *AdditiveQueries, i0, i1 int, k *AdditiveKeys, j0, j1 int) {
	additiveTileGeneric(c, cRow, q, i0, i1, k, j0, j1)
}

func additiveTileGrad(a *AdditiveKeysGrad, ds []float32, dsRow int, q *AdditiveQueries, i0, i1, j0, j1 int) {
	additiveTileGradGeneric(a, ds, dsRow, q, i0, i1, j0, j1)
}

func adamW(p, g, m, v []float32, s *adamScalars) { adamWGeneric(p, g, m, v, s) }

func rowMax(dst, x []float32, stride, n int) { rowMaxGeneric(dst, x, stride, n) }

func powerRows(x []float32, stride, n int, c float32, shift, sum []float32) {
	powerRowsGeneric(x, stride, n, c, shift, sum)
}

func weightRows(x []float32, stride, n int, c float32, shift, factor []float32) {
	weightRowsGeneric(x, stride, n, c, shift, factor)
}

func gradRows(dw, w []float32, stride, n int, mean []float32, factor float32) {
	gradRowsGeneric(dw, w, stride, n, mean, factor)
}

func scaleRows(dst []float32, dstStride int, src []float32, srcStride, n int, factor []float32) {
	scaleRowsGeneric(dst, dstStride, src, srcStride, n, factor)
}

func hide(x []float32, seen []bool) { hideGeneric(x, seen) }

func fmaLoop(n int) float64 { return fmaLoopGeneric(n) }

func dropout(dst, x []float32, key uint64, threshold uint32, keep float32) {
	dropoutGeneric(dst, x, key, threshold, keep)
}

func dropoutAdd(dst, x, y []float32, key uint64, threshold uint32, keep float32) {
	dropoutAddGeneric(dst, x, y, key, threshold, keep)
}

func relu(dst, x []float32) { reluGeneric(dst, x) }

func reluGrad(dx, dy, x []float32) { reluGradGeneric(dx, dy, x) }

func softmaxGrad(dx, dy, y []float32, mean float32) { softmaxGradGeneric(dx, dy, y, mean) }

func norm(dst, x, gain, shift []float32, mean, inv float32) {
	normGeneric(dst, x, gain, shift, mean, inv)
}

func normGrad(dx, dy, x, gain []float32, mean, inv, flat, along float32) {
	normGradGeneric(dx, dy, x, gain, mean, inv, flat, along)
}

func softmaxMean(dy, y []float32) float32 {
	return softmaxMeanGeneric(dy, y)
}

func sumSquaresAbout(x []float32, mean float32) float32 {
	return sumSquaresAboutGeneric(x, mean)
}

func normSums(dy, x, gain []float32, mean, inv float32) (flat, along float32) {
	return normSumsGeneric(dy, x, gain, mean, inv)
}

func normGains(dgain, dshift, dy, x, mean, inv []float32, stride int) {
	normGainsGeneric(dgain, dshift, dy, x, mean, inv, stride)
}

func sumRows(dst, x []float32, rows, stride int) {
	sumRowsGeneric(dst, x, rows, stride)
}

func copyRows(dst []float32, dstStride int, x []float32, stride, rows, cols int) {
	copyRowsGeneric(dst, dstStride, x, stride, rows, cols)
}

func addRows(dst []float32, dstStride int, x []float32, stride, rows, cols int) {
	addRowsGeneric(dst, dstStride, x, stride, rows, cols)
}

func layerNorm(dst, x, gain, shift, mean, inv []float32, eps float32) {
	layerNormGeneric(dst, x, gain, shift, mean, inv, eps)
}

func layerNormGrad(dx, dy, x, gain, mean, inv []float32) {
	layerNormGradGeneric(dx, dy, x, gain, mean, inv)
}
