package conformance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/attn-go/attn/linear"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tensor"
)

// This file implements the operators LinearAttention and CausalConvWithState of ONNX, opset 27, with packages linear and
// nn. The differences:
//
// query, key, value and a decay for each element of a key contain heads side by side along the last axis, which
// q_num_heads and kv_num_heads split. Otherwise decay, and beta, are [B T Hk], where attn takes [B Hk T]. A beta [B T 1] is
// the same for all heads.
//
// update_rule is what is given in attn: Decay, Beta, both or neither. past_state is Options.State, present_state is
// Output.State. A scale of 0 is 1/√dk in both systems. chunk_size changes no result.
//
// CausalConvWithState has channels before positions, nn.CausalConv has them behind, those of the weight, too.

// linearAttention is a node of LinearAttention with its inputs.
type linearAttention struct {
	QNumHeads  *int    `json:"q_num_heads"`
	KVNumHeads *int    `json:"kv_num_heads"`
	UpdateRule string  `json:"update_rule"`
	Scale      float32 `json:"scale"`
	ChunkSize  int     `json:"chunk_size"`

	in map[string]*tensor.Tensor // by name
}

func (n *linearAttention) attributes() any { return n }

func (n *linearAttention) paths() [2]string { return stepwise }

func (n *linearAttention) set(x *safetensors.Tensor) error { return setIn(n.in, x) }

var stepwise = [2]string{"all at once", "token by token"}

// setIn adds an input in.NAME.
func setIn(in map[string]*tensor.Tensor, x *safetensors.Tensor) (err error) {
	in[strings.TrimPrefix(x.Name, "in.")], err = numbers(x)
	return err
}

// check returns an error unless the operator's specification allows the node. attn checks whether the shapes match.
func (n *linearAttention) check() error {
	bad := func(what string, got any, want string, args ...any) error {
		return fmt.Errorf("onnx: LinearAttention-27: %s is %v, want %s", what, got, fmt.Sprintf(want, args...))
	}
	if !slices.Contains([]string{"linear", "gated", "delta", "gated_delta"}, n.UpdateRule) {
		return bad("update_rule", n.UpdateRule, "linear, gated, delta or gated_delta")
	}
	for _, x := range []struct {
		name string
		rule bool
	}{{"decay", strings.HasPrefix(n.UpdateRule, "gated")}, {"beta", strings.HasSuffix(n.UpdateRule, "delta")}} {
		switch given := n.in[x.name] != nil; {
		case given && !x.rule:
			return bad(x.name, "given", "none, because update_rule is %s", n.UpdateRule)
		case !given && x.rule:
			return bad(x.name, "missing", "it, because update_rule is %s", n.UpdateRule)
		}
	}
	for _, x := range []struct {
		name, heads string
		count       *int
	}{{"query", "q_num_heads", n.QNumHeads}, {"key", "kv_num_heads", n.KVNumHeads}, {"value", "kv_num_heads", n.KVNumHeads}} {
		switch in := n.in[x.name]; {
		case in.Rank() != 3:
			return bad("the number of axes of "+x.name, in.Rank(), "3")
		case x.count == nil:
			return bad(x.heads, "missing", "the number of heads")
		case *x.count < 1 || in.Dim(2)%*x.count != 0:
			return bad(x.heads, *x.count, "a positive divisor of %d, the last axis of %s", in.Dim(2), x.name)
		}
	}
	heads, key := *n.KVNumHeads, n.in["key"]
	if *n.QNumHeads%heads != 0 {
		return bad("q_num_heads", *n.QNumHeads, "a multiple of kv_num_heads %d", heads)
	}
	for name, last := range map[string][]int{"decay": {heads, key.Dim(2)}, "beta": {heads, 1}} {
		x := n.in[name]
		if x != nil && (x.Rank() != 3 || !slices.Equal(x.Shape()[:2], key.Shape()[:2]) || !slices.Contains(last, x.Dim(2))) {
			return bad("the shape of "+name, x.Shape(), "%v and %d or %d", key.Shape()[:2], last[0], last[1])
		}
	}
	return nil
}

func (n *linearAttention) compute(tokens bool) (outputs map[string]*tensor.Tensor, err error) {
	if err := n.check(); err != nil {
		return nil, err
	}
	err = tensor.Catch(func() { outputs = n.attend(tokens) })
	return outputs, err
}

func (n *linearAttention) attend(tokens bool) map[string]*tensor.Tensor {
	heads := *n.KVNumHeads
	q, k, v := split(n.in["query"], n.QNumHeads), split(n.in["key"], n.KVNumHeads), split(n.in["value"], n.KVNumHeads)
	o := linear.Options{Scale: n.Scale, State: n.in["past_state"]}
	if decay := n.in["decay"]; decay != nil {
		if o.Decay = split(decay, n.KVNumHeads); decay.Dim(2) == heads {
			o.Decay = tensor.Transpose(nil, decay, 0, 2, 1)
		}
	}
	if beta := n.in["beta"]; beta != nil {
		o.Beta = tensor.BroadcastTo(nil, tensor.Transpose(nil, beta, 0, 2, 1), k.Shape()[:3]...)
	}
	if !tokens {
		y := linear.Attend(nil, q, k, v, o)
		return map[string]*tensor.Tensor{"output": joined(y.Out), "present_state": y.State}
	}
	var outs []*tensor.Tensor
	state := o.State
	for i := range q.Dim(2) {
		token := func(x *tensor.Tensor) *tensor.Tensor {
			if x == nil {
				return nil
			}
			return tensor.Slice(nil, x, 2, i, i+1)
		}
		y := linear.Attend(nil, token(q), token(k), token(v), linear.Options{Scale: n.Scale, State: state, Decay: token(o.Decay), Beta: token(o.Beta)})
		outs, state = append(outs, y.Out), y.State
	}
	return map[string]*tensor.Tensor{"output": joined(tensor.Concat(nil, 2, outs...)), "present_state": state}
}

// causalConv is a node of CausalConvWithState with its inputs.
type causalConv struct {
	Activation string `json:"activation"`

	in map[string]*tensor.Tensor // by name
}

func (n *causalConv) attributes() any { return n }

func (n *causalConv) paths() [2]string { return stepwise }

func (n *causalConv) set(x *safetensors.Tensor) error { return setIn(n.in, x) }

func (n *causalConv) compute(tokens bool) (outputs map[string]*tensor.Tensor, err error) {
	layer := nn.CausalConv{Bias: n.in["bias"]}
	switch n.Activation {
	case "silu", "swish":
		layer.Activation = tensor.SiLU
	case "none":
	default:
		return nil, fmt.Errorf("onnx: CausalConvWithState-27: activation is %s, want none, silu or swish", n.Activation)
	}
	for _, name := range []string{"input", "weight", "past_state"} {
		if x := n.in[name]; x != nil && x.Rank() != 3 {
			return nil, fmt.Errorf("onnx: CausalConvWithState-27: the number of axes of %s is %d, want 3", name, x.Rank())
		}
	}
	swapped := func(x *tensor.Tensor) *tensor.Tensor { return tensor.Transpose(nil, x, 0, 2, 1) }
	err = tensor.Catch(func() {
		layer.Weight = tensor.Transpose(nil, n.in["weight"], 2, 1, 0)
		x, state := swapped(n.in["input"]), n.in["past_state"]
		if state != nil {
			state = swapped(state)
		}
		var out *tensor.Tensor
		if !tokens {
			out, state = layer.Forward(nil, x, state, nil)
		} else {
			outs := make([]*tensor.Tensor, x.Dim(1))
			for i := range outs {
				outs[i], state = layer.Forward(nil, tensor.Slice(nil, x, 1, i, i+1), state, nil)
			}
			out = tensor.Concat(nil, 1, outs...)
		}
		outputs = map[string]*tensor.Tensor{"output": swapped(out), "present_state": swapped(state)}
	})
	return outputs, err
}
