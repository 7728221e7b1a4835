//go:build !amd64 || purego

package simd

// Without tile units, the functions below are not called.

func hasTiles() bool { return false }

func permitTiles() bool { return false }

type limbs struct{}

type tiling struct{}

func (m *multiplication) runTiles() { panic("simd: no tile units") }

func (p *Product) onTiles(*scratch) { panic("simd: no tile units") }

type limbPanels struct{}

func (*limbPanels) release() {}

func (*limbPanels) reserve(k, n int) { panic("simd: no tile units") }

func (*limbPanels) fill(m Mat, k, at, j0, j1 int) { panic("simd: no tile units") }

func (*limbPanels) multiply(c, a Mat, m int, k0, k1, j0, j1 int, accumulate bool, sparse sides, ahead *Ahead) {
	panic("simd: no tile units")
}

func multiplyStoredOnTiles(c, a Mat, m int, b *StoredPanels, k0, k1, j0, j1 int, accumulate bool) {
	panic("simd: no tile units")
}

func rowDotsOnTiles(dst []float32, x, y Mat, n int) { panic("simd: no tile units") }

// HasTiny is for products on tile units.
func HasTiny(x []float32, stride, rows, cols int) bool { panic("simd: no tile units") }
