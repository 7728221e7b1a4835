package simd

import (
	"fmt"
	"math"
)

// The tiles of additive scores split tanh into factors:
//
//	tanh(q+k) = 1 - 2·G/(G+E)    E = exp(2q)/2^13, G = exp(-2k)/2^13
//
// Every query and every key then needs its exponentials once, and a pair of them only a sum and a
// quotient. Two quotients share a division:
//
//	w0·G0/t0 + w1·G1/t1 = (w0·G0·t1 + w1·G1·t0) / (t0·t1)    t = G+E
//
// The product of two t must not overflow or underflow float32. The limits ensure that; the power of
// two centres the product in the range. A key beyond its limit is replaced by one at the limit. For
// queries within their limit the result is the same, because tanh rounds to ±1. For a query beyond
// its limit, tanh is computed for every key.
const (
	additiveQueryLimit = 16
	additiveKeyLimit   = 25.25
	additiveShift      = 1.0 / (1 << 13)
)

// additiveRows is the number of queries that a kernel computes at a time. The number of keys is a
// multiple of additiveAlign.
const (
	additiveRows  = 4
	additiveAlign = 64
)

// additiveRow returns the distance between rows of h features in scratch: an odd number of whole
// vectors. With an even number, the same feature of all keys could be mapped to a few sets of the
// cache.
func additiveRow(h int) int { return ((h+15)/16 | 1) * 16 }

// AdditiveQueries is a block of queries prepared for AdditiveTile and AdditiveTileGrad. It
// allocates its memory, which the next Set reuses, and keeps no reference to the caller's slices.
type AdditiveQueries struct {
	e            []float32 // [rows][row]: E, or the query itself if it is beyond; then 0
	beyond       []bool    // [rows]: whether some feature is beyond additiveQueryLimit, or NaN
	rows, h, row int
}

// Set prepares queries: element f of query i is q[i*row+f].
//
// Shapes:
//
//	q  [rows h], a row every row floats
func (a *AdditiveQueries) Set(q []float32, row, rows, h int) {
	checkRows("AdditiveQueries.Set", len(q), row, rows, h)
	a.rows, a.h, a.row = rows, h, additiveRow(h)
	a.e, a.beyond = grow(a.e, rows*a.row), grow(a.beyond, rows)
	for i := range rows {
		x, e := q[i*row:][:h], a.e[i*a.row:][:a.row]
		a.beyond[i] = !additiveExp(e[:h], x, additiveQueryLimit, additiveShift)
		if a.beyond[i] {
			copy(e, x)
		}
		clear(e[h:])
	}
}

// AdditiveKeys is a block of keys prepared for AdditiveTile. It allocates its memory. For queries
// beyond the limit it also reads k and w, which must not change before the last tile.
type AdditiveKeys struct {
	panels          []float32 // for every width keys [h, or one more][2][width]: G and w·G
	width           int
	scaled          []float32 // [h]: w scaled below 1 by a power of two, so that products stay in range
	factor, sum     float32   // score = sum + factor·Σ scaled·G/(G+E)
	k, w            []float32
	keys, h, row, f int // row of k; f is h rounded up to an even number
}

// Set prepares keys, where element f of key j is k[j*row+f], and the vector w of the score. A
// feature of a key may have any value: infinities work like large numbers, and NaN makes the scores
// of its key NaN. Setting no keys releases the caller's slices.
//
// Shapes:
//
//	k  [keys h], a row every row floats
//	w  [h]
func (a *AdditiveKeys) Set(k []float32, row, keys, h int, w []float32) {
	checkRows("AdditiveKeys.Set", len(k), row, keys, h)
	sameLen("AdditiveKeys.Set", "w", len(w), "row of k", h)
	a.k, a.w, a.keys, a.h, a.row, a.f = k, w, keys, h, row, h+h%2
	if keys == 0 {
		a.k, a.w = nil, nil
	}
	if keys == 0 || h == 0 {
		return
	}
	a.setWeights()
	width := additiveWidth()
	a.width = width
	a.panels = grow(a.panels, (keys+width-1)/width*a.f*2*width)
	for j := 0; j < keys; j += width {
		panel, n := a.panel(j), min(width, keys-j)
		packPanel(panel, Mat{k[j*row:], 1, row}, h, n, 2*width)
		additiveKeys(panel, a.scaled, n)
		if h < a.f { // an added feature with weight 0, and with t = 1
			g := panel[h*2*width:]
			for i := range width {
				g[i], g[width+i] = 1, 0
			}
		}
	}
}

// setWeights computes the fields that depend on w alone.
func (a *AdditiveKeys) setWeights() {
	sum, largest := 0.0, 0.0
	for _, v := range a.w {
		sum += float64(v)
		largest = max(largest, math.Abs(float64(v)))
	}
	_, exponent := math.Frexp(largest)
	exponent = min(exponent, 126) // keeps factor finite
	a.scaled = grow(a.scaled, a.h)
	power := math.Ldexp(1, -exponent)
	for f, v := range a.w {
		a.scaled[f] = float32(float64(v) * power)
	}
	a.sum, a.factor = float32(sum), float32(math.Ldexp(-2, exponent))
}

// panel returns the panel of key j.
func (a *AdditiveKeys) panel(j int) []float32 {
	step := a.f * 2 * a.width
	return a.panels[j/a.width*step:][:step]
}

// AdditiveTile sets the scores of queries i0 to i1 against keys j0 to j1,
//
//	c[i*cRow+j-j0] = Σ_f w[f]·tanh(q[i][f]+k[j][f])
//
// where j0 is a multiple of 64. The error is at most twice the error of a loop in float32 with a
// correctly rounded tanh, plus 6e-7·Σ|w|. The bits of a score depend on its query, its key and w
// only.
//
// Source: Bahdanau et al., "Neural Machine Translation by Jointly Learning to Align and Translate",
// 2015, https://arxiv.org/abs/1409.0473.
func AdditiveTile(c []float32, cRow int, q *AdditiveQueries, i0, i1 int, k *AdditiveKeys, j0, j1 int) {
	checkTile("AdditiveTile", len(c), cRow, q, i0, i1, k.h, k.keys, j0, j1)
	if j0%additiveAlign != 0 {
		panic(fmt.Sprintf("simd: AdditiveTile: j0=%d is not a multiple of %d", j0, additiveAlign))
	}
	if j0 == j1 {
		return
	}
	for i, end := i0, 0; i < i1; i = end {
		end = run(q.beyond, i, i1)
		if k.h > 0 && !q.beyond[i] {
			additiveTile(c, cRow, q, i, end, k, j0, j1)
			continue
		}
		for ; i < end; i++ {
			k.scores(c[i*cRow:][:j1-j0], q.e[i*q.row:][:q.h], j0)
		}
	}
}

// scores computes the scores of a query beyond the limit, from key j on, with a tanh for every
// pair.
func (a *AdditiveKeys) scores(c, q []float32, j int) {
	s := scratches.Get().(*scratch)
	s.row = grow(s.row, a.h)
	for n := range c {
		add(s.row, q, a.k[(j+n)*a.row:][:a.h])
		tanh(s.row, s.row)
		c[n] = Dot(s.row, a.w)
	}
	s.free()
}

func checkRows(op string, have, row, rows, h int) {
	if rows < 0 || h < 0 || rows > 0 && (row < h || have < (rows-1)*row+h) {
		panic(fmt.Sprintf("simd: %s: %d rows of h=%d, %d apart, in %d floats", op, rows, h, row, have))
	}
}

func checkTile(op string, have, row int, q *AdditiveQueries, i0, i1, h, keys, j0, j1 int) {
	if q.h != h || i0 < 0 || i1 < i0 || q.rows < i1 || j0 < 0 || j1 < j0 || keys < j1 {
		panic(fmt.Sprintf("simd: %s: queries %d to %d of %d with h=%d, keys %d to %d of %d with h=%d",
			op, i0, i1, q.rows, q.h, j0, j1, keys, h))
	}
	if i0 < i1 && (row < 0 || have < (i1-1)*row+j1-j0) {
		panic(fmt.Sprintf("simd: %s: %d rows of %d scores, %d apart, in %d floats", op, i1, j1-j0, row, have))
	}
}
