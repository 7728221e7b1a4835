//go:build (amd64 || arm64) && !purego

package simd

import "unsafe"

// storedPanel computes m rows and n columns of C from depth rows of a panel of b, of
// which the first is at the given place, and says whether it could: the kernels take
// whole panels.
func storedPanel(c, a Mat, m, n, depth int, b *StoredPanels, at int, accumulate bool) bool {
	lanes := vectorLanes()
	vectors := (n + lanes - 1) / lanes
	if blockIsGeneric() || depth == 0 || b.Width != panelWidth() || vectors*lanes != b.Width || n%lanes != 0 && !storesPart() {
		return false
	}
	t := tileArgs{aRow: 4 * a.Row, aCol: 4 * a.Col, cRow: 4 * c.Row, depth: depth, last: n - (vectors-1)*lanes}
	if accumulate {
		t.start = startC
	}
	kernel := kernelInt8
	switch {
	case b.Float32 != nil:
		kernel = kernelFloat32
		t.b, t.bRow = &b.Float32[at], 4*b.Width
	case b.BFloat16 != nil:
		kernel = kernelBFloat16
		t.b, t.bRow = (*float32)(unsafe.Pointer(&b.BFloat16[at])), 2*b.Width
	default:
		t.b, t.bRow = (*float32)(unsafe.Pointer(&b.Int8[at])), b.Width
	}
	t.column(c, a, m, 0, kernel, nil)
	return true
}
