package attn

import (
	"math"

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
