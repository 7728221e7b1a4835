package simd

import (
	"fmt"
	"math"
	"slices"
)

// distanceLimit is the length beyond which a vector or a factor takes the slow path. Below it, the
// products of the kernels stay in range and are not denormal where it matters.
const distanceLimit = 1 << 40

// DistanceGrad is a block of keys, and some queries at a time, prepared for the gradients of
// Distances, and the sums from which the gradients are computed. It allocates its memory, except
// for w, which is read and must not change before Flush.
type DistanceGrad struct {
	w                []float32 // nil if all are 1
	wantW            bool
	k, dk            []float32 // [keys][row]: the keys, and Σ_i ds·(q-k)
	q, dq            []float32 // [queries][row]: the queries, and Σ_j ds·(k-q)
	dw               []float32 // [row]: Σ_ij ds·(q-k)²
	sums             []float32 // [queries][row]: Σ_j ds·(q-k)² of each query
	beyondK, beyondQ []bool    // which are beyond distanceLimit; all if w is beyond
	slow             bool      // whether any was beyond, so that slowDK and slowDW are in use
	slowDK           []float32 // [keys][h], with factors
	slowDW           []float32 // [h]
	keys, h, row     int
	queries          int
}

// Set prepares keys, where element f of key j is k[j·row+f], and the factors w, nil for 1, and sets
// all sums to 0. WantW says whether the gradient of w is required.
//
// Shapes:
//
//	k  [keys h], a row every row floats
//	w  [h], or nil
func (g *DistanceGrad) Set(k []float32, row, keys, h int, w []float32, wantW bool) {
	checkRows("DistanceGrad.Set", len(k), row, keys, h)
	if w != nil {
		sameLen("DistanceGrad.Set", "w", len(w), "row of k", h)
	}
	g.w, g.wantW, g.keys, g.h, g.row = w, wantW, keys, h, additiveRow(h)
	if keys == 0 {
		g.w = nil
		return
	}
	g.k, g.beyondK = padRows(g.k, g.beyondK, k, row, keys, h, g.row)
	for _, x := range w {
		if x := float32(math.Abs(float64(x))); x != 0 && !(x <= distanceLimit && x >= 1.0/distanceLimit) {
			fill(g.beyondK, true)
			break
		}
	}
	g.dk, g.dw = grow(g.dk, keys*g.row), grow(g.dw, g.row)
	clear(g.dk)
	clear(g.dw)
	g.slow = false
}

// Queries prepares queries: element f of query i is q[i·row+f].
func (g *DistanceGrad) Queries(q []float32, row, queries int) {
	checkRows("DistanceGrad.Queries", len(q), row, queries, g.h)
	g.queries = queries
	g.q, g.beyondQ = padRows(g.q, g.beyondQ, q, row, queries, g.h, g.row)
	g.dq = grow(g.dq, queries*g.row)
	clear(g.dq)
	if g.wantW {
		g.sums = grow(g.sums, queries*g.row)
		clear(g.sums)
	}
}

// padRows copies rows of h elements to rows of to elements, padded with 0, and reports which rows
// are beyond distanceLimit.
func padRows(dst []float32, beyond []bool, x []float32, row, rows, h, to int) ([]float32, []bool) {
	dst, beyond = grow(dst, rows*to), grow(beyond, rows)
	for i := range rows {
		d, src := dst[i*to:][:to], x[i*row:][:h]
		copy(d, src)
		clear(d[h:])
		beyond[i] = !(Dot(src, src) <= distanceLimit*distanceLimit)
	}
	return dst, beyond
}

// Add adds the gradients of the distances of the queries from keys j0 to j1. The gradient for query
// i and key j is ds[i·dsRow+j-j0]. Add sets dq[i·dqRow+f] to the gradients of the queries:
//
//	dq[i][f]  =  w²·Σ_j ds·(k-q)
//	dk[j][f] +=  w²·    ds·(q-k)    in the sums of g
//	dw[f]    += -w·Σ_j ds·(q-k)²    in the sums of g, in the order of i
//
// These are half of the derivatives. The sums over j are in the order of j; the sums of dk are in
// the order of i, over all calls. A ds of 0 contributes nothing, whatever its query and its key
// are.
func (g *DistanceGrad) Add(dq []float32, dqRow int, ds []float32, dsRow, j0, j1 int) {
	n := g.queries
	if j0 < 0 || j1 < j0 || g.keys < j1 || n > 0 && (dsRow < 0 || len(ds) < (n-1)*dsRow+j1-j0) {
		panic(fmt.Sprintf("simd: DistanceGrad.Add: keys %d to %d of %d, %d rows of gradients, %d apart, in %d floats",
			j0, j1, g.keys, n, dsRow, len(ds)))
	}
	checkRows("DistanceGrad.Add", len(dq), dqRow, n, g.h)
	if n == 0 || g.h == 0 {
		return
	}
	for i := 0; i < n; {
		i1 := run(g.beyondQ, i, min(n, i+additiveRows))
		for j := j0; j < j1 && !g.beyondQ[i]; {
			end := run(g.beyondK, j, j1)
			if !g.beyondK[j] {
				distanceGrad(g, ds[j-j0:], dsRow, i, i1, j, end)
			}
			j = end
		}
		i = i1
	}
	beyondKeys := slices.Contains(g.beyondK[j0:j1], true)
	for i := range n {
		sum := g.dq[i*g.row:][:g.h]
		g.factor(sum)
		copy(dq[i*dqRow:][:g.h], sum)
		if g.wantW {
			add(g.dw, g.dw, g.sums[i*g.row:][:g.row])
		}
		if !beyondKeys && !g.beyondQ[i] {
			continue
		}
		for j, d := range ds[i*dsRow:][:j1-j0] {
			if d != 0 && (g.beyondQ[i] || g.beyondK[j0+j]) {
				g.add(dq[i*dqRow:][:g.h], d, i, j0+j)
			}
		}
	}
}

// run returns the end, at most n, of the run of equal elements that begins at i.
func run(x []bool, i, n int) int {
	end := i + 1
	for end < n && x[end] == x[i] {
		end++
	}
	return end
}

// factor multiplies sums by w².
func (g *DistanceGrad) factor(sum []float32) {
	if g.w != nil {
		mul(sum, sum, g.w)
		mul(sum, sum, g.w)
	}
}

// add adds the gradients for query i and key j from d, the gradient of their distance. It applies
// the factors first, which keeps the products in range.
func (g *DistanceGrad) add(dq []float32, d float32, i, j int) {
	if !g.slow {
		g.slow = true
		g.slowDK, g.slowDW = grow(g.slowDK, g.keys*g.h), grow(g.slowDW, g.h)
		clear(g.slowDK)
		clear(g.slowDW)
	}
	q, k, dk := g.q[i*g.row:][:g.h], g.k[j*g.row:][:g.h], g.slowDK[j*g.h:][:g.h]
	for f, x := range q {
		w := float32(1)
		if g.w != nil {
			w = g.w[f]
		}
		diff := x - k[f]
		along := d * diff * w
		dq[f] -= float32(along * w)
		dk[f] += float32(along * w)
		g.slowDW[f] -= float32(along * diff)
	}
}

// Flush adds the sums since Set to the gradient of the keys, where element f of key j is
// dk[j·dkRow+f], and to the gradient of w. Either may be nil. After it, the keys must be set again.
//
// Shapes:
//
//	dk  [keys h], a row every dkRow floats
//	dw  [h]
func (g *DistanceGrad) Flush(dk []float32, dkRow int, dw []float32) {
	if g.keys == 0 || g.h == 0 {
		return
	}
	if dk != nil {
		checkRows("DistanceGrad.Flush", len(dk), dkRow, g.keys, g.h)
		for j := range g.keys {
			row, sum := dk[j*dkRow:][:g.h], g.dk[j*g.row:][:g.h]
			g.factor(sum)
			add(row, row, sum)
			if g.slow {
				add(row, row, g.slowDK[j*g.h:][:g.h])
			}
		}
	}
	if dw != nil {
		for f := range dw[:g.h] {
			w := float32(1)
			if g.w != nil {
				w = g.w[f]
			}
			dw[f] -= float32(w * g.dw[f])
			if g.slow {
				dw[f] += g.slowDW[f]
			}
		}
	}
}

func distanceGradGeneric(g *DistanceGrad, ds []float32, dsRow, i0, i1, j0, j1 int) {
	for i := i0; i < i1; i++ {
		q, dq := g.q[i*g.row:][:g.h], g.dq[i*g.row:][:g.h]
		for j := j0; j < j1; j++ {
			s := ds[i*dsRow+j-j0]
			k, dk := g.k[j*g.row:][:len(q)], g.dk[j*g.row:][:len(q)]
			for f, x := range q {
				d := k[f] - x
				along := float32(s * d)
				dq[f] += along
				dk[f] -= along
				if g.wantW {
					g.sums[i*g.row+f] += float32(s * float32(d*d))
				}
			}
		}
	}
}
