package nn

import (
	"math/rand/v2"

	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/tensor"
)

// LSTM is one layer of long short-term memory. For each step, with input x, previous state h and previous memory c,
//
//	i = σ(W_ii x + b_ii + W_hi h + b_hi)
//	f = σ(W_if x + b_if + W_hf h + b_hf)
//	g = tanh(W_ig x + b_ig + W_hg h + b_hg)
//	o = σ(W_io x + b_io + W_ho h + b_ho)
//	c' = f∘c + i∘g
//	h' = o∘tanh(c')
//
// The weights of the four gates are stacked in the order i, f, g, o, as PyTorch stores them.
//
// Source: Hochreiter and Schmidhuber, "Long Short-Term Memory", 1997, Neural Computation 9. The forget gate f is from
// Gers et al., "Learning to Forget", 2000, Neural Computation 12.
type LSTM struct {
	CellWeights
}

// NewLSTM returns a layer from in features to hidden units, initialised as in PyTorch: all parameters uniform in
// ±1/√hidden.
func NewLSTM(in, hidden int, rng *rand.Rand) *LSTM {
	return &LSTM{CellWeights: newCellWeights(in, hidden, 4, rng)}
}

// Forward runs the layer over a batch of sequences, from the state h0 and the memory c0 (each nil for zeros). If lens
// is not nil, it gives the length of each sequence: after it, the output is zero, and state and memory do not change.
// lens must not change until Backward.
//
// Shapes:
//
//	x      [B L D]
//	h0, c0 [B H]
//	out    [B L H]  the state after each step
//	h, c   [B H]    state and memory after the last step of each sequence
//
// Gradients flow to x, h0, c0 and all parameters. It panics with a *tensor.ShapeError if the shapes do not match or a
// length is out of range.
func (m *LSTM) Forward(t *tensor.Tape, x, h0, c0 *tensor.Tensor, lens []int, dir Direction) (out, h, c *tensor.Tensor) {
	cell := cell{op: "nn: LSTM", gates: 4, states: 2, kept: 1, forward: lstmForward, backward: lstmBackward}
	out, states := m.unroll(t, cell, x, []Var{{"h0", h0}, {"c0", c0}}, lens, dir)
	return out, states[0], states[1]
}

// lstmForward uses h and c as the states. It leaves i, f, g and o in rec and keeps tanh(c').
func lstmForward(s cellStep) {
	n := len(s.kept)
	simd.Add(s.rec, s.in, s.rec)
	simd.Sigmoid(s.rec[:2*n], s.rec[:2*n])
	simd.Tanh(s.rec[2*n:3*n], s.rec[2*n:3*n])
	simd.Sigmoid(s.rec[3*n:], s.rec[3*n:])
	i, f, g, o := s.rec[:n], s.rec[n:2*n], s.rec[2*n:3*n], s.rec[3*n:]
	h, c := s.after[:n], s.after[n:]
	for j, before := range s.before[n:] {
		c[j] = float32(f[j]*before) + float32(i[j]*g[j])
	}
	simd.Tanh(s.kept, c)
	simd.Mul(h, o, s.kept)
}

func lstmBackward(s cellStep, d, drec, din []float32) {
	n := len(s.kept)
	for j, tc := range s.kept { // tanh(c')
		i, f, g, o := s.rec[j], s.rec[n+j], s.rec[2*n+j], s.rec[3*n+j]
		dh := d[j]
		dc := d[n+j] + times(dh, o*(1-float32(tc*tc)))
		drec[j] = times(dc, g*i*(1-i))
		drec[n+j] = times(dc, s.before[n+j]*f*(1-f))
		drec[2*n+j] = times(dc, i*(1-float32(g*g)))
		drec[3*n+j] = times(dh, tc*o*(1-o))
		d[j], d[n+j] = 0, times(dc, f)
	}
	copy(din, drec)
}
