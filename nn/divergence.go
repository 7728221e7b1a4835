package nn

import "github.com/attn-go/attn/tensor"

// KLDivergence returns how far the probabilities q are from p, both given by their logits:
//
//	kl = Σ_c p_c·ln(p_c/q_c),   p = softmax(of), q = softmax(from)
//
// It is 0 where they are the same, and never negative but for rounding.
//
// Shapes: of and from [N C]; out [N]. Unit: nats. Gradients flow to both.
//
// Source: Kullback and Leibler, "On Information and Sufficiency", 1951.
func KLDivergence(t *tensor.Tape, of, from *tensor.Tensor) *tensor.Tensor {
	p, q := tensor.LogSoftmax(t, of), tensor.LogSoftmax(t, from)
	// The logarithms are subtracted first: where the two hardly differ, the sums over
	// p·ln p and p·ln q would have lost the difference.
	return tensor.SumAxis(t, tensor.Mul(t, tensor.Exp(t, p), tensor.Sub(t, p, q)), 1)
}
