//go:build (amd64 || arm64 || (wasm && wasmsimd)) && !purego

package simd

// scoreArgs is the argument of the kernels of additive scores: a tile of up to additiveRows queries
// by one or two vectors of keys. Strides are in bytes. The generator reads the offsets of the
// fields.
type scoreArgs struct {
	e           *float32
	eRow        int
	panel       *float32 // at the first key of the tile
	c           *float32
	cRow        int
	pairs       int // of features
	rows        int
	last        int // keys in the last vector, 1 to its length
	factor, sum float32
}

// gradArgs is the argument of the kernels for gradients of additive scores: up to additiveRows
// queries by any number of keys, and a vector of features.
type gradArgs struct {
	e, f, dk *float32
	dq, dw   *float32 // sums over the keys
	row      int      // stride of all of these
	ds       *float32
	dsRow    int
	keys     int
	rows     int
}

func additiveKeysAsm(panel, w []float32, n int) {
	vectors := (n + vectorLanes() - 1) / vectorLanes()
	for len(w) > 0 {
		n := min(len(w), piece/additiveWidth())
		additiveKeysKernel(&panel[0], &w[0], n, vectors)
		panel, w = panel[n*2*additiveWidth():], w[n:]
	}
}

func additiveTileAsm(c []float32, cRow int, q *AdditiveQueries, i0, i1 int, k *AdditiveKeys, j0, j1 int) {
	t := scoreArgs{eRow: 4 * q.row, cRow: 4 * cRow, pairs: k.f / 2, factor: k.factor, sum: k.sum}
	lanes := vectorLanes()
	most := max(1, min(additiveRows, piece/k.h))
	for j := j0; j < j1; j += k.width {
		n := min(k.width, j1-j)
		vectors := (n + lanes - 1) / lanes
		t.last = n - (vectors-1)*lanes
		t.panel = &k.panel(j)[0]
		for i := i0; i < i1; i += most {
			t.rows = min(most, i1-i)
			t.e, t.c = &q.e[i*q.row], &c[i*cRow+j-j0]
			additiveTileKernel(&t, vectors)
		}
	}
}

func additiveTileGradAsm(a *AdditiveKeysGrad, ds []float32, dsRow int, q *AdditiveQueries, i0, i1, j0, j1 int) {
	const keys = 2048 // keeps a call to about ten microseconds
	t := gradArgs{row: 4 * a.row, dsRow: 4 * dsRow, rows: i1 - i0}
	for f := 0; f < a.h; f += vectorLanes() {
		t.e, t.dq, t.dw = &q.e[i0*q.row+f], &a.dqSum(0)[f], &a.dwSum(0)[f]
		for j := j0; j < j1; j += keys {
			t.f, t.dk, t.ds = &a.f[j*a.row+f], &a.dk[j*a.row+f], &ds[i0*dsRow+j-j0]
			t.keys = min(keys, j1-j)
			additiveTileGradKernel(&t)
		}
	}
}
