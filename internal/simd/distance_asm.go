//go:build (amd64 || arm64 || (wasm && wasmsimd)) && !purego

package simd

// distanceArgs is the argument of the kernels of distances: a tile of up to additiveRows rows by
// some vectors of columns. Strides are in bytes. The generator reads the offsets of the fields.
type distanceArgs struct {
	a     *float32
	aRow  int
	b     *float32
	bRow  int
	c     *float32
	cRow  int
	w     *float32 // nil if all are 1
	depth int      // features, at least 1
	rows  int
	last  int // columns in the last vector, 1 to its length
}

func distancesAsm(c, q Mat, m int, k *Panels, j0, j1 int, w []float32) {
	b := &k.b
	t := distanceArgs{aRow: 4 * q.Row, bRow: 4 * b.row, cRow: 4 * c.Row, depth: k.K}
	if w != nil {
		t.w = &w[0]
	}
	lanes := vectorLanes()
	for j, end := j0, 0; j < j1; j = end {
		end = min(j-j%b.width+b.width, j1)
		n := end - j
		vectors := (n + lanes - 1) / lanes
		t.last = n - (vectors-1)*lanes
		t.b = &b.data[j/b.width*b.step+j%b.width]
		for i := 0; i < m; i += additiveRows {
			t.rows = min(additiveRows, m-i)
			t.a, t.c = &q.Data[i*q.Row], &c.Data[i*c.Row+j-j0]
			distanceKernel(&t, vectors)
		}
	}
}

func distanceGradAsm(g *DistanceGrad, ds []float32, dsRow, i0, i1, j0, j1 int) {
	t := gradArgs{row: 4 * g.row, dsRow: 4 * dsRow, keys: j1 - j0, rows: i1 - i0, ds: &ds[i0*dsRow]}
	for f := 0; f < g.h; f += vectorLanes() {
		t.e, t.dq = &g.q[i0*g.row+f], &g.dq[i0*g.row+f]
		t.f, t.dk = &g.k[j0*g.row+f], &g.dk[j0*g.row+f]
		if g.wantW {
			t.dw = &g.sums[i0*g.row+f]
		}
		distanceGradKernel(&t)
	}
}
