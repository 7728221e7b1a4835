//go:build !amd64 || purego

package simd

// roundsToPairs and packsPairs report that numbers are not stored in pairs.
func roundsToPairs() bool { return false }
func packsPairs() bool    { return false }

func toPairs(_ []float32, _ Mat, _, _ int)         { panic("simd: no pairs") }
func packPairRows(_ []float32, _ Mat, _, _, _ int) { panic("simd: no pairs") }

func multiplyPairPanel(_, _ Mat, _ int, _ PanelLayout, _ []float32, _ bool, _ []float32, _ int, _ stored) {
	panic("simd: no pairs")
}

// quadsOnTiles reports that there are no tile units.
func (p *Panels) quadsOnTiles(int) bool { return false }

const quadPadding = 0

func sortQuads(_, _ []float32, _ int) { panic("simd: no tile units") }

func (p *Panels) multiplyQuadsOnTiles(_, _ Mat, _, _, _ int, _ []float32, _ int) {
	panic("simd: no tile units")
}
