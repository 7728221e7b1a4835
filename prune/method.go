package prune

import (
	"fmt"
	"slices"

	"github.com/attn-go/attn/internal/quote"
)

// Method is a measure of how important a head is. The larger a score, the more important the head.
//
// L is the loss of all examples. L(x) is the loss of example x, the sum over its tokens. gate_h is the
// factor of head h's output: 1. A mean over tokens divides by the number of terms of the loss, see Outcome.
// A pass is a forward run over all the data; a backward pass counts as two. H is the number of heads of all
// layers.
type Method uint8

const (
	// LeaveOneOut is the increase in loss without the head:
	//
	//	(L with gate_h = 0 − L) / terms
	//
	// It is negative if the model is better without the head. Unit: nats per token. Cost: H+1 passes.
	//
	// Source: Michel et al., "Are Sixteen Heads Really Better than One?", 2019,
	// section 3.2, https://arxiv.org/abs/1905.10650.
	//
	// Differs: the paper uses accuracy or BLEU, attn uses the loss.
	LeaveOneOut Method = iota
	// Gradient is how sensitive the loss of an example is to the head's gate:
	//
	//	Σ_x |dL(x)/dgate_h(x)| / terms
	//
	// Unit: nats per token. Cost: 3 passes, shared with Taylor and Fisher.
	//
	// Source: Michel et al., 2019, section 4.1.
	//
	// Differs: the paper divides by the number of examples, which changes all scores by the same factor.
	// The authors' programs take the absolute value of each token, and other programs that of each batch,
	// as Taylor does; their scores are different numbers.
	Gradient
	// Taylor is, to first order, the change in the loss of a batch if the head's columns of the output
	// projection become 0:
	//
	//	Σ_batches |Σ_ij dL(batch)/dW_out[i,j]·W_out[i,j]| / terms,  j in columns of h
	//
	// This equals |Σ_x dL(x)/dgate_h(x)|, which is how it is computed. Examples with gradients of opposite
	// signs cancel, so the score depends on which examples share a batch: compare only scores from the same
	// batches. Unit: nats per token. Cost: 3 passes, shared with Gradient and Fisher.
	//
	// Source: Molchanov et al., "Pruning Convolutional Neural Networks for
	// Resource Efficient Inference", 2017, section 2.2,
	// https://arxiv.org/abs/1611.06440; for heads, Yang et al., "TextPruner",
	// 2022, https://arxiv.org/abs/2203.15996.
	Taylor
	// Fisher is the diagonal of the empirical Fisher information of the gates:
	//
	//	mean over x of (dL(x)/dgate_h(x))²
	//
	// Unit: nats² per example. Cost: 3 passes, shared with Gradient and Taylor.
	//
	// Source: Kwon et al., "A Fast Post-Training Pruning Framework for Transformers", 2022, the measure of
	// its mask search, https://arxiv.org/abs/2204.09656.
	//
	// Differs: L(x) is a sum over the tokens of x, so long examples weigh more. The paper's search and
	// tuning are not included.
	Fisher
	// WeightNorm is the norm of the head's part of the output projection:
	//
	//	√(Σ_ij W_out[i,j]²),  j in columns of h
	//
	// Unit: the unit of the weights. Cost: no pass, and no data.
	WeightNorm
	// Confidence is the mean of each query's largest weight:
	//
	//	mean over queries i of max_j weights[i,j]
	//
	// Signed weights (attn.LayerHeads.Signed) count with their shares |w|/Σ|w| of a row. Padding and queries that
	// attend to no key do not count. NaN if there are no other queries. No unit, 0
	// to 1. Cost: 1 pass, which needs no labels.
	//
	// Source: Voita et al., "Analyzing Multi-Head Self-Attention", 2019, section
	// 4, https://arxiv.org/abs/1905.09418.
	//
	// Differs: the paper excludes the end token.
	Confidence
	// Random is drawn uniformly from 0 to 1. It is the baseline for the other methods.
	// Cost: no pass, and no data.
	Random
)

var methodNames = [...]string{
	LeaveOneOut: "leave-one-out", Gradient: "gradient", Taylor: "taylor", Fisher: "fisher",
	WeightNorm: "weight-norm", Confidence: "confidence", Random: "random",
}

// String returns the name of the method, such as "leave-one-out".
func (m Method) String() string {
	if int(m) < len(methodNames) {
		return methodNames[m]
	}
	return fmt.Sprintf("Method(%d)", uint8(m))
}

// ParseMethod is the inverse of String.
func ParseMethod(s string) (Method, error) {
	if m := slices.Index(methodNames[:], s); m >= 0 {
		return Method(m), nil
	}
	return 0, fmt.Errorf("prune: unknown method %s, want one of %v", quote.Text(s), Methods())
}

// Methods returns all methods.
func Methods() []Method {
	return []Method{LeaveOneOut, Gradient, Taylor, Fisher, WeightNorm, Confidence, Random}
}
