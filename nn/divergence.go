package nn

import "github.com/attn-go/attn/tensor"

// KLDivergence returns the Kullback–Leibler divergence of the probabilities p from q, both given by their logits:
//
//	kl = Σ_c p_c·ln(p_c/q_c),   p = softmax(of), q = softmax(from)
//
// It is 0 if p and q are equal, and never negative except by rounding.
//
// Shapes: of and from [N C]; out [N]. Unit: nats. Gradients flow to both.
//
// Source: Kullback and Leibler, "On Information and Sufficiency", 1951.
func KLDivergence(t *tensor.Tape, of, from *tensor.Tensor) *tensor.Tensor {
	p, q := tensor.LogSoftmax(t, of), tensor.LogSoftmax(t, from)
	// Subtract the logarithms first: if p and q are nearly equal, the sums of p·ln p and p·ln q would lose the
	// difference.
	return tensor.SumAxis(t, tensor.Mul(t, tensor.Exp(t, p), tensor.Sub(t, p, q)), 1)
}
