package prune

import (
	"fmt"
	"slices"

	"github.com/attn-go/attn/internal/quote"
)

// Method is a way of telling how important a head is. The larger a score, the
// more important the head.
//
// L is the loss of all examples, L(x) that of an example, which is the sum over
// its tokens, and gate_h what the output of head h is multiplied by: 1. A mean
// over tokens is one over the terms of the loss, see Outcome. A pass is one over
// all the data, forward; a backward pass counts as two. H is the number of heads
// of all layers.
type Method uint8

const (
	// LeaveOneOut is by how much the loss grows without the head:
	//
	//	(L with gate_h = 0 − L) / terms
	//
	// Negative if the model is better off without it. Unit: nats per token. Cost:
	// H+1 passes.
	//
	// Source: Michel et al., "Are Sixteen Heads Really Better than One?", 2019,
	// section 3.2, https://arxiv.org/abs/1905.10650.
	//
	// Differs: the paper takes accuracy or BLEU where we take the loss.
	LeaveOneOut Method = iota
	// Gradient is how sensitive the loss of an example is to the head:
	//
	//	Σ_x |dL(x)/dgate_h(x)| / terms
	//
	// Unit: nats per token. Cost: 3 passes, shared with Taylor and Fisher.
	//
	// Source: Michel et al., 2019, section 4.1.
	//
	// Differs: the paper's mean is over examples; ours is the same times a
	// constant. The authors' programs take the absolute value of each token, and
	// others that of each batch, as Taylor does: those are other numbers.
	Gradient
	// Taylor is, to first order, by how much the loss of a batch changes if the
	// head's columns of the last map become 0:
	//
	//	Σ_batches |Σ_ij dL(batch)/dW_out[i,j]·W_out[i,j]| / terms,  j in columns of h
	//
	// This is the same as |Σ_x dL(x)/dgate_h(x)|, and it is computed so. Examples
	// that pull in opposite directions cancel, so the score depends on which of
	// them share a batch: compare only scores from the same batches. Unit: nats
	// per token. Cost: 3 passes, shared with Gradient and Fisher.
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
	// Source: Kwon et al., "A Fast Post-Training Pruning Framework for
	// Transformers", 2022, its search for masks, https://arxiv.org/abs/2204.09656.
	//
	// Differs: L(x) is a sum over the tokens of x, so long examples weigh more;
	// and this is only the measure, without the paper's search and tuning.
	Fisher
	// WeightNorm is the size of the head's part of the last map:
	//
	//	√(Σ_ij W_out[i,j]²),  j in columns of h
	//
	// Unit: that of the weights. Cost: no pass, and no data.
	WeightNorm
	// Confidence is the mean of each query's largest weight:
	//
	//	mean over queries i of max_j weights[i,j]
	//
	// Padding does not count, nor do queries that attend to no key. NaN if there are
	// no others. No unit, 0 to 1. Cost: 1 pass, which needs no labels.
	//
	// Source: Voita et al., "Analyzing Multi-Head Self-Attention", 2019, section
	// 4, https://arxiv.org/abs/1905.09418.
	//
	// Differs: the paper leaves out the end mark.
	Confidence
	// Random is drawn uniformly from 0 to 1: what every other method must beat.
	// Cost: no pass, and no data.
	Random
)

var methodNames = [...]string{
	LeaveOneOut: "leave-one-out", Gradient: "gradient", Taylor: "taylor", Fisher: "fisher",
	WeightNorm: "weight-norm", Confidence: "confidence", Random: "random",
}

// String returns the name, such as "leave-one-out".
func (m Method) String() string {
	if int(m) < len(methodNames) {
		return methodNames[m]
	}
	return fmt.Sprintf("Method(%d)", uint8(m))
}

// ParseMethod returns the method of that name, as String writes it.
func ParseMethod(s string) (Method, error) {
	if m := slices.Index(methodNames[:], s); m >= 0 {
		return Method(m), nil
	}
	return 0, fmt.Errorf("prune: no method %s, want one of %v", quote.Text(s), Methods())
}

// Methods returns all methods.
func Methods() []Method {
	return []Method{LeaveOneOut, Gradient, Taylor, Fisher, WeightNorm, Confidence, Random}
}
