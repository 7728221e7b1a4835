//go:build amd64 && !purego

package simd

import "unsafe"

// The kernels take whole vectors. The rest goes the generic way, which gives the same
// bits.

func fromBFloat16(dst []float32, x []uint16) {
	if active != generic {
		for len(x) >= 16 {
			n := min(len(x)&^15, piece)
			if active == avx512 {
				fromBFloat16AVX512(&dst[0], &x[0], n)
			} else {
				fromBFloat16AVX2(&dst[0], &x[0], n)
			}
			dst, x = dst[n:], x[n:]
		}
	}
	fromBFloat16Generic(dst, x)
}

func fromInt8(dst []float32, x []int8) {
	if active != generic {
		for len(x) >= 16 {
			n := min(len(x)&^15, piece)
			if active == avx512 {
				fromInt8AVX512(&dst[0], &x[0], n)
			} else {
				fromInt8AVX2(&dst[0], &x[0], n)
			}
			dst, x = dst[n:], x[n:]
		}
	}
	fromInt8Generic(dst, x)
}

// storedPanel computes m rows and n columns of C from depth rows of a panel of b, of
// which the first is at the given place, and says whether it could: the kernels take
// whole panels.
func storedPanel(c, a Mat, m, n, depth int, b *StoredPanels, at int, accumulate bool) bool {
	lanes := vectorLanes()
	vectors := (n + lanes - 1) / lanes
	if active == generic || depth == 0 || b.Width != panelWidth() || vectors*lanes != b.Width || active == avx2 && n%lanes != 0 {
		return false
	}
	t := tileArgs{aRow: 4 * a.Row, aCol: 4 * a.Col, cRow: 4 * c.Row, depth: depth, last: n - (vectors-1)*lanes}
	if accumulate {
		t.start = startC
	}
	kernel := kernelInt8
	if b.BFloat16 != nil {
		kernel = kernelBFloat16
		t.b, t.bRow = (*float32)(unsafe.Pointer(&b.BFloat16[at])), 2*b.Width
	} else {
		t.b, t.bRow = (*float32)(unsafe.Pointer(&b.Int8[at])), b.Width
	}
	t.column(c, a, m, 0, kernel)
	return true
}
