package tensor

import (
	"slices"
	"sync/atomic"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
)

// MatMul returns the matrix product a·b over the last two axes.
//
// Shapes:
//
//	a    [… M K]
//	b    [… K N]   the same leading axes as a, or none: then b is shared
//	out  [… M N]
func MatMul(t *Tape, a, b *Tensor) *Tensor { return product(t, "MatMul", a, b, false, false) }

// MatMulT returns a·bᵀ over the last two axes: the dot product of every row of
// a with every row of b.
//
// Shapes:
//
//	a    [… M K]
//	b    [… N K]   the same leading axes as a, or none: then b is shared
//	out  [… M N]
func MatMulT(t *Tape, a, b *Tensor) *Tensor { return product(t, "MatMulT", a, b, true, false) }

// Mix returns w·v over the last two axes, as MatMul does, except that a weight of exactly zero masks its row of v:
// the row contributes nothing, even if it contains NaN or Inf.
func Mix(t *Tape, w, v *Tensor) *Tensor { return product(t, "Mix", w, v, false, true) }

// product is a·b, or a·bᵀ if transposed. In a sparse product, and in every
// product of a backward pass, zero times anything is zero.
func product(t *Tape, op string, a, b *Tensor, transposed, sparse bool) *Tensor {
	operand(op, "a", a)
	operand(op, "b", b)
	if a.Rank() < 2 {
		badShape(op, "a", a.shape, "at least two axes")
	}
	if b.Rank() < 2 {
		badShape(op, "b", b.shape, "at least two axes")
	}
	lead := a.shape[:a.Rank()-2]
	m, k := a.Dim(-2), a.Dim(-1)
	shared := b.Rank() == 2
	if !shared && !slices.Equal(lead, b.shape[:b.Rank()-2]) {
		badShape(op, "b", b.shape, "leading axes %v as in a", lead)
	}
	kb, n := b.Dim(-2), b.Dim(-1)
	if transposed {
		kb, n = n, kb
	}
	if kb != k {
		badShape(op, "b", b.shape, "K=%d as in a %v", k, a.shape)
	}
	count, stepB := size(lead), k*n
	if shared { // one tall product
		m, count, stepB = m*count, 1, 0
	}

	out := t.makeRows(a.shape, n)
	if count == 0 { // then all operands are empty too
		if t.Needs(a, b) {
			t.Record(out, func([]float32) {
				t.GradOf(a)
				t.GradOf(b)
			})
		}
		return out
	}
	bm := simd.RowMajor(b.data, b.Dim(-1))
	if transposed {
		bm = bm.T()
	}
	am := simd.RowMajor(a.data, k)
	simd.Multiply(&simd.Product{
		M: m, N: n, K: k, A: am, B: bm, C: simd.RowMajor(out.data, n),
		Count: count, StepA: m * k, StepB: stepB, StepC: m * n, Sparse: sparse, Context: t.Context(),
	})
	if t.Needs(a, b) {
		t.Record(out, func(dout []float32) {
			d := simd.RowMajor(dout, n)
			sparse := !finite(dout, a.data, b.data)
			t.addProduct(a, simd.Product{ // dA += dOut·Bᵀ
				M: m, N: k, K: n, A: d, B: bm.T(), Count: count, StepA: m * n, StepB: stepB, StepC: m * k, Sparse: sparse,
			})
			if transposed { // dB += dOutᵀ·A
				t.addProduct(b, simd.Product{
					M: n, N: k, K: m, A: d.T(), B: am, Count: count, StepA: m * n, StepB: m * k, StepC: k * n, Sparse: sparse,
				})
			} else { // dB += Aᵀ·dOut
				t.addProduct(b, simd.Product{
					M: k, N: n, K: m, A: am.T(), B: d, Count: count, StepA: m * k, StepB: m * n, StepC: k * n, Sparse: sparse,
				})
			}
		})
	}
	return out
}

// addProduct adds a product to the gradient of x, if one flows to it.
func (t *Tape) addProduct(x *Tensor, p simd.Product) {
	if dx, fresh := t.FreshGradOf(x); dx != nil {
		product := p // allocated only where a gradient flows
		product.C, product.Accumulate, product.Context = simd.RowMajor(dx, x.Dim(-1)), !fresh, t.Context()
		simd.Multiply(&product)
	}
}

// Linear returns x·wᵀ + b, the affine map of every vector along the last axis.
//
// Shapes:
//
//	x    [… In]
//	w    [Out In]
//	b    [Out], or nil for none
//	out  [… Out]
func Linear(t *Tape, x, w, b *Tensor) *Tensor {
	const op = "Linear"
	n, in := rows(op, x)
	operand(op, "w", w)
	if w.Rank() != 2 || w.shape[1] != in {
		badShape(op, "w", w.shape, "[Out In=%d]", in)
	}
	width := w.shape[0]
	out := t.makeRows(x.shape, width)
	var bias []float32
	if b != nil {
		sameShape(op, "b", b, w.shape[:1])
		bias = b.data
	}
	rounded := t.Format() == BFloat16
	xm, wm := simd.RowMajor(x.data, in), simd.RowMajor(w.data, in)
	simd.Multiply(&simd.Product{
		M: n, N: width, K: in, A: xm, B: wm.T(), C: simd.RowMajor(out.data, width), Bias: bias,
		Blocks: true, Rounded: rounded, Context: t.Context(),
	})
	if t.Needs(x, w, b) {
		t.Record(out, func(dout []float32) {
			d := simd.RowMajor(dout, width)
			sparse := !finite(dout, x.data, w.data)
			t.addProduct(x, simd.Product{ // dX += dOut·W
				M: n, N: in, K: width, A: d, B: wm, Sparse: sparse, Blocks: true, Rounded: rounded,
			})
			// dW += dOutᵀ·X. No blocks here: with them, rows of zeros between other rows change the sums, so
			// padding would change the gradients.
			t.addProduct(w, simd.Product{M: width, N: in, K: n, A: d.T(), B: xm, Sparse: sparse, Rounded: rounded})
			if db := t.GradOf(b); db != nil {
				sumRows(db, dout)
			}
		})
	}
	return out
}

// finite reports whether no element is NaN or infinite, so that zero times any element is zero. Checking the operands
// of a step once saves a check in each of its products.
func finite(a, b, c []float32) bool {
	if small(len(a) + len(b) + len(c)) {
		return simd.Finite(a) && simd.Finite(b) && simd.Finite(c)
	}
	return finiteLong(a, b, c)
}

func finiteLong(a, b, c []float32) bool {
	var bad atomic.Bool
	n := len(a) + len(b) + len(c)
	par.For(n, par.ChunkOfNumbers(n, costAdd), func(lo, hi int) {
		for _, x := range [...][]float32{a, b, c} {
			if from, to := max(lo, 0), min(hi, len(x)); from < to && !simd.Finite(x[from:to]) {
				bad.Store(true)
			}
			lo, hi = lo-len(x), hi-len(x)
		}
	})
	return !bad.Load()
}
