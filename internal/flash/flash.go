package flash

import (
	"context"
	"math"

	"github.com/attn-go/attn/internal/simd"
)

// Heads is the memory layout of the vectors of a batch: vector l of head h of sequence b starts
// at Data[b·Batch + h·Head + l·Row].
type Heads struct {
	Data             []float32
	Batch, Head, Row int
}

// at returns the data from vector l of a head on.
func (h Heads) at(b, head, l int) []float32 { return h.Data[b*h.Batch+head*h.Head+l*h.Row:] }

// Attention describes one call: its inputs, its parameters and the memory of its results. Forward
// and Backward share it.
type Attention struct {
	Sizes       // excluding extra keys
	Extra int   // number of keys in front of the Lk keys, which every query attends to
	E, EV int   // sizes of a query and a key, and of a value
	Q     Heads // [B H Lq E]
	K, V  Heads // [B G L E] and [B G L EV] for all L = Extra + Lk keys

	// Given are scores [B H Lq L] that replace Q and K, for a form that tiles do not compute. E
	// is then 0.
	Given []float32

	// Source[b] is the sequence of K and V that the queries of sequence b attend to; nil means b.
	// Not supported by the backward pass.
	Source []int

	// Pages replace K and V. The mask must hide the keys without a page. Not supported by the
	// backward pass.
	Pages *Pages

	// Rounded rounds the factors of products to bfloat16: queries and keys of dot products, weights and values, and in
	// the backward pass the gradients that they are multiplied by.
	Rounded bool

	Scale    float32    // of the dot product; other forms have no scale
	Additive []float32  // w [E] of the additive form wᵀ·tanh(q+k)
	Gaussian *Gaussian  // the form −½‖(q−k)∘w‖²; if Gaussian, Additive and Given are nil, the form is the dot product
	Changes  []Change   // of the scores, in this order
	Mask     []MaskRule // hides each key that some rule hides
	Sinks    []float32  // [H], scores of a virtual key without a value, which all queries attend to; nil means none

	// Only is the number b·H + h of the only head whose rows are computed; nil means all heads.
	// The results of other heads are arbitrary. Not supported by the backward pass.
	Only *int

	// Dropout drops weight number ((b·H + h)·Lq + i)·L + j of the stream Key with probability
	// Dropout and multiplies the others by 1/(1−Dropout).
	Dropout float32
	Key     uint64

	// Context ends a long call early: Forward and Backward then panic, see par.Check. Nil never
	// ends.
	Context context.Context

	Results
}

// Results are the results of Forward, in memory of the caller. Backward reads them.
type Results struct {
	Out     Heads                     // [B H Lq EV]
	Weights []float32                 // [B H Lq L], before dropout; nil if not requested
	Row     func(at Row, w []float32) // called concurrently with every row of weights [Lk]; may be nil

	// For row (b·H + h)·Lq + i: the shift m_i of its exponents and the inverse of their sum. The
	// inverse is 0 for a row that attends to no key; the shift is −Inf for a row whose scores
	// underflow.
	Shift, Inverse []float32
	LogSumExp      []float32 // of the scores of each row, including the sink; nil if not requested
}

// nonFinite reports whether the weights of a row are not finite. The conversion prevents fusing
// the product with the subtraction; a fused result would be the rounding error of the product
// instead of 0.
func (r *Results) nonFinite(row int) bool {
	if r.underflowed(row) {
		return false
	}
	x := float32(r.Shift[row] * r.Inverse[row])
	return x-x != 0
}

// underflowed reports whether the scores of a row are below the range of float32: see
// Attention.exactWeights.
func (r *Results) underflowed(row int) bool { return r.Shift[row] == negInf }

const (
	bandRows  = 96  // rows that are combined with a block of keys before the next block
	blockKeys = 512 // keys that a strip is combined with at a time
)

// TileRows and TileKeys are the numbers of queries and keys of a tile of scores. A tile in which
// no query attends to any key is skipped.
const (
	TileRows = 12 // two register tiles of six rows
	TileKeys = 64
)

var (
	negInf = float32(math.Inf(-1))
	log2e  = float32(math.Log2E)
)

// queryBlock is a set of queries that share a key head and are evenly spaced in memory, as one
// matrix.
type queryBlock struct {
	b, g  int // sequence, and head of keys
	h     int // head of the first row
	first int // its row number
	n     int
	q     simd.Mat
	heads int // of keys, whose rows follow one another; more than 1 of short heads, and q is then that of the first
}

// segment is rows that attend to the same head of keys and whose queries are evenly spaced in memory.
type segment struct {
	b, g, h int // sequence, head of keys, and head of the first row
	first   int // the row number of the first
	n       int
	q       simd.Mat
}

// part returns n rows of t, which has one head, from row r on.
func (t *queryBlock) part(r, n int) segment {
	return segment{t.b, t.g, t.h, t.first + r, n, from(t.q, r)}
}

// keys returns the number of keys, including extra keys.
func (a *Attention) keys() int { return a.Extra + a.Lk }

// masked reports whether a query may be unable to attend to some key.
func (a *Attention) masked() bool { return len(a.Mask) > 0 || a.Ragged() }

// scale returns the factor of the scores.
func (a *Attention) scale() float32 {
	switch {
	case a.Additive != nil, a.Given != nil:
		return 1
	case a.Gaussian != nil:
		return a.Gaussian.scale
	}
	return a.Scale
}

// gradScale returns the factor of the gradient of the scores in the gradients of queries and
// keys.
func (a *Attention) gradScale() float32 {
	if a.Gaussian != nil {
		return 2 * a.Gaussian.scale // the scale is of squares
	}
	return a.scale()
}

// merges reports whether the heads that share keys are consecutive in memory.
func (a *Attention) merges(x Heads) bool {
	return a.Lq == 1 || a.H == a.G || x.Head == a.Lq*x.Row
}

// rowStride returns the distance between the rows of a queryBlock.
func (a *Attention) rowStride(x Heads) int {
	if a.Lq == 1 {
		return x.Head
	}
	return x.Row
}

// highStrip returns the number of rows of a strip if all its rows attend to the same keys. With
// few keys, the strip has more rows, as many as have scores that fit in the L1 cache, because each
// strip has a fixed cost and fewer tiles are partly empty.
func (a *Attention) highStrip() int {
	if a.Pages != nil {
		return TileRows
	}
	return min(max(1, blockKeys/a.keys())*TileRows, bandRows)
}

// queryBlocks returns the number of blocks into which the queries of a key head are divided, for
// the given tensors, which have a row for each query.
func (a *Attention) queryBlocks(all ...Heads) int {
	for _, x := range all {
		if !a.merges(x) {
			return a.H / a.G
		}
	}
	return 1
}

// queryBlock returns block number i of count of key head g of sequence b.
func (a *Attention) queryBlock(b, g, i, count int) queryBlock {
	group := a.H / a.G
	h := g*group + i*group/count
	return queryBlock{
		b: b, g: g, h: h, first: (b*a.H + h) * a.Lq, n: group / count * a.Lq,
		q: a.rows(a.Q, b, h), heads: 1,
	}
}

// setSegments sets the segments of n rows of t from row r on. Of a block of several heads these are all rows.
func (w *worker) setSegments(a *Attention, t queryBlock, r, n int) {
	w.segments = append(w.segments[:0], t.part(r, n/t.heads))
	for i, b, g := 1, t.b, t.g; i < t.heads; i++ {
		if g++; g == a.G {
			b, g = b+1, 0
		}
		h, n := g*(a.H/a.G), n/t.heads
		w.segments = append(w.segments, segment{b, g, h, t.first + i*n, n, a.rows(a.Q, b, h)})
	}
}

// rows returns the vectors of a block that starts at head h.
func (a *Attention) rows(x Heads, b, h int) simd.Mat {
	return simd.RowMajor(x.at(b, h, 0), a.rowStride(x))
}

// keys returns the vectors of head g of K or V.
func keys(x Heads, b, g int) simd.Mat { return simd.RowMajor(x.at(b, g, 0), x.Row) }

// source returns the sequence of K and V that sequence b attends to.
func (a *Attention) source(b int) int {
	if a.Source == nil {
		return b
	}
	return a.Source[b]
}

// from returns m starting at row i.
func from(m simd.Mat, i int) simd.Mat {
	return simd.Mat{Data: m.Data[i*m.Row:], Row: m.Row, Col: m.Col}
}

// split returns the sequence, head and query of a row.
func (a *Attention) split(row int) (b, h, i int) {
	return row / a.Lq / a.H, row / a.Lq % a.H, row % a.Lq
}
