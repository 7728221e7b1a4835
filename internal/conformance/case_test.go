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
	node node
	want []output
}

// node is a node of an operator with its inputs.
type node interface {
	// attributes returns what the attributes are read into, as JSON.
	attributes() any
	// set sets an input in.NAME.
	set(x *safetensors.Tensor) error
	// compute returns the outputs by name. There are two paths to them.
	compute(second bool) (map[string]*tensor.Tensor, error)
	paths() [2]string
}

// output is an expected output of the node, with its name.
type output struct {
	name   string
	typ    safetensors.DType
	shape  []int
	values []float64
}

// operator describes an operator: the opset in which each attribute, and each tensor in.NAME or out.NAME, was added.
type operator struct {
	name        string
	first, last int // opset
	attributes  map[string]int
	tensors     map[string]int
	required    []string
	same        [][]string // tensors of the same type
	new         func(opset int) node
}

var operators = []*operator{
	{
		name: "Attention", first: 23, last: 25,
		attributes: map[string]int{
			"scale": 23, "softcap": 23, "is_causal": 23, "q_num_heads": 23, "kv_num_heads": 23,
			"qk_matmul_output_mode": 23, "softmax_precision": 23, "left_window_size": 25, "right_window_size": 25,
		},
		tensors: map[string]int{
			"in.Q": 23, "in.K": 23, "in.V": 23, "in.attn_mask": 23, "in.past_key": 23, "in.past_value": 23,
			"in.nonpad_kv_seqlen": 24,
			"out.Y":               23, "out.present_key": 23, "out.present_value": 23, "out.qk_matmul_output": 23,
		},
		required: []string{"in.Q", "in.K", "in.V", "out.Y"},
		same: [][]string{
			{"in.Q", "in.K", "in.past_key", "out.Y", "out.present_key", "out.qk_matmul_output"},
			{"in.V", "in.past_value", "out.present_value"},
		},
		new: func(opset int) node {
			return &attention{opset: opset, settings: settings{LeftWindowSize: -1, RightWindowSize: -1}}
		},
	},
	{
		name: "LinearAttention", first: 27, last: 27,
		attributes: map[string]int{"q_num_heads": 27, "kv_num_heads": 27, "update_rule": 27, "scale": 27, "chunk_size": 27},
		tensors: map[string]int{
			"in.query": 27, "in.key": 27, "in.value": 27, "in.past_state": 27, "in.decay": 27, "in.beta": 27,
			"out.output": 27, "out.present_state": 27,
		},
		required: []string{"in.query", "in.key", "in.value", "out.output"},
		same:     [][]string{{"in.query", "in.key", "in.value", "in.decay", "in.beta", "out.output"}, {"in.past_state", "out.present_state"}},
		new:      func(int) node { return &linearAttention{UpdateRule: "gated_delta", in: map[string]*tensor.Tensor{}} },
	},
	{
		name: "CausalConvWithState", first: 27, last: 27,
		attributes: map[string]int{"activation": 27},
		tensors: map[string]int{
			"in.input": 27, "in.weight": 27, "in.bias": 27, "in.past_state": 27, "out.output": 27, "out.present_state": 27,
		},
		required: []string{"in.input", "in.weight", "out.output"},
		same:     [][]string{{"in.input", "in.weight", "in.bias", "in.past_state", "out.output", "out.present_state"}},
		new:      func(int) node { return &causalConv{Activation: "none", in: map[string]*tensor.Tensor{}} },
	},
}

// readCase reads a case. Any part of the file that it does not recognize is an error.
func readCase(path string) (*testCase, error) {
	file, err := safetensors.Read(path)
	if err != nil {
		return nil, err
	}
	c := &testCase{name: strings.TrimSuffix(filepath.Base(path), ".safetensors")}
	if err := c.read(file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

func (c *testCase) read(file *safetensors.File) error {
	for key := range file.Metadata {
		if !slices.Contains([]string{"name", "op", "opset", "attributes"}, key) {
			return fmt.Errorf("metadata has %q, want name, op, opset and attributes", key)
		}
	}
	at := slices.IndexFunc(operators, func(o *operator) bool { return o.name == file.Metadata["op"] })
	if at < 0 {
		return fmt.Errorf("op is %q, want Attention, LinearAttention or CausalConvWithState", file.Metadata["op"])
	}
	o := operators[at]
	opset, err := strconv.Atoi(file.Metadata["opset"])
	if err != nil || opset < o.first || opset > o.last {
		return fmt.Errorf("opset is %q, want %d to %d", file.Metadata["opset"], o.first, o.last)
	}
	c.node = o.new(opset)
	text := []byte(file.Metadata["attributes"])
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return fmt.Errorf("attributes: %w", err)
	}
	for name, value := range all {
		if err := o.known(opset, o.attributes, "attribute", name); err != nil {
			return err
		}
		if string(value) == "null" {
			return fmt.Errorf("attribute %s is null, want a value", name)
		}
	}
	if err := json.Unmarshal(text, c.node.attributes()); err != nil {
		return fmt.Errorf("attributes: %w", err)
	}
	for i := range file.Tensors {
		x := &file.Tensors[i]
		if err := o.known(opset, o.tensors, "tensor", x.Name); err != nil {
			return err
		}
		if err := c.readTensor(x); err != nil {
			return err
		}
	}
	return o.check(file)
}

// known returns an error unless the operator has an attribute, input or output of that name in an opset.
func (o *operator) known(opset int, since map[string]int, what, name string) error {
	switch from := since[name]; {
	case from == 0:
		return fmt.Errorf("onnx: %s has no %s %q", o.name, what, name)
	case from > opset:
		return fmt.Errorf("onnx: %s-%d has no %s %q, %s-%d has", o.name, opset, what, name, o.name, from)
	}
	return nil
}

func (c *testCase) readTensor(x *safetensors.Tensor) error {
	if name, ok := strings.CutPrefix(x.Name, "out."); ok {
		values, err := x.Float64s()
		c.want = append(c.want, output{name, x.DType, x.Shape, values})
		return err
	}
	return c.node.set(x)
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

// check returns an error unless all required tensors exist and have the types that must be equal.
func (o *operator) check(f *safetensors.File) error {
	for _, name := range o.required {
		if f.Lookup(name) == nil {
			return fmt.Errorf("tensor %s is missing", name)
		}
	}
	for _, list := range o.same {
		want := f.Lookup(list[0])
		for _, name := range list[1:] {
			if x := f.Lookup(name); x != nil && want != nil && x.DType != want.DType {
				return fmt.Errorf("tensor %s has type %s, want %s, as %s has", name, x.DType, want.DType, list[0])
			}
		}
	}
	presents := f.Lookup("out.present_key") != nil || f.Lookup("out.present_value") != nil
	if presents && f.Lookup("in.nonpad_kv_seqlen") != nil {
		return errors.New("has present_key or present_value beside nonpad_kv_seqlen, want one of them")
	}
	return nil
}
