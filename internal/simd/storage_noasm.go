//go:build (!amd64 && !arm64) || purego

package simd

// storedPanel has no kernel here.
func storedPanel(_, _ Mat, _, _, _ int, _ *StoredPanels, _ int, _ bool) bool { return false }
