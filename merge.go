package attn

import (
	"fmt"
	"slices"

	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/tensor"
)

// Merge combines attention to parts of the keys into attention to all keys, as flash
// decoding and ring attention do. With L_p the
// log-sum-exp of part p:
//
//	log-sum-exp  L = ln Σ_p exp(L_p)
//	out          Σ_p exp(L_p − L)·out_p
//	weights      exp(L_p − L)·weights_p, concatenated
//
// The parts are results of Attend for the same queries and options, with Options.LogSumExp. Each
// key is in exactly one part. Several machines can compute the parts, as in ring attention, or
// one machine can compute them one by one to save memory.
//
// Anything that depends on the position of a key must take the first key of the part into
// account: for a part that starts at key n of all keys, CausalAt(offset) becomes CausalAt(offset
// − n). Only one part may have sinks. Weights are merged if all parts have them.
//
// The log-sum-exp is rounded to float32, so one of magnitude L adds a relative error of about
// L·2⁻²⁴ to the weights. A part in which a query attends to no key does not change the query's
// result.
//
// Shapes:
//
//	out_p, out  [B H Lq V]   or [B Lq V]
//	L_p, L      [B H Lq]     or [B Lq]
//	weights     [B H Lq ΣLk] or [B Lq ΣLk]
//
// Gradients flow to every tensor of the parts. A part whose weight underflows to 0 gets no
// gradient, even if it contains NaN.
//
// Merge panics with a *tensor.ShapeError if the shapes of the parts differ, and with a
// *tensor.ValueError if parts is empty or a part lacks its log-sum-exp.
//
// Source: Liu, Zaharia and Abbeel, "Ring Attention with Blockwise Transformers for
// Near-Infinite Context", 2023, https://arxiv.org/abs/2310.01889, section 3.
func Merge(t *tensor.Tape, parts ...Output) Output {
	const op = "attn: Merge"
	checkParts(op, parts)
	rows := parts[0].LogSumExp.Shape()
	axis := len(rows) // the one along which the parts are concatenated
	outs, sums := make([]*tensor.Tensor, len(parts)), make([]*tensor.Tensor, len(parts))
	weighted := true
	for p, part := range parts {
		outs[p], sums[p] = part.Out, tensor.Reshape(t, part.LogSumExp, append(slices.Clone(rows), 1)...)
		weighted = weighted && part.Weights != nil
	}
	// The result is a softmax over the parts, as a part is a softmax over its keys.
	all := tensor.Concat(t, axis, sums...) // [B H Lq parts]
	share := tensor.Softmax(t, all)
	y := Output{Out: weightedSum(t, share, outs), LogSumExp: tensor.LogSumExp(t, all)}
	if weighted {
		weights := make([]*tensor.Tensor, len(parts))
		for p, part := range parts {
			weights[p] = tensor.Mul(t, part.Weights, tensor.Slice(t, share, axis, p, p+1))
		}
		y.Weights = tensor.Concat(t, axis, weights...)
	}
	return y
}

// weightedSum returns Σ_p w_p·x_p for each row. Where a weight is 0, x_p is not read.
//
// Shapes: w [… P], x_p and out [… V].
func weightedSum(t *tensor.Tape, w *tensor.Tensor, xs []*tensor.Tensor) *tensor.Tensor {
	n, size := len(xs), xs[0].Dim(-1)
	y := t.Make(xs[0].Shape()...)
	// each calls begin for each row, whose vectors begin at i, and then f for each part of the
	// row with a nonzero weight.
	each := func(f func(weight, p, i int), begin func(i int)) {
		par.For(w.Len()/n, par.Chunk(w.Len()/n, n*size), func(lo, hi int) {
			for r := lo; r < hi; r++ {
				begin(r * size)
				for p, x := range w.Data()[r*n:][:n] {
					if x != 0 {
						f(r*n+p, p, r*size)
					}
				}
			}
		})
	}
	each(func(weight, p, i int) {
		simd.Axpy(w.Data()[weight], xs[p].Data()[i:][:size], y.Data()[i:][:size])
	}, func(i int) { clear(y.Data()[i:][:size]) })
	if t.Needs(append([]*tensor.Tensor{w}, xs...)...) {
		t.Record(y, func(dy []float32) {
			dw, dxs := t.GradOf(w), make([][]float32, n)
			for p, x := range xs {
				dxs[p] = t.GradOf(x)
			}
			each(func(weight, p, i int) {
				d := dy[i:][:size]
				if dxs[p] != nil {
					simd.Axpy(w.Data()[weight], d, dxs[p][i:][:size])
				}
				if dw != nil {
					dw[weight] += maskedDot(d, xs[p].Data()[i:][:size])
				}
			}, func(int) {})
		})
	}
	return y
}

// checkParts panics unless the parts can be merged.
func checkParts(op string, parts []Output) {
	if len(parts) == 0 {
		badValue(op, "parts", "none", "at least one")
	}
	for p, part := range parts {
		arg := func(what string) string { return fmt.Sprintf("%s of part %d", what, p) }
		tensor.Want(op, arg("output"), part.Out)
		if part.LogSumExp == nil {
			badValue(op, arg("log-sum-exp"), "nil", "a tensor: ask for it with Options.LogSumExp")
		}
		got, want := part.Out.Shape(), parts[0].Out.Shape()
		if len(got) < 3 || len(got) > 4 {
			badShape(op, arg("output"), "", got, "[B H Lq V] or [B Lq V]")
		}
		if !slices.Equal(got, want) {
			badShape(op, arg("output"), "", got, "%v as in part 0", want)
		}
		rows := got[:len(got)-1]
		if x := part.LogSumExp.Shape(); !slices.Equal(x, rows) {
			badShape(op, arg("log-sum-exp"), "", x, "%v as in its output", rows)
		}
		if part.Weights == nil {
			continue
		}
		if x := part.Weights.Shape(); len(x) != len(got) || !slices.Equal(x[:len(rows)], rows) {
			badShape(op, arg("weights"), "", x, "%v and an axis of keys", rows)
		}
	}
}
