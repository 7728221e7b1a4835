//go:build (!amd64 && !arm64) || purego

package simd

// storedPanel has no kernel here.
func storedPanel(_, _ Mat, _, _, _ int, _ *StoredPanels, _ int, _ bool, _ int) bool { return false }

func multiplyPanel(c, a Mat, m int, l PanelLayout, b []float32, more bool, bias []float32, chain int, _ stored) {
	multiplyPanelGeneric(c, a, m, l, b, more, bias, chain)
}
