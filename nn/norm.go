package nn

import "github.com/attn-go/attn/tensor"

// RMSNorm divides each vector along the last axis by its root mean square and multiplies it by a gain:
//
//	y = weight·x/√(mean(x²) + eps)
//
// As MultiHeadConfig.QueryNorm and KeyNorm of package attn, with the width of a head, it is the QK-norm of Qwen 3 and
// OLMo 2. The gain is the weight itself: for models that store gain − 1, as Gemma does, add 1 after loading.
//
// Source: Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019,
// https://arxiv.org/abs/1910.07467.
type RMSNorm struct {
	Weight *tensor.Tensor // [D], the gain
	Eps    float32        // "rms_norm_eps"
}

// NewRMSNorm returns a normalisation with gain 1 and eps 1e-6.
func NewRMSNorm(width int) *RMSNorm {
	return &RMSNorm{Weight: tensor.Full(1, width).Param(), Eps: 1e-6}
}

// Forward normalises x. Shapes: x and out [… D].
func (n *RMSNorm) Forward(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
	return tensor.RMSNorm(t, x, n.Weight, n.Eps)
}

// Params returns "weight".
func (n *RMSNorm) Params() Params { return Vars{{"weight", n.Weight}}.Params() }

// TorchState returns the table of torch.nn.RMSNorm.
func (n *RMSNorm) TorchState() (StateDict, error) { return OwnNames(n) }

// AddNorm returns sum = x + Dropout(y), the sum at the end of a residual block, and the norm n of the sum. LayerNorm
// and RMSNorm compute both in one pass.
//
// Shapes: x, y, sum and out [… D].
func AddNorm(t *tensor.Tape, n Layer, x, y *tensor.Tensor, dropout float32) (sum, out *tensor.Tensor) {
	switch n := n.(type) {
	case *LayerNorm:
		return tensor.AddLayerNorm(t, x, y, dropout, n.Weight, n.Bias, n.Eps)
	case *RMSNorm:
		return tensor.AddRMSNorm(t, x, y, dropout, n.Weight, n.Eps)
	}
	sum = tensor.AddDropout(t, x, y, dropout)
	return sum, n.Forward(t, sum)
}

// L2Norm divides each vector along the last axis by its length: y = x/max(‖x‖, eps). It has no parameters.
//
// As QueryNorm and KeyNorm of package attn it is the QK-norm of Henry et al. Scores of vectors of length 1 are at
// most 1, so the score then needs its own scale: score.DotScale has a fixed scale. For a learned scale, use
// score.Cosine, which includes the norm.
//
// Source: Henry et al., "Query-Key Normalization for Transformers", 2020,
// https://arxiv.org/abs/2010.04245.
type L2Norm struct {
	Eps float32 // 1e-12 in PyTorch's F.normalize; with 0, only zero vectors are not scaled
}

// Forward normalises x. Shapes: x and out [… D].
func (n L2Norm) Forward(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
	return tensor.Normalize(t, x, n.Eps)
}

// Params returns none.
func (L2Norm) Params() Params { return Vars{}.Params() }
