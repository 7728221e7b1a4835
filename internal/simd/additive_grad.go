package simd

// additiveGradShift is the counterpart of additiveShift: it scales E and F such that E·F is half of
// exp(2(q+k)). With t = 1/2+E·F
//
//	tanh(q+k) = 1 - 1/t
//
// and one step of Newton's method for 1/t gives the difference at once.
const additiveGradShift = 0.5 / additiveShift

// AdditiveKeysGrad is a block of keys prepared for AdditiveTileGrad, and the sums from which the
// gradients of the keys and of w are computed. It allocates its memory; it also reads k and w,
// which must not change before Flush. It is fastest where its 8 bytes per key and feature fit in
// the second-level cache.
type AdditiveKeysGrad struct {
	f            []float32 // [keys][row]: F = exp(2k)·additiveGradShift, then 0
	dk           []float32 // [keys][row]: Σ_i ds·(1-tanh²)
	dw           []float32 // [row]: Σ_ij ds·tanh
	sums         []float32 // [2][additiveRows][row]: see dqSum and dwSum
	k, w         []float32
	keys, h, row int
	kRow         int
}

// dqSum returns Σ_j ds·(1-tanh²) for query i of the kernel's current queries, and dwSum returns Σ_j
// ds·tanh.
func (a *AdditiveKeysGrad) dqSum(i int) []float32 { return a.sums[i*a.row:][:a.row] }
func (a *AdditiveKeysGrad) dwSum(i int) []float32 { return a.dqSum(additiveRows + i) }

// Set prepares keys, where element f of key j is k[j*row+f], and the vector w of the score, and
// sets all sums to 0. A feature of a key may have any value. NaN is treated like a large number
// here, because where a score was NaN its gradient is NaN too. Setting no keys releases the
// caller's slices.
//
// Shapes:
//
//	k  [keys h], a row every row floats
//	w  [h]
func (a *AdditiveKeysGrad) Set(k []float32, row, keys, h int, w []float32) {
	checkRows("AdditiveKeysGrad.Set", len(k), row, keys, h)
	sameLen("AdditiveKeysGrad.Set", "w", len(w), "row of k", h)
	a.k, a.w, a.keys, a.h, a.row, a.kRow = k, w, keys, h, additiveRow(h), row
	if keys == 0 {
		a.k, a.w = nil, nil
	}
	a.f, a.dk = grow(a.f, keys*a.row), grow(a.dk, keys*a.row)
	a.dw, a.sums = grow(a.dw, a.row), grow(a.sums, 2*additiveRows*a.row)
	for j := range keys {
		f := a.f[j*a.row:][:a.row]
		additiveExp(f[:h], k[j*row:][:h], additiveKeyLimit, additiveGradShift)
		clear(f[h:])
	}
	clear(a.dk)
	clear(a.dw)
}

// AdditiveTileGrad adds the gradients of the scores of queries i0 to i1 against keys j0 to j1. The
// gradient of score (i, j) is ds[i*dsRow+j-j0]. With T = tanh(q[i][f]+k[j][f]), which it
// recomputes,
//
//	dq[i*dqRow+f] += w[f]·Σ_j ds·(1-T²)
//	dk[j][f]      += w[f]·    ds·(1-T²)    in the sums of a
//	dw[f]         +=      Σ_j ds·T         in the sums of a, in the order of i
//
// The sums over j are computed first, in the order of j; the sums of dk are in the order of i, over
// all tiles. A ds of 0 contributes nothing, whatever its query and its key are. A NaN reaches dq of
// its query, dk of its key and dw. The errors are like the errors of AdditiveTile, with Σ|ds·w| and
// Σ|ds|.
func AdditiveTileGrad(dq []float32, dqRow int, ds []float32, dsRow int, q *AdditiveQueries, i0, i1 int,
	a *AdditiveKeysGrad, j0, j1 int) {
	checkTile("AdditiveTileGrad", len(ds), dsRow, q, i0, i1, a.h, a.keys, j0, j1)
	if i0 < i1 {
		checkRows("AdditiveTileGrad", len(dq), dqRow, i1, a.h)
	}
	if j0 == j1 || a.h == 0 {
		return
	}
	for i := i0; i < i1; {
		clear(a.sums)
		end := i + 1
		if q.beyond[i] {
			a.beyond(ds[i*dsRow:][:j1-j0], q.e[i*q.row:][:a.h], j0)
		} else {
			end = run(q.beyond, i, min(i1, i+additiveRows))
			additiveTileGrad(a, ds, dsRow, q, i, end, j0, j1)
		}
		for r := range end - i {
			mulAdd(dq[(i+r)*dqRow:][:a.h], a.dqSum(r)[:a.h], a.w)
			add(a.dw, a.dw, a.dwSum(r))
		}
		i = end
	}
}

// beyond adds to the sums the gradients of a query beyond the limit, against the keys from j on. It
// skips keys whose gradient is 0, so that a NaN does not reach them.
func (a *AdditiveKeysGrad) beyond(ds, q []float32, j int) {
	s := scratches.Get().(*scratch)
	s.row = grow(s.row, a.h)
	t, dq, dw := s.row, a.dqSum(0)[:a.h], a.dwSum(0)[:a.h]
	for n, d := range ds {
		if d == 0 {
			continue
		}
		add(t, q, a.k[(j+n)*a.kRow:][:a.h])
		tanh(t, t)
		axpy(d, t, dw)
		mul(t, t, t)
		scaleShift(t, -1, t, 1)
		axpy(d, t, dq)
		axpy(d, t, a.dk[(j+n)*a.row:][:a.h])
	}
	s.free()
}

// Flush adds the sums since Set to the gradient of the keys, where element f of key j is
// dk[j*dkRow+f], and to the gradient of w. Either may be nil. The sums are kept until the next Set.
//
// Shapes:
//
//	dk  [keys h], a row every dkRow floats
//	dw  [h]
func (a *AdditiveKeysGrad) Flush(dk []float32, dkRow int, dw []float32) {
	if a.keys == 0 || a.h == 0 {
		return
	}
	if dk != nil {
		checkRows("AdditiveKeysGrad.Flush", len(dk), dkRow, a.keys, a.h)
		for j := range a.keys {
			mulAdd(dk[j*dkRow:][:a.h], a.dk[j*a.row:][:a.h], a.w)
		}
	}
	if dw != nil {
		Add(dw, dw, a.dw[:a.h])
	}
}
