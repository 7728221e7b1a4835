package nn

import (
	"math/rand/v2"

	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/tensor"
)

// GRU is one layer of gated recurrent units. For each step, with input x and previous state h,
//
//	r = σ(W_ir x + b_ir + W_hr h + b_hr)
//	z = σ(W_iz x + b_iz + W_hz h + b_hz)
//	n = tanh(W_in x + b_in + r∘(W_hn h + b_hn))
//	h' = (1−z)∘n + z∘h
//
// The weights of the three gates are stacked in the order r, z, n, as PyTorch stores them.
//
// Source: Cho et al., "Learning Phrase Representations using RNN Encoder–Decoder", 2014,
// https://arxiv.org/abs/1406.1078. The reset gate is applied after the recurrent product, as in PyTorch and cuDNN.
type GRU struct {
	CellWeights
}

// NewGRU returns a layer from in features to hidden units, initialised as in PyTorch: all parameters uniform in
// ±1/√hidden.
func NewGRU(in, hidden int, rng *rand.Rand) *GRU {
	return &GRU{CellWeights: newCellWeights(in, hidden, 3, rng)}
}

// Forward runs the layer over a batch of sequences, from the state h0 (nil for zeros). If lens is not nil, it gives
// the length of each sequence: after it, the output is zero and the state does not change. lens must not change until
// Backward.
//
// Shapes:
//
//	x     [B L D]
//	h0    [B H]
//	out   [B L H]  the state after each step
//	last  [B H]    the state after the last step of each sequence
//
// Gradients flow to x, h0 and all parameters. It panics with a *tensor.ShapeError if the shapes do not match or a
// length is out of range.
func (g *GRU) Forward(t *tensor.Tape, x, h0 *tensor.Tensor, lens []int, dir Direction) (out, last *tensor.Tensor) {
	c := cell{op: "nn: GRU", gates: 3, states: 1, kept: 3, forward: gruForward, backward: gruBackward}
	out, states := g.unroll(t, c, x, []Var{{"h0", h0}}, lens, dir)
	return out, states[0]
}

// gruForward keeps r, z and n for the backward pass.
func gruForward(s cellStep) {
	h := len(s.after)
	simd.Add(s.kept[:2*h], s.in[:2*h], s.rec[:2*h])
	simd.Sigmoid(s.kept[:2*h], s.kept[:2*h])
	r, z, n := s.kept[:h], s.kept[h:2*h], s.kept[2*h:]
	for j := range n {
		n[j] = s.in[2*h+j] + float32(r[j]*s.rec[2*h+j])
	}
	simd.Tanh(n, n)
	for j, v := range n {
		s.after[j] = v + float32(z[j]*(s.before[j]-v)) // (1−z)∘n + z∘h
	}
}

func gruBackward(s cellStep, d, drec, din []float32) {
	h := len(d)
	for j, dh := range d {
		if dh == 0 { // a gradient of zero contributes nothing
			din[j], din[h+j], din[2*h+j] = 0, 0, 0
			drec[j], drec[h+j], drec[2*h+j] = 0, 0, 0
			d[j] = 0
			continue
		}
		r, z, n := s.kept[j], s.kept[h+j], s.kept[2*h+j]
		dn := dh * (1 - z) * (1 - float32(n*n))    // before tanh
		dz := dh * (s.before[j] - n) * z * (1 - z) // before σ
		dr := dn * s.rec[2*h+j] * r * (1 - r)      // before σ
		din[j], din[h+j], din[2*h+j] = dr, dz, dn
		drec[j], drec[h+j], drec[2*h+j] = dr, dz, dn*r
		d[j] = dh * z
	}
}
