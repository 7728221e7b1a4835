//go:build (amd64 || arm64 || (wasm && wasmsimd)) && !purego

package simd

// storedKernels is the kernel of each format.
var storedKernels = [...]int{Float32: kernelFloat32, BFloat16: kernelBFloat16, Int8: kernelInt8}

// The kernels process whole panels. Those of AVX2 do not support panels whose last vector of C is not full.
func storedPanelAsm(c, a Mat, m, n, depth int, b *Panels, at int, accumulate bool, chain int) bool {
	lanes := vectorLanes()
	vectors := (n + lanes - 1) / lanes
	if depth == 0 || b.Width != panelWidth() || vectors*lanes != b.Width || n%lanes != 0 && active == avx2 {
		return false
	}
	from := b.numbers().address(at)
	t := tileArgs{
		aRow: 4 * a.Row, aCol: 4 * a.Col, b: (*float32)(from.at), bRow: from.size * b.Width, cRow: 4 * c.Row,
		last: n - (vectors-1)*lanes,
	}
	if accumulate {
		t.start = startC
	}
	t.column(c, a, m, 0, depth, chain, storedKernels[b.Format], nil)
	return true
}

func multiplyPanelAsm(c, a Mat, m int, l PanelLayout, b []float32, more bool, bias []float32, chain int, next stored) {
	multiplyPanelWith(0, c, a, m, l, b, more, bias, chain, next)
}

// multiplyPanelWith is multiplyPanel with the kernels after first, which is 0 or kernelPairs.
func multiplyPanelWith(
	first int, c, a Mat, m int, l PanelLayout, b []float32, more bool, bias []float32, chain int, next stored,
) {
	lanes := vectorLanes()
	vectors := (l.N + lanes - 1) / lanes
	t := tileArgs{
		aRow: 4 * a.Row, aCol: 4 * a.Col, b: &b[0], bRow: 4 * l.Width, cRow: 4 * c.Row, last: l.N - (vectors-1)*lanes,
		next: uintptr(next.at), nextStep: min(64, next.size*l.Width*tileRows/m),
	}
	switch {
	case more:
		t.start = startAdd
	case bias != nil:
		t.start, t.bias = startBias, &bias[0]
	}
	kernel := first + vectors
	if first == kernelPairs && m <= tileRows && l.Width == panelWidth() && vectors*lanes == l.Width {
		kernel = kernelPairsStream
	}
	t.column(c, a, m, 0, l.K, chain, kernel, nil)
}
