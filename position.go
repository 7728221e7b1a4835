package attn

import (
	"fmt"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/tensor"
)

// Position changes queries and keys by their position in the sequence before they are compared: a
// position embedding between projection and attention, such as RoPE. It is a linear map of each
// vector without parameters. Terms that depend on positions and are added to the scores (ALiBi,
// T5 buckets, relative positions) are a Bias or a ScoreChange instead.
//
// Its methods are called concurrently.
type Position interface {
	// Check returns an error unless the map accepts heads with vectors of e elements. A
	// *tensor.ShapeError may omit the operation; the caller adds it.
	Check(e int) error
	// Apply sets dst to the vector x moved to position p, which may be negative. of is Query or
	// Key, the kind of x. dst and x have the same length and may be the same slice.
	Apply(dst, x []float32, p int, of Projections)
	// Back adds to dx the gradient of x, given dy, the gradient of Apply's result at position p:
	// the transpose of the map.
	Back(dx, dy []float32, p int, of Projections)
}

// Positions are the positions of the vectors of a batch. The zero value means 0, 1, 2, … for
// keys; query i is then at i + Lk − Lq, so the last query is at the last key. At most one of the
// fields is set.
type Positions struct {
	// Offsets puts vector l at position l + offset: one offset for all sequences, or one per
	// sequence.
	Offsets []int
	// IDs puts vector l of sequence b at position IDs[b][l]. A single row applies to all
	// sequences.
	IDs [][]int
}

// given reports whether p is not the zero value.
func (p Positions) given() bool { return p.Offsets != nil || p.IDs != nil }

// check panics unless p has positions for the given number of sequences of length vectors.
func (p Positions) check(op, arg string, batches, length int) {
	if p.Offsets != nil && p.IDs != nil {
		badValue(op, arg, "Offsets and IDs", "at most one of them")
	}
	rows := max(len(p.Offsets), len(p.IDs))
	if p.given() && rows != 1 && rows != batches {
		badShape(op, arg, "number of rows", []int{rows}, "one, or one for each of B=%d sequences", batches)
	}
	for _, row := range p.IDs {
		if len(row) != length {
			badShape(op, arg, "number of positions", []int{len(row)}, "%d, one for each vector", length)
		}
	}
}

// at returns the position of vector l of sequence b.
func (p Positions) at(b, l int) int {
	switch {
	case p.IDs != nil:
		return p.IDs[min(b, len(p.IDs)-1)][l]
	case p.Offsets != nil:
		return l + p.Offsets[min(b, len(p.Offsets)-1)]
	}
	return l
}

// ApplyPosition applies a position embedding, such as RoPE, to vectors: vector l of sequence b is
// moved to its position in at. of says whether x contains queries or keys: Query or Key.
//
// Shapes: x and the result [B H L E], or [B L E].
//
// Gradients flow to x.
//
// ApplyPosition panics with a *tensor.ShapeError if p does not accept vectors of E elements, or
// if the numbers of positions and vectors differ. It panics with a *tensor.ValueError if p or x is
// nil, if of is neither Query nor Key, or if at has both Offsets and IDs.
func ApplyPosition(t *tensor.Tape, p Position, x *tensor.Tensor, of Projections, at Positions) *tensor.Tensor {
	const op = "attn: ApplyPosition"
	if p == nil {
		badValue(op, "position", "nil", "a Position")
	}
	tensor.Want(op, "x", x)
	if of != Query && of != Key {
		badValue(op, "of", fmt.Sprint(of), "Query or Key")
	}
	switch x.Rank() {
	case 3:
		x = withHeadAxis(t, op, "x", x)
		y := applyPosition(t, op, p, headFirst(x), of, at, false).x
		return tensor.Reshape(t, y, x.Dim(0), x.Dim(2), x.Dim(3))
	case 4:
		return applyPosition(t, op, p, headFirst(x), of, at, false).x
	}
	panic(&tensor.ShapeError{Op: op, Arg: "x", Got: x.Shape(), Want: "[B H L E] or [B L E]"})
}

// ends returns p, or for the zero value the default positions of queries: the last one is at the
// last key of its sequence.
func (p Positions) ends(s Sizes) Positions {
	if p.given() {
		return p
	}
	if !s.Ragged() {
		return Positions{Offsets: []int{s.Lk - s.Lq}}
	}
	offsets := make([]int, s.B)
	for b := range offsets {
		offsets[b] = s.Offset(b)
	}
	return Positions{Offsets: offsets}
}

// applyPosition returns the heads with their vectors moved to their positions: in the memory of x if it is ours and no
// gradient needs it, which is then in a cache.
func applyPosition(t *tensor.Tape, op string, p Position, x heads, of Projections, at Positions, ours bool) heads {
	panicAs(op, "position", p.Check(x.size))
	m := movement{p, of, at, x, x, x.length()}
	if !ours || t.Needs(x.x) {
		m.y = x.like(t, x.size)
	}
	at.check(op, "positions", x.batches(), m.length)
	if n := x.batches() * m.length; n <= m.chunk(n) { // without a closure, for a step of a decoder
		m.apply(0, n)
	} else {
		m.applyLong(n)
	}
	if t.Needs(x.x) {
		m.record(t)
	}
	return m.y
}

// movement is a call of applyPosition.
type movement struct {
	Position
	of     Projections
	at     Positions
	x, y   heads
	length int
}

// chunk returns the length of the chunks of a loop over the vectors of all n places in a batch.
func (m *movement) chunk(n int) int { return par.Chunk(n, 4*m.x.count*m.x.size) }

// apply moves the vectors of places lo to hi.
func (m *movement) apply(lo, hi int) {
	src, dst := m.x.x.Data(), m.y.x.Data()
	for n := lo; n < hi; n++ {
		b, l := n/m.length, n%m.length
		at := m.at.at(b, l)
		for h := range m.x.count {
			m.Apply(m.y.vector(dst, b, h, l), m.x.vector(src, b, h, l), at, m.of)
		}
	}
}

func (m movement) applyLong(n int) { par.For(n, m.chunk(n), m.apply) }

func (m movement) record(t *tensor.Tape) {
	t.Record(m.y.x, func(dy []float32) {
		dx, n := t.GradOf(m.x.x), m.x.batches()*m.length
		par.For(n, m.chunk(n), func(lo, hi int) {
			for n := lo; n < hi; n++ {
				b, l := n/m.length, n%m.length
				at := m.at.at(b, l)
				for h := range m.x.count {
					m.Back(m.x.vector(dx, b, h, l), m.y.vector(dy, b, h, l), at, m.of)
				}
			}
		})
	})
}
