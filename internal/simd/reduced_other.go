//go:build !amd64 || purego

package simd

// usesPairs and quads report that numbers are not stored in words.
func usesPairs() bool         { return false }
func (w *Packed) quads() bool { return false }

func toPairs(_ []float32, _ Mat, _, _ int)         { panic("simd: no pairs") }
func packPairRows(_ []float32, _ Mat, _, _, _ int) { panic("simd: no pairs") }

func multiplyPairPanel(_, _ Mat, _ int, _ PanelLayout, _ []float32, _ bool, _ []float32, _ int, _ stored) {
	panic("simd: no pairs")
}

func quadsWidth() int { panic("simd: no quads") }

func toQuads(dst, x []float32, groups int) { toQuadsGeneric(dst, x, groups) }

func (w *Packed) multiplyQuads(_, _ Mat, _, _, _ int, _ []float32) { panic("simd: no quads") }
