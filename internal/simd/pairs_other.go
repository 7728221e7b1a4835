//go:build !amd64 || purego

package simd

// pairs reports that weights are not stored in pairs.
func (w *Packed) pairs() bool { return false }

func (w *Packed) pairLayout() PanelLayout                               { panic("simd: no pairs") }
func (w *Packed) roundToPairs(Mat, int, *scratch) Mat                   { panic("simd: no pairs") }
func (w *Packed) setPairs(int, int, unpacked, *scratch)                 { panic("simd: no pairs") }
func (w *Packed) readPairs([]float32, int)                              { panic("simd: no pairs") }
func (w *Packed) multiplyPairs(Mat, Mat, int, int, int, []float32, int) { panic("simd: no pairs") }
