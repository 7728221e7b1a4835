package attn

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/tensor"
)

// gated returns the heads multiplied by their gates, [H] or [B H], and records the gradients of
// both. A gate of zero gives zeros even if the head contains infinities or NaN, because the gate
// removes the head.
//
//	y[b,h,l]    = gates[b,h]·x[b,h,l]
//	dgates[b,h] = Σ_l x[b,h,l]·dy[b,h,l]
//
// Where dy is zero, x adds nothing to the gradient, even if x is not finite.
func gated(t *tensor.Tape, x heads, gates *tensor.Tensor) heads {
	if gates == nil {
		return x
	}
	b, n, l := x.batches(), x.count, x.length()
	own := 0 // stride between the gates of two sequences; 0 if they share gates
	if gates.Rank() == 2 {
		own = n
	}
	y := x
	y.x = t.Make(x.x.Shape()...)
	factor := func(i int) float32 { return gates.Data()[i/n*own+i%n] }
	row := func(data []float32, i, j int) []float32 { return x.vector(data, i/n, i%n, j) }
	pairs := par.Chunk(b*n, l*x.size) // pairs of sequence and head per piece of work
	par.For(b*n, pairs, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			g := factor(i)
			for j := range l {
				if to := row(y.x.Data(), i, j); g == 0 {
					clear(to)
				} else {
					simd.Scale(to, g, row(x.x.Data(), i, j))
				}
			}
		}
	})
	if t.Needs(x.x, gates) {
		t.Record(y.x, func(dy []float32) {
			dx, dgates := t.GradOf(x.x), t.GradOf(gates)
			sums := t.Floats(b * n)
			par.For(b*n, pairs, func(lo, hi int) {
				for i := lo; i < hi; i++ {
					g := factor(i)
					sum := float32(0)
					for j := range l {
						if dx != nil && g != 0 {
							simd.Axpy(g, row(dy, i, j), row(dx, i, j))
						}
						if dgates != nil {
							sum += maskedDot(row(dy, i, j), row(x.x.Data(), i, j))
						}
					}
					sums[i] = sum
				}
			})
			for i := range dgates {
				// Sequences that share a gate are summed in their order.
				for j := i; j < len(sums); j += len(dgates) {
					dgates[i] += sums[j]
				}
			}
		})
	}
	return y
}

// OutputGate is a gate for the outputs of the heads that each query computes from its input x,
//
//	head ← head ⊙ activation(x·W_gate + b_gate)
//
// with a separate map, MultiHead.Gate. A file that stores the rows of each head's query and gate one after another, as
// that of Qwen3-Next does in a query map of twice the width, is an nn.Entry of Q and Gate with Interleaved: H.
//
// A gate of zero removes what it multiplies, even if that is infinite or NaN, and an output of zero stays zero.
//
// Source: Qiu et al., "Gated Attention for Large Language Models", 2025, https://arxiv.org/abs/2505.06708.
type OutputGate struct {
	// Activation is a function of each element, such as tensor.Sigmoid or tensor.Softplus. Nil means no gate.
	Activation func(*tensor.Tape, *tensor.Tensor) *tensor.Tensor
	// Size is the number of gates of a head: ValueSize for a gate for each element, 1 for one gate for the head. 0 means
	// ValueSize.
	Size int
}

// validate fills in the default and checks the gate of a layer.
func (g *OutputGate) validate(c *MultiHeadConfig) error {
	switch {
	case g.Activation == nil && g.Size != 0:
		return fmt.Errorf("attn: NewMultiHead: output gate of size %d without an activation, want a function such as tensor.Sigmoid", g.Size)
	case g.Activation == nil:
		return nil
	case g.Size != 0 && g.Size != 1 && g.Size != c.ValueSize:
		return fmt.Errorf("attn: NewMultiHead: output gate of size %d, want 1 or the value size %d", g.Size, c.ValueSize)
	case c.QueryWidth == Infer:
		return fmt.Errorf("attn: NewMultiHead: output gate of queries of width Infer, want a positive width")
	}
	g.Size = cmp.Or(g.Size, c.ValueSize)
	return nil
}

// of returns the gates of queries; x is what the map Gate has computed.
func (g *OutputGate) of(t *tensor.Tape, x *tensor.Tensor, layout Layout, count int) heads {
	const arg = "result of the output gate's activation"
	y := g.Activation(t, x)
	tensor.Want(opMultiHead, arg, y)
	panicAs(opMultiHead, arg, tensor.CheckShape(arg, y, fmt.Sprint(x.Shape()), x.Shape()...))
	return headLast(y, layout, 0, g.Size, count)
}

// outputGated returns the heads multiplied by the gates of their queries, of the size of a head or 1, and records the
// gradients of both. A factor of zero gives zero for any other factor.
func outputGated(t *tensor.Tape, x, gates heads) heads {
	if gates.x == nil {
		return x
	}
	b, n, l, size := x.batches(), x.count, x.length(), x.size
	y := x
	y.x = t.Make(x.x.Shape()...)
	chunk := par.Chunk(b*n*l, 2*size)
	// each calls do with the outputs of a head for a query, and its gates, repeated to the size of the head.
	each := func(do func(b, h, i int, x, gate []float32)) {
		par.For(b*n*l, chunk, func(lo, hi int) {
			var repeated []float32
			if gates.size < size {
				repeated = make([]float32, size)
			}
			for k := lo; k < hi; k++ {
				b, h, i := k/(n*l), k/l%n, k%l
				gate := gates.vector(gates.x.Data(), b, h, i)
				if repeated != nil {
					for j := range repeated {
						repeated[j] = gate[0]
					}
					gate = repeated
				}
				do(b, h, i, x.vector(x.x.Data(), b, h, i), gate)
			}
		})
	}
	each(func(b, h, i int, x, gate []float32) {
		to := y.vector(y.x.Data(), b, h, i)
		clear(to)
		mulAddNonzero(to, gate, x)
	})
	if t.Needs(x.x, gates.x) {
		t.Record(y.x, func(dy []float32) {
			dx, dgates := t.GradOf(x.x), t.GradOf(gates.x)
			each(func(b, h, i int, out, gate []float32) {
				dy := y.vector(dy, b, h, i)
				if dx != nil {
					mulAddNonzero(x.vector(dx, b, h, i), gate, dy)
				}
				if dgates == nil {
					return
				}
				if d := gates.vector(dgates, b, h, i); gates.size < size {
					d[0] += maskedDot(dy, out)
				} else {
					mulAddNonzero(d, dy, out)
				}
			})
		})
	}
	return y
}

// mulAddNonzero adds x·y to dst, elementwise, where neither is zero.
func mulAddNonzero(dst, x, y []float32) {
	if simd.Finite(x) {
		simd.MulAddSparse(dst, x, y)
		return
	}
	x = slices.Clone(x)
	for i, v := range y {
		if v == 0 {
			x[i] = 0
		}
	}
	simd.MulAddSparse(dst, x, y)
}

// maskedDot returns Σ dy·x over the elements where dy is not zero.
func maskedDot(dy, x []float32) float32 {
	sum := simd.Dot(dy, x)
	if math.IsNaN(float64(sum)) {
		sum = 0
		for i, d := range dy {
			if d != 0 {
				sum += float32(d * x[i])
			}
		}
	}
	return sum
}

// checkGates panics unless gates has a gate for each head.
func checkGates(op string, gates *tensor.Tensor, s Sizes) {
	if gates == nil {
		return
	}
	rank := gates.Rank()
	if rank < 1 || rank > 2 || gates.Dim(rank-1) != s.H || rank == 2 && gates.Dim(0) != s.B {
		badShape(op, "gates", "", gates.Shape(), "[H=%d] or [B=%d H=%d]", s.H, s.B, s.H)
	}
}

// GateHeads multiplies the heads of x by their gates. A gate of 0 gives zeros even if the head contains infinities or
// NaN. Attention does this with Options.Gates.
//
// Shapes: x [B H L E], gates [H] or [B H]. Gradients flow to both.
//
// GateHeads panics with a *tensor.ShapeError if the shapes do not fit, and with a *tensor.ValueError if x or gates is nil.
func GateHeads(t *tensor.Tape, x, gates *tensor.Tensor) *tensor.Tensor {
	const op = "attn: GateHeads"
	tensor.Want(op, "x", x)
	tensor.Want(op, "gates", gates)
	if x.Rank() != 4 {
		badShape(op, "x", "", x.Shape(), "[B H L E]")
	}
	checkGates(op, gates, Sizes{B: x.Dim(0), H: x.Dim(1)})
	return gated(t, headFirst(x), gates).x
}
