package conformance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tensor"
)

// TestDrawnLinearCases compares random cases of LinearAttention with the specification in float64, in combinations that
// the operator's own cases lack.
func TestDrawnLinearCases(t *testing.T) {
	cases := 1000
	if testing.Short() {
		cases = 300
	}
	for seed := range uint64(cases) {
		n := drawLinear(rand.New(rand.NewPCG(seed, 1)))
		c := testCase{node: n, want: n.expected()}
		if largest, err := c.run(); err != nil {
			t.Errorf("seed %d: error %v: %v\n%+v", seed, largest, err, n)
		}
	}
}

func drawLinear(rng *rand.Rand) *linearAttention {
	one := func(of ...int) int { return of[rng.IntN(len(of))] }
	heads, b, steps, e, size := one(1, 2, 3), one(1, 2), one(1, 2, 5, 9), one(1, 4, 7), one(1, 3, 8)
	queries := heads * one(1, 1, 2, 3)
	n := &linearAttention{QNumHeads: &queries, KVNumHeads: &heads, UpdateRule: []string{"linear", "gated", "delta", "gated_delta"}[rng.IntN(4)]}
	n.Scale = []float32{0, 0, 0.3, -1}[rng.IntN(4)]
	draw := func(of func(x float64) float64, shape ...int) *tensor.Tensor {
		x := tensor.Zeros(shape...)
		for i := range x.Data() {
			x.Data()[i] = float32(of(rng.NormFloat64()))
		}
		return x
	}
	same := func(x float64) float64 { return x }
	n.in = map[string]*tensor.Tensor{
		"query": draw(same, b, steps, queries*e), "value": draw(same, b, steps, heads*size),
		"key": draw(func(x float64) float64 { return x / math.Sqrt(float64(2*e)) }, b, steps, heads*e),
	}
	if rng.IntN(2) == 0 {
		n.in["past_state"] = draw(same, b, heads, e, size)
	}
	if strings.HasPrefix(n.UpdateRule, "gated") {
		n.in["decay"] = draw(func(x float64) float64 { return -math.Abs(x) }, b, steps, one(heads, heads*e))
	}
	if strings.HasSuffix(n.UpdateRule, "delta") {
		n.in["beta"] = draw(func(x float64) float64 { return 1 / (1 + math.Exp(x)) }, b, steps, one(heads, 1))
	}
	return n
}

// expected computes the outputs token by token, from the operator's specification.
func (n *linearAttention) expected() []output {
	query, key, value := n.in["query"], n.in["key"], n.in["value"]
	b, steps, queries, heads := key.Dim(0), key.Dim(1), *n.QNumHeads, *n.KVNumHeads
	e, size := key.Dim(2)/heads, value.Dim(2)/heads
	scale := float64(n.Scale)
	if scale == 0 {
		scale = 1 / math.Sqrt(float64(e))
	}
	out := output{"output", safetensors.F32, []int{b, steps, queries * size}, make([]float64, b*steps*queries*size)}
	last := output{"present_state", safetensors.F32, []int{b, heads, e, size}, nil}
	for s := range b {
		for h := range heads {
			state := make([][]float64, e)
			for i := range state {
				state[i] = make([]float64, size)
				for c := range size {
					if x := n.in["past_state"]; x != nil {
						state[i][c] = float64(x.At(s, h, i, c))
					}
				}
			}
			for t := range steps {
				for c := range size {
					u := float64(value.At(s, t, h*size+c))
					for i := range state {
						if x := n.in["decay"]; x != nil {
							at := h
							if x.Dim(2) != heads {
								at = h*e + i
							}
							state[i][c] *= math.Exp(float64(x.At(s, t, at)))
						}
					}
					if x := n.in["beta"]; x != nil {
						for i := range state {
							u -= state[i][c] * float64(key.At(s, t, h*e+i))
						}
						u *= float64(x.At(s, t, min(h, x.Dim(2)-1)))
					}
					for i := range state {
						state[i][c] += float64(key.At(s, t, h*e+i)) * u
						for q := h * queries / heads; q < (h+1)*queries/heads; q++ {
							out.values[((s*steps+t)*queries+q)*size+c] += scale * state[i][c] * float64(query.At(s, t, q*e+i))
						}
					}
				}
			}
			last.values = append(last.values, slices.Concat(state...)...)
		}
	}
	return []output{out, last}
}

// An invalid file or a wrong result gives a one-line error.
func TestWrongLinearCases(t *testing.T) {
	shapes := map[string][]int{ // with heads of 2 and 3 numbers
		"in.query": {2, 5, 8}, "in.key": {2, 5, 4}, "in.value": {2, 5, 6}, "in.decay": {2, 5, 2}, "in.beta": {2, 5, 1},
		"in.past_state": {2, 2, 2, 3}, "out.output": {2, 5, 12},
		"in.input": {2, 4, 5}, "in.weight": {4, 1, 3}, "in.bias": {4},
	}
	const heads = `"q_num_heads": 4, "kv_num_heads": 2`
	linear, conv := "query key value decay beta past_state", "input weight bias"
	for _, c := range []struct {
		op, attributes, in string
		spoil              func(map[string][]int)
		want               string // empty if it passes
	}{
		{op: "LinearAttention", attributes: heads, in: linear},
		{op: "LinearAttention", attributes: heads + `, "update_rule": "linear", "chunk_size": 3`, in: "query key value"},
		{op: "LinearAttention", attributes: heads + `, "causal": 1`, in: linear, want: `onnx: LinearAttention has no attribute "causal"`},
		{op: "LinearAttention", attributes: heads + `, "update_rule": "rwkv"`, in: linear, want: `onnx: LinearAttention-27: update_rule is rwkv, want linear, gated, delta or gated_delta`},
		{op: "LinearAttention", attributes: heads + `, "update_rule": "delta"`, in: linear, want: `onnx: LinearAttention-27: decay is given, want none, because update_rule is delta`},
		{op: "LinearAttention", attributes: heads, in: "query key value decay", want: `onnx: LinearAttention-27: beta is missing, want it, because update_rule is gated_delta`},
		{op: "LinearAttention", attributes: `"q_num_heads": 4`, in: linear, want: `onnx: LinearAttention-27: kv_num_heads is missing, want the number of heads`},
		{op: "LinearAttention", attributes: `"q_num_heads": 3, "kv_num_heads": 2`, in: linear, want: `q_num_heads is 3, want a positive divisor of 8, the last axis of query`},
		{op: "LinearAttention", attributes: `"q_num_heads": 2, "kv_num_heads": 4`, in: linear, want: `kv_num_heads is 4, want a positive divisor of 6, the last axis of value`},
		{op: "LinearAttention", attributes: `"q_num_heads": 1, "kv_num_heads": 2`, in: linear, want: `q_num_heads is 1, want a multiple of kv_num_heads 2`},
		{op: "LinearAttention", attributes: heads, in: linear, spoil: func(s map[string][]int) { s["in.key"] = []int{2, 2, 5, 2} }, want: `the number of axes of key is 4, want 3`},
		{op: "LinearAttention", attributes: heads, in: linear, spoil: func(s map[string][]int) { s["in.decay"] = []int{2, 5, 3} }, want: `the shape of decay is [2 5 3], want [2 5] and 2 or 4`},
		{op: "LinearAttention", attributes: heads, in: linear, spoil: func(s map[string][]int) { s["in.beta"] = []int{2, 1, 2} }, want: `the shape of beta is [2 1 2], want [2 5] and 2 or 1`},
		{op: "LinearAttention", attributes: heads, in: linear, spoil: func(s map[string][]int) { s["in.past_state"] = []int{2, 2, 3, 2} }, want: `linear: Attend: state has shape [2 2 3 2], want [B=2 G=2 E=2 3]`},
		{op: "LinearAttention", attributes: heads, in: linear, spoil: func(s map[string][]int) { s["out.output"] = []int{2, 5, 11} }, want: `all at once path: output has shape [2 5 12], want [2 5 11]`},
		{op: "CausalConvWithState", in: conv},
		{op: "CausalConvWithState", attributes: `"activation": "swish"`, in: conv},
		{op: "CausalConvWithState", attributes: `"activation": "relu"`, in: conv, want: `onnx: CausalConvWithState-27: activation is relu, want none, silu or swish`},
		{op: "CausalConvWithState", in: conv, spoil: func(s map[string][]int) { s["in.input"] = []int{4, 5} }, want: `the number of axes of input is 2, want 3`},
		{op: "CausalConvWithState", in: conv, spoil: func(s map[string][]int) { s["in.weight"] = []int{4, 3} }, want: `the number of axes of weight is 2, want 3`},
		{op: "CausalConvWithState", in: "input bias", want: `tensor in.weight is missing`},
	} {
		s := map[string][]int{}
		for name, shape := range shapes {
			s[name] = shape
		}
		if c.op == "CausalConvWithState" {
			s["out.output"] = s["in.input"]
		}
		if c.spoil != nil {
			c.spoil(s)
		}
		f := &safetensors.File{Metadata: map[string]string{"op": c.op, "opset": "27", "attributes": "{" + c.attributes + "}"}}
		for _, name := range append(strings.Fields("in."+strings.ReplaceAll(c.in, " ", " in.")), "out.output") {
			f.Tensors = append(f.Tensors, safetensors.FromFloat32s(name, s[name], make([]float32, tensor.Zeros(s[name]...).Len())))
		}
		path := filepath.Join(t.TempDir(), "a.safetensors")
		if err := f.WriteFile(path); err != nil {
			t.Fatal(err)
		}
		read, err := readCase(path)
		if err == nil {
			_, err = read.run()
		}
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v, want %s", fmt.Sprint(c.op, c.attributes), err, c.want)
		}
	}
}
