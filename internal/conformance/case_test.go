package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tensor"
)

// testCase is the case of a file: a node with its inputs and expected outputs.
type testCase struct {
	name string
	node attention
	want []output
}

// output is an expected output of the node, with its name.
type output struct {
	name   string
	typ    safetensors.DType
	shape  []int
	values []float64
}

// The opset in which an attribute, an input or an output was added to the operator.
var (
	attributeSince = map[string]int{
		"scale": 23, "softcap": 23, "is_causal": 23, "q_num_heads": 23, "kv_num_heads": 23,
		"qk_matmul_output_mode": 23, "softmax_precision": 23, "left_window_size": 25, "right_window_size": 25,
	}
	tensorSince = map[string]int{
		"in.Q": 23, "in.K": 23, "in.V": 23, "in.attn_mask": 23, "in.past_key": 23, "in.past_value": 23,
		"in.nonpad_kv_seqlen": 24,
		"out.Y":               23, "out.present_key": 23, "out.present_value": 23, "out.qk_matmul_output": 23,
	}
)

// readCase reads a case. Any part of the file that it does not recognize is an error.
func readCase(path string) (*testCase, error) {
	file, err := safetensors.Read(path)
	if err != nil {
		return nil, err
	}
	c := &testCase{name: strings.TrimSuffix(filepath.Base(path), ".safetensors")}
	if err := c.readMetadata(file.Metadata); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for i := range file.Tensors {
		if err := c.readTensor(&file.Tensors[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	if err := c.checkTensors(file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

func (c *testCase) readMetadata(metadata map[string]string) error {
	for key := range metadata {
		if !slices.Contains([]string{"name", "op", "opset", "attributes"}, key) {
			return fmt.Errorf("metadata has %q, want name, op, opset and attributes", key)
		}
	}
	if op := metadata["op"]; op != "Attention" {
		return fmt.Errorf("op is %q, want Attention", op)
	}
	opset, err := strconv.Atoi(metadata["opset"])
	if err != nil || opset < 23 || opset > 25 {
		return fmt.Errorf("opset is %q, want 23, 24 or 25", metadata["opset"])
	}
	n := &c.node
	n.opset = opset
	n.LeftWindowSize, n.RightWindowSize = -1, -1
	text := []byte(metadata["attributes"])
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return fmt.Errorf("attributes: %w", err)
	}
	for name, value := range all {
		if err := n.known(attributeSince, "attribute", name); err != nil {
			return err
		}
		if string(value) == "null" {
			return fmt.Errorf("attribute %s is null, want a number", name)
		}
	}
	if err := json.Unmarshal(text, &n.attributes); err != nil {
		return fmt.Errorf("attributes: %w", err)
	}
	return nil
}

// known returns an error unless the operator has an attribute, input or output of that name in its opset.
func (n *attention) known(since map[string]int, what, name string) error {
	switch from := since[name]; {
	case from == 0:
		return fmt.Errorf("onnx: Attention has no %s %q", what, name)
	case from > n.opset:
		return fmt.Errorf("onnx: Attention-%d has no %s %q, Attention-%d has", n.opset, what, name, from)
	}
	return nil
}

func (c *testCase) readTensor(x *safetensors.Tensor) error {
	if err := c.node.known(tensorSince, "tensor", x.Name); err != nil {
		return err
	}
	if name, ok := strings.CutPrefix(x.Name, "out."); ok {
		values, err := x.Float64s()
		c.want = append(c.want, output{name, x.DType, x.Shape, values})
		return err
	}
	n := &c.node
	var err error
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

// numbers reads queries, keys or values.
func numbers(x *safetensors.Tensor) (*tensor.Tensor, error) {
	if x.DType == safetensors.F64 {
		return nil, fmt.Errorf("tensor %s has type F64, want F32, F16 or BF16: attn computes in float32", x.Name)
	}
	data, err := x.Float32s()
	if err != nil {
		return nil, err
	}
	return tensor.New(data, x.Shape...), nil
}

// readMask reads an attn_mask. Integers, including U8, are numbers to add.
func readMask(x *safetensors.Tensor) (*maskInput, error) {
	m := &maskInput{shape: x.Shape}
	var err error
	switch x.DType {
	case safetensors.BOOL:
		m.booleans, err = x.Bools()
	case safetensors.F64, safetensors.F32, safetensors.F16, safetensors.BF16:
		var data *tensor.Tensor
		if data, err = numbers(x); err == nil {
			m.numbers = data.Data()
		}
	default:
		var data []int
		data, err = x.Ints()
		m.numbers = make([]float32, len(data))
		for i, v := range data {
			m.numbers[i] = float32(v)
		}
	}
	return m, err
}

// checkTensors returns an error unless all required tensors exist and have the types that must be equal.
func (c *testCase) checkTensors(f *safetensors.File) error {
	for _, name := range []string{"in.Q", "in.K", "in.V", "out.Y"} {
		if f.Lookup(name) == nil {
			return fmt.Errorf("tensor %s is missing", name)
		}
	}
	for _, list := range [][]string{
		{"in.Q", "in.K", "in.past_key", "out.Y", "out.present_key", "out.qk_matmul_output"},
		{"in.V", "in.past_value", "out.present_value"},
	} {
		want := f.Lookup(list[0])
		for _, name := range list[1:] {
			if x := f.Lookup(name); x != nil && x.DType != want.DType {
				return fmt.Errorf("tensor %s has type %s, want %s, as %s has", name, x.DType, want.DType, list[0])
			}
		}
	}
	presents := f.Lookup("out.present_key") != nil || f.Lookup("out.present_value") != nil
	if presents && c.node.nonpad != nil {
		return errors.New("has present_key or present_value beside nonpad_kv_seqlen, want one of them")
	}
	return nil
}
