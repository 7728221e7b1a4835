package tensor

import (
	"fmt"
	"math"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
)

// Dropout sets each element to zero with probability p and multiplies the rest
// by 1/(1−p). On a tape that is not in mode Train it returns x itself.
//
// The dropped elements depend only on the tape's seed and step, on the number of random operations since Seed, and on
// each element's index. The backward pass therefore recomputes them instead of storing them.
//
// It panics with a *ValueError if p is outside [0, 1), or if it would drop elements on a tape without a seed.
//
// Source: Srivastava et al., "Dropout", 2014, JMLR 15.
func Dropout(t *Tape, x *Tensor, p float32) *Tensor {
	operand("Dropout", "x", x)
	d, some := t.drop("Dropout", p)
	if !some {
		return x
	}
	return residual{y: x, z: t.Make(x.shape...), drops: d, some: true}.compute(t)
}

// AddDropout returns x + Dropout(y), computed in one pass: the sum at the end of a residual block. The operands must
// have the same shape.
func AddDropout(t *Tape, x, y *Tensor, p float32) *Tensor {
	return addDropout(t, "AddDropout", x, y, p).compute(t)
}

// residual is z = x + Dropout(y), elementwise. A nil x counts as zeros.
type residual struct {
	x, y, z *Tensor
	drops
	some bool // whether elements may be dropped
}

// addDropout returns the sum of an operation, which the caller must compute.
func addDropout(t *Tape, op string, x, y *Tensor, p float32) residual {
	operand(op, "x", x)
	sameShape(op, "y", y, x.shape)
	d, some := t.drop(op, p)
	return residual{x, y, t.Make(y.shape...), d, some}
}

// cost returns the cost of an element.
func (r *residual) cost() int {
	if r.some {
		return costExp
	}
	return costAdd
}

// compute computes and records z.
func (r residual) compute(t *Tape) *Tensor {
	switch n := len(r.z.data); {
	case n > par.ChunkOfNumbers(n, r.cost()):
		r.computeLong()
	case n > 0: // without a closure, as in unary
		r.fill(0, n)
	}
	if t.Needs(r.x, r.y) {
		r.record(t)
	}
	return r.z
}

func (r residual) record(t *Tape) {
	t.Record(r.z, func(dz []float32) { r.back(t, dz) })
}

// back is the backward step of z.
func (r *residual) back(t *Tape, dz []float32) {
	par.For(len(dz), par.ChunkOfNumbers(len(dz), r.cost()), r.grads(t, dz).add)
}

func (r residual) computeLong() {
	par.For(len(r.z.data), par.ChunkOfNumbers(len(r.z.data), r.cost()), func(lo, hi int) { r.fill(lo, hi) })
}

// fill computes elements lo to hi.
func (r *residual) fill(lo, hi int) {
	switch {
	case !r.some:
		simd.Add(r.z.data[lo:hi], r.x.data[lo:hi], r.y.data[lo:hi])
	case r.x == nil:
		r.set(r.z.data, r.y.data, lo, hi)
	default:
		r.sum(r.z.data, r.x.data, r.y.data, lo, hi)
	}
}

// residualGrads are the gradients of a residual.
type residualGrads struct {
	*residual
	dx, dy, dz     []float32 // dx and dy are nil if they are not needed
	freshX, freshY bool
}

// grads returns the gradients for a backward step.
func (r *residual) grads(t *Tape, dz []float32) *residualGrads {
	g := &residualGrads{residual: r, dz: dz}
	g.dx, g.freshX = t.FreshGradOf(r.x)
	g.dy, g.freshY = t.FreshGradOf(r.y) // the same as dx if y is x
	return g
}

// add adds elements lo to hi of dz to the gradients of x and y.
func (g *residualGrads) add(lo, hi int) {
	dx, dy, dz := g.dx, g.dy, g.dz
	switch {
	case g.some && g.freshX:
		copy(dx[lo:hi], dz[lo:hi])
	case dx != nil:
		clearIf(g.freshX, dx[lo:hi])
		simd.Add(dx[lo:hi], dx[lo:hi], dz[lo:hi])
	}
	switch {
	case dy == nil:
	case !g.some:
		clearIf(g.freshY, dy[lo:hi])
		simd.Add(dy[lo:hi], dy[lo:hi], dz[lo:hi])
	case g.freshY:
		g.set(dy, dz, lo, hi)
	default:
		g.sum(dy, dy, dz, lo, hi)
	}
}

// drops describes the elements that an operation drops.
type drops struct {
	key       uint64
	threshold uint32
	keep      float32 // factor of the kept elements
}

// drop starts an operation that drops with probability p. some is false if this tape drops nothing.
func (t *Tape) drop(op string, p float32) (d drops, some bool) {
	if !(p >= 0 && p < 1) {
		badValue(op, "p", fmt.Sprint(p), "a probability in [0, 1)")
	}
	if !t.Training() || p == 0 {
		return d, false
	}
	return drops{t.Stream(), uint32(math.Round(float64(p) * (1 << 32))), 1 / (1 - p)}, true
}

// set sets elements lo to hi of y to the kept elements of x, and 0 elsewhere.
func (d drops) set(y, x []float32, lo, hi int) {
	simd.Dropout(y[lo:hi], x[lo:hi], d.key, lo, d.threshold, d.keep)
}

// sum sets elements lo to hi of z to x plus the kept elements of y.
func (d drops) sum(z, x, y []float32, lo, hi int) {
	simd.DropoutAdd(z[lo:hi], x[lo:hi], y[lo:hi], d.key, lo, d.threshold, d.keep)
}
