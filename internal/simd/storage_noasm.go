//go:build !amd64 || purego

package simd

func fromBFloat16(dst []float32, x []uint16) { fromBFloat16Generic(dst, x) }

func fromInt8(dst []float32, x []int8) { fromInt8Generic(dst, x) }

func storedPanel(_, _ Mat, _, _, _ int, _ *StoredPanels, _ int, _ bool) bool { return false }
