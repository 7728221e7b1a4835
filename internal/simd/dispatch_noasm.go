//go:build !amd64 || purego

package simd

func detect() []implementation { return []implementation{generic} }

func panelWidth() int { return genericWidth }

func readsDirectly(p *Product) bool { return readsDirectlyGeneric(p) }

func packPanel(dst []float32, m Mat, rows, cols, width int) {
	packPanelGeneric(dst, m, rows, cols, width)
}

func block(p *Product, i0, i1, j0, j1, k0, k1 int, b *panels, s *scratch) {
	blockGeneric(p, i0, i1, j0, j1, k0, k1, b, s)
}
