package conformance

import (
	"fmt"

	"github.com/attn-go/attn/tensor"
)

// check returns an error unless the operator's specification allows the node. attn checks whether the shapes match.
func (n *attention) check() error {
	bad := func(what string, got any, want string) error {
		return fmt.Errorf("onnx: Attention-%d: %s is %v, want %s", n.opset, what, got, want)
	}
	if n.IsCausal != 0 && n.IsCausal != 1 {
		return bad("is_causal", n.IsCausal, "0 or 1")
	}
	if n.LeftWindowSize < -1 {
		return bad("left_window_size", n.LeftWindowSize, "-1 or more")
	}
	if n.RightWindowSize < -1 {
		return bad("right_window_size", n.RightWindowSize, "-1 or more")
	}
	if n.QKMatmulOutputMode < 0 || n.QKMatmulOutputMode > 3 {
		return bad("qk_matmul_output_mode", n.QKMatmulOutputMode, "0 to 3")
	}
	if n.Scale != nil && !(*n.Scale >= 0) { // it must have a square root
		return bad("scale", *n.Scale, "0 or more")
	}
	if n.Softcap < 0 {
		return bad("softcap", n.Softcap, "0 or more")
	}
	if p := n.SoftmaxPrecision; p != nil && *p != 1 && *p != 10 && *p != 11 && *p != 16 {
		return bad("softmax_precision", *p, "1 (FLOAT), 10 (FLOAT16), 11 (DOUBLE) or 16 (BFLOAT16)")
	}

	rank := n.q.Rank()
	for _, x := range []struct {
		name  string
		x     *tensor.Tensor
		heads string
		count *int
	}{{"Q", n.q, "q_num_heads", n.QNumHeads}, {"K", n.k, "kv_num_heads", n.KVNumHeads}, {"V", n.v, "kv_num_heads", n.KVNumHeads}} {
		switch {
		case x.x.Rank() != rank || rank != 3 && rank != 4:
			return bad(fmt.Sprintf("the number of axes of %s", x.name), x.x.Rank(), "3 or 4, the same for Q, K and V")
		case rank == 3 && x.count == nil:
			return bad(x.heads, "missing", "the number of heads, because Q, K and V have three axes")
		case rank == 3 && (*x.count < 1 || x.x.Dim(2)%*x.count != 0):
			return bad(x.heads, *x.count, fmt.Sprintf("a positive divisor of %d, the last axis of %s", x.x.Dim(2), x.name))
		case rank == 4 && x.count != nil && n.opset >= 25:
			return bad(x.heads, *x.count, "none, because Q, K and V have four axes")
		case rank == 4 && x.count != nil && *x.count != x.x.Dim(1):
			return bad(x.heads, *x.count, fmt.Sprintf("%d, as %s has", x.x.Dim(1), x.name))
		}
	}
	if (n.pastKey == nil) != (n.pastValue == nil) {
		return bad("only one of past_key and past_value", "given", "both or none")
	}
	if n.pastKey != nil && (n.pastKey.Rank() != 4 || n.pastValue.Rank() != 4) {
		return bad("the number of axes of past_key and past_value", []int{n.pastKey.Rank(), n.pastValue.Rank()}, "4")
	}
	if n.nonpad != nil && n.pastKey != nil {
		return bad("nonpad_kv_seqlen", "given beside past_key", "one of them")
	}
	if n.mask != nil && len(n.mask.shape) == 0 {
		return bad("the number of axes of attn_mask", 0, "1 to 4")
	}
	return nil
}
