package flash

import (
	"math"

	"github.com/attn-go/attn/internal/simd"
)

// Heads says where the vectors of a batch lie: vector l of head h of sequence b
// starts at Data[b·Batch + h·Head + l·Row].
type Heads struct {
	Data             []float32
	Batch, Head, Row int
}

// HeadFirst returns the layout [B H L E], without gaps.
func HeadFirst(data []float32, heads, length, size int) Heads {
	return Heads{data, heads * length * size, length * size, size}
}

// at returns the part of the data that starts with a vector.
func (h Heads) at(b, head, l int) []float32 { return h.Data[b*h.Batch+head*h.Head+l*h.Row:] }

// Attention describes one call: what is computed of what, and where the results go. Forward and
// Backward share it.
type Attention struct {
	Sizes       // of the caller's queries and keys
	Extra int   // keys in front of those Lk, to which every query attends
	E, EV int   // sizes of a query and a key, and of a value
	Q     Heads // [B H Lq E]
	K, V  Heads // [B G L E] and [B G L EV] for all L = Extra + Lk keys

	// Given are scores [B H Lq L] in place of Q and K, of a form that tiles do not compute.
	// E is then 0.
	Given []float32

	// Source is the sequence of K and V to which each sequence of queries attends; nil
	// means its own. There is no backward pass.
	Source []int

	// Pages are in place of K and V. The mask must hide the keys for which there is no
	// page. There is no backward pass.
	Pages *Pages

	Scale    float32    // of the dot product; the other forms have none
	Additive []float32  // w [E] of the additive form wᵀ·tanh(q+k)
	Gaussian *Gaussian  // the form −½‖(q−k)∘w‖²; without both and Given it is the dot product
	Changes  []Change   // of the scores, one after the other
	Mask     []MaskRule // hides what any of them hides
	Sinks    []float32  // [H], scores of a key without a value, to which all queries attend; nil means none

	// Only is the head whose rows are computed, of those of all sequences by number b·H + h;
	// nil means all. What the results hold of others is arbitrary. There is no backward pass.
	Only *int

	// Dropout drops weight number ((b·H + h)·Lq + i)·L + j of the stream Key
	// with probability Dropout and multiplies the others by 1/(1−Dropout).
	Dropout float32
	Key     uint64

	Results
}

// Results is what Forward computes, in memory of the caller's. Backward reads it.
type Results struct {
	Out     Heads                     // [B H Lq EV]
	Weights []float32                 // [B H Lq L], before dropout; nil if not asked for
	Row     func(at Row, w []float32) // called concurrently with every row of weights [Lk]; may be nil

	// For row (b·H + h)·Lq + i the shift m_i of its exponents and the inverse of their sum, 0
	// for a row that attends to no key, and a shift of −Inf for one whose scores underflow.
	Shift, Inverse []float32
	LogSumExp      []float32 // of the scores of each row, with the sink; nil if not asked for
}

// nonFinite reports whether the weights of a row are not finite. The conversion keeps
// the product from being fused with the subtraction, whose result would be the
// rounding error of the product and not 0.
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
	vectorRows = 12  // of a strip: two tiles of six
	tileRows   = 32  // of a strip on tile units
	bandRows   = 96  // that meet a block of keys before the next comes
	blockKeys  = 512 // that a strip meets at a time
)

// TileRows and TileKeys are of how many queries and keys scores are computed at a time:
// a tile in which no query attends to any key is passed over.
const (
	TileRows = vectorRows
	TileKeys = 64
)

var (
	negInf = float32(math.Inf(-1))
	log2e  = float32(math.Log2E)
)

// queryBlock is queries that share a key head and are evenly spaced in memory, as one
// matrix.
type queryBlock struct {
	b, h  int // sequence, and head of the first row
	first int // its row number
	n     int
	q     simd.Mat
}

// keys returns the number of all keys.
func (a *Attention) keys() int { return a.Extra + a.Lk }

// masked reports whether some query may not attend to all keys.
func (a *Attention) masked() bool { return len(a.Mask) > 0 || a.Ragged() }

// scale is what the scores are multiplied by.
func (a *Attention) scale() float32 {
	switch {
	case a.Additive != nil, a.Given != nil:
		return 1
	case a.Gaussian != nil:
		return a.Gaussian.scale
	}
	return a.Scale
}

// gradScale is what the gradient of the scores is multiplied by before that of queries and
// keys is made of it.
func (a *Attention) gradScale() float32 {
	if a.Gaussian != nil {
		return 2 * a.Gaussian.scale // of squares
	}
	return a.scale()
}

// merges reports whether the heads that share keys continue one another.
func (a *Attention) merges(x Heads) bool {
	return a.Lq == 1 || a.H == a.G || x.Head == a.Lq*x.Row
}

// rowStride returns the distance of the rows of a queryBlock.
func (a *Attention) rowStride(x Heads) int {
	if a.Lq == 1 {
		return x.Head
	}
	return x.Row
}

// tiles reports whether some products are on tile units.
func (a *Attention) tiles() bool { return simd.TilesForHeads(a.E) || simd.TilesForHeads(a.EV) }

// stripRows returns how many rows a strip has whose rows attend to different keys.
func (a *Attention) stripRows() int {
	if a.tiles() {
		return tileRows
	}
	return vectorRows
}

// highStrip returns how many rows a strip has whose rows attend to the same keys. Of few keys
// it has as many scores as others, which fit in the first-level cache, so that there are fewer
// strips to begin and fewer tiles that are not full.
func (a *Attention) highStrip() int {
	if a.tiles() || a.Pages != nil {
		return a.stripRows()
	}
	return min(max(1, blockKeys/a.keys())*vectorRows, bandRows)
}

// queryBlocks returns into how many blocks the queries of a key head fall, for
// the tensors that have a row for each query.
func (a *Attention) queryBlocks(all ...Heads) int {
	for _, x := range all {
		if !a.merges(x) {
			return a.H / a.G
		}
	}
	return 1
}

// queryBlock returns number i of count of the key head g of sequence b.
func (a *Attention) queryBlock(b, g, i, count int) queryBlock {
	group := a.H / a.G
	h := g*group + i*group/count
	return queryBlock{
		b: b, h: h, first: (b*a.H + h) * a.Lq, n: group / count * a.Lq,
		q: a.rows(a.Q, b, h),
	}
}

// rows returns the vectors of a block that starts with head h.
func (a *Attention) rows(x Heads, b, h int) simd.Mat {
	return simd.Mat{Data: x.at(b, h, 0), Row: a.rowStride(x), Col: 1}
}

// keys returns the vectors of head g of K or V.
func keys(x Heads, b, g int) simd.Mat { return simd.Mat{Data: x.at(b, g, 0), Row: x.Row, Col: 1} }

// source returns the sequence of K and V to which sequence b attends.
func (a *Attention) source(b int) int {
	if a.Source == nil {
		return b
	}
	return a.Source[b]
}

// from returns m from row i on.
func from(m simd.Mat, i int) simd.Mat {
	return simd.Mat{Data: m.Data[i*m.Row:], Row: m.Row, Col: m.Col}
}

// finite reports whether all elements of some rows are.
func finite(m simd.Mat, rows, cols int) bool {
	if m.Row == cols {
		return simd.Finite(m.Data[:rows*cols])
	}
	for i := range rows {
		if !simd.Finite(m.Data[i*m.Row:][:cols]) {
			return false
		}
	}
	return true
}

// split returns sequence, head and query of a row.
func (a *Attention) split(row int) (b, h, i int) {
	return row / a.Lq / a.H, row / a.Lq % a.H, row % a.Lq
}
