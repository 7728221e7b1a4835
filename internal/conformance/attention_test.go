package conformance

import (
	"fmt"
	"math"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
)

// This file implements the operator Attention of ONNX, opsets 23 to 25, with package attn. The differences:
//
// Q, K and V with three axes contain heads side by side along the last axis, and q_num_heads and kv_num_heads split
// it. In attn, three axes are one head.
//
// scale: Q and K are each multiplied by its square root, so that large products stay in range. Here that is a Score.
//
// softcap is Options.SoftCap. In both systems it is applied before mask and bias.
//
// attn_mask is a Mask if it contains booleans, and in both systems true means that a query attends. If it contains
// numbers it is a Bias, except that elements of −∞ become a Mask, under which even NaN has no influence. In both
// systems its axes are aligned at the end: three axes are [H Lq Lk], and a mask for each sequence is [B 1 Lq Lk]. If
// its last axis is shorter than Lk, the remaining keys are hidden, even if that axis is 1. In opset 23, however, an
// axis of 1 broadcasts, as in attn.
//
// nonpad_kv_seqlen is Options.KeyLens: K and V are a cache in which that number of positions is used. In both systems
// the last query is then at the last used position, and is_causal is Causal.
//
// Otherwise is_causal is CausalAt: query i is at position i + offset, where the offset is the number of keys of
// past_key, or 0. Without a cache, query 0 therefore attends only to key 0, however many keys there are. With Causal,
// the last query attends to the last key.
//
// left_window_size and right_window_size are Window and WindowAt in the same way. In both systems a negative size
// leaves that side open. A window further restricts is_causal.
//
// past_key and past_value are put before K and V.
//
// qk_matmul_output is Scores: with only the Score in mode 0, also with the soft-cap in mode 1, and also with bias and
// mask in mode 2. In mode 3 it is Output.Weights.
//
// A query without keys gets zeros in both systems, in Y and in mode 3.
//
// softmax_precision has no counterpart: attn computes in float32, even from half precision, and rounds the result
// once.
//
// In four points this file follows the specification and not ONNX's reference implementation 1.23: scores of mode 0
// are before the soft-cap; is_causal applies to every query if attn_mask has one row for all of them, or one axis; a
// short mask in opset 23 is an error; integers of a mask that is too short are numbers, followed by −∞.

// attention is a node of the operator with its inputs.
type attention struct {
	opset int
	settings
	q, k, v            *tensor.Tensor // [B H Lq E], [B G L E], [B G L V], or three axes
	mask               *maskInput     // attn_mask, or nil
	pastKey, pastValue *tensor.Tensor // [B G past E], [B G past V], or nil
	nonpad             []int          // nonpad_kv_seqlen [B], or nil
}

// settings are the operator's attributes. A nil pointer is an absent attribute.
type settings struct {
	Scale              *float32 `json:"scale"`
	Softcap            float32  `json:"softcap"`
	IsCausal           int      `json:"is_causal"`
	LeftWindowSize     int      `json:"left_window_size"`  // −1: open
	RightWindowSize    int      `json:"right_window_size"` // −1: open
	QNumHeads          *int     `json:"q_num_heads"`
	KVNumHeads         *int     `json:"kv_num_heads"`
	QKMatmulOutputMode int      `json:"qk_matmul_output_mode"`
	SoftmaxPrecision   *int     `json:"softmax_precision"`
}

// maskInput is an attn_mask: booleans, or numbers to add to the scores.
type maskInput struct {
	shape    []int
	booleans []bool
	numbers  []float32
}

func (n *attention) attributes() any { return &n.settings }

func (n *attention) paths() [2]string { return [2]string{"fast", "readable"} }

func (n *attention) set(x *safetensors.Tensor) (err error) {
	switch x.Name {
	case "in.Q":
		n.q, err = numbers(x)
	case "in.K":
		n.k, err = numbers(x)
	case "in.V":
		n.v, err = numbers(x)
	case "in.past_key":
		n.pastKey, err = numbers(x)
	case "in.past_value":
		n.pastValue, err = numbers(x)
	case "in.attn_mask":
		n.mask, err = readMask(x)
	case "in.nonpad_kv_seqlen":
		if x.DType != safetensors.I64 || len(x.Shape) != 1 {
			return fmt.Errorf("tensor %s is %s %v, want I64 [B]", x.Name, x.DType, x.Shape)
		}
		n.nonpad, err = x.Ints()
	}
	return err
}

// compute attends on the fast path or, if given is set, with its scores given as an array.
func (n *attention) compute(given bool) (outputs map[string]*tensor.Tensor, err error) {
	if err := n.check(); err != nil {
		return nil, err
	}
	// A panic about shapes that do not match becomes the error.
	err = tensor.Catch(func() { outputs = n.attend(given) })
	return outputs, err
}

func (n *attention) attend(given bool) map[string]*tensor.Tensor {
	q, k, v := split(n.q, n.QNumHeads), split(n.k, n.KVNumHeads), split(n.v, n.KVNumHeads)
	past := 0
	if n.pastKey != nil {
		past = n.pastKey.Dim(2)
		k, v = tensor.Concat(nil, 2, n.pastKey, k), tensor.Concat(nil, 2, n.pastValue, v)
	}

	scored := n.score(q.Dim(3))
	if given {
		formula := scored
		scored = score.Func(func(t *tensor.Tape, q, k *tensor.Tensor) *tensor.Tensor {
			return attn.Scores(t, q, k, attn.Options{Score: formula})
		})
	}
	mask, bias := n.maskAndBias(k.Dim(2))
	o := attn.Options{
		Score:   scored,
		SoftCap: n.Softcap,
		Bias:    bias,
		Mask:    attn.And(mask, n.positions(past)),
		KeyLens: n.nonpad,
		Weights: n.QKMatmulOutputMode == 3,
	}
	y := attn.Attend(nil, q, k, v, o)

	out := y.Out
	if n.q.Rank() == 3 {
		out = joined(out)
	}
	var scores *tensor.Tensor
	switch n.QKMatmulOutputMode {
	case 0:
		scores = attn.Scores(nil, q, k, attn.Options{Score: scored})
	case 1:
		scores = attn.Scores(nil, q, k, attn.Options{Score: scored, SoftCap: n.Softcap})
	case 2:
		scores = attn.Scores(nil, q, k, o)
	case 3:
		scores = y.Weights
	}
	return map[string]*tensor.Tensor{"Y": out, "present_key": k, "present_value": v, "qk_matmul_output": scores}
}

// split returns heads [B H L E]: x itself, or the heads that are side by side in [B L H·E].
func split(x *tensor.Tensor, heads *int) *tensor.Tensor {
	if x.Rank() == 4 {
		return x
	}
	x = tensor.Reshape(nil, x, x.Dim(0), x.Dim(1), *heads, x.Dim(2) / *heads)
	return tensor.Transpose(nil, x, 0, 2, 1, 3)
}

// joined returns heads [B H L E] side by side, [B L H·E].
func joined(x *tensor.Tensor) *tensor.Tensor {
	return tensor.Reshape(nil, tensor.Transpose(nil, x, 0, 2, 1, 3), x.Dim(0), x.Dim(2), x.Dim(1)*x.Dim(3))
}

// score returns the score of queries and keys of size e.
func (n *attention) score(e int) attn.Score {
	scale := 1 / math.Sqrt(float64(max(e, 1)))
	if n.Scale != nil {
		scale = float64(*n.Scale)
	}
	return rootScaled(math.Sqrt(scale))
}

// rootScaled is the score (r·q)ᵀ(r·k).
type rootScaled float32

// Form is the dot product of scaled vectors.
func (r rootScaled) Form() attn.Form {
	scaled := func(t *tensor.Tape, x *tensor.Tensor) *tensor.Tensor { return tensor.Scale(t, x, float32(r)) }
	return attn.Form{Queries: scaled, Keys: scaled, Scale: 1}
}

// positions returns the masks that depend on the queries' positions, which follow past keys.
func (n *attention) positions(past int) attn.Mask {
	causal, window := mask.CausalAt(past), mask.WindowAt(n.LeftWindowSize, n.RightWindowSize, past)
	if n.nonpad != nil {
		causal, window = mask.Causal(), mask.Window(n.LeftWindowSize, n.RightWindowSize)
	}
	if n.IsCausal == 1 {
		return attn.And(causal, window)
	}
	return window
}

// maskAndBias converts attn_mask, for lk keys.
func (n *attention) maskAndBias(lk int) (masked attn.Mask, bias *tensor.Tensor) {
	if n.mask == nil {
		return attn.Mask{}, nil
	}
	m := *n.mask
	last := len(m.shape) - 1
	if n.opset >= 24 && m.shape[last] < lk {
		m = m.padded(lk)
	}
	if m.booleans != nil {
		return mask.Allow(m.booleans, m.shape...), nil
	}
	attends, numbers := make([]bool, len(m.numbers)), make([]float32, len(m.numbers))
	for i, x := range m.numbers {
		if attends[i] = !math.IsInf(float64(x), -1); attends[i] {
			numbers[i] = x
		}
	}
	return mask.Allow(attends, m.shape...), tensor.New(numbers, m.shape...)
}

// padded returns the mask with a last axis of lk, in which added keys are hidden.
func (m maskInput) padded(lk int) maskInput {
	last := len(m.shape) - 1
	short := m.shape[last]
	p := maskInput{shape: append(append([]int{}, m.shape[:last]...), lk)}
	rows := 1
	for _, size := range m.shape[:last] {
		rows *= size
	}
	for r := range rows {
		if m.booleans != nil {
			p.booleans = append(append(p.booleans, m.booleans[r*short:][:short]...), make([]bool, lk-short)...)
			continue
		}
		p.numbers = append(p.numbers, m.numbers[r*short:][:short]...)
		for range lk - short {
			p.numbers = append(p.numbers, float32(math.Inf(-1)))
		}
	}
	return p
}
