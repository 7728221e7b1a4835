// Package conformance runs test cases of another system's operators on attn's packages: of ONNX, Attention in opsets 23 to
// 25, and LinearAttention and CausalConvWithState in opset 27.
//
//	go test ./internal/conformance -v -run ONNXCases -args -cases /absolute/path
//
// A file is one case. Its metadata contain op, the name of the operator, opset, name and, as JSON, the attributes of the
// node. Its tensors are in.NAME and out.NAME, with the operator's names. Unknown contents of a file are an error, and
// so is anything that the operator does not have in that opset.
//
// Each case is computed twice and passes if both results pass: the second time, attention has its scores given as an
// array, and the other operators take one token at a time.
package conformance

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/internal/simd"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tensor"
)

const onnxCases = "testdata/onnx-*"

var casesFlag = flag.String("cases", onnxCases, "pattern of directories of cases, one *.safetensors file each")

// TestONNXCases runs the test cases of the ONNX project, or the cases in -cases, on every instruction set.
func TestONNXCases(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(*casesFlag, "*.safetensors"))
	if err != nil || len(paths) == 0 || *casesFlag == onnxCases && len(paths) != 44+27 {
		t.Fatalf("%s: found %d cases, %v", *casesFlag, len(paths), err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".safetensors"), func(t *testing.T) {
			c, err := readCase(path)
			if err != nil {
				t.Fatal(err)
			}
			simd.Each(func(kernels string) {
				largest, err := c.run()
				t.Logf("%s: largest error %.1e", kernels, largest)
				if err != nil {
					t.Errorf("%s: %v", kernels, err)
				}
			})
		})
	}
}

// TestDrawnCases compares random cases with the reference, in combinations that the operator's own cases lack.
func TestDrawnCases(t *testing.T) {
	drawn, cases := map[string]int{}, 3000
	if testing.Short() {
		cases = 1000
	}
	for seed := range uint64(cases) {
		n := draw(rand.New(rand.NewPCG(seed, 0)))
		for _, trait := range traits(n) {
			drawn[trait]++
		}
		c := testCase{node: n, want: n.expected()}
		if largest, err := c.run(); err != nil {
			t.Errorf("seed %d: error %v: %v\n%s", seed, largest, err, strings.Join(traits(n), ", "))
		}
	}
	for _, trait := range strings.Split(allTraits, ", ") {
		if drawn[trait] < cases/100 {
			t.Errorf("%q was drawn %d times, want %d", trait, drawn[trait], cases/100)
		}
	}
}

const allTraits = "opset 23, opset 24, opset 25, three axes, past, nonpad, causal, window, softcap, scale, " +
	"mode 0, mode 1, mode 2, mode 3, booleans, numbers, mask of rank 1, mask of rank 2, mask of rank 3, mask of rank 4, " +
	"short mask, grouped, empty row"

// traits describe the features of a case.
func traits(n *attention) []string {
	has := []string{fmt.Sprint("opset ", n.opset), fmt.Sprint("mode ", n.QKMatmulOutputMode)}
	add := func(trait string, ok bool) {
		if ok {
			has = append(has, trait)
		}
	}
	add("three axes", n.q.Rank() == 3)
	add("past", n.pastKey != nil)
	add("nonpad", n.nonpad != nil)
	add("causal", n.IsCausal == 1)
	add("window", n.LeftWindowSize >= 0 || n.RightWindowSize >= 0)
	add("softcap", n.Softcap > 0)
	add("scale", n.Scale != nil)
	q, k := split(n.q, n.QNumHeads), split(n.k, n.KVNumHeads)
	add("grouped", q.Dim(1) > k.Dim(1))
	if m := n.mask; m != nil {
		add("booleans", m.booleans != nil)
		add("numbers", m.numbers != nil)
		has = append(has, fmt.Sprint("mask of rank ", len(m.shape)))
		lk := k.Dim(2)
		if n.pastKey != nil {
			lk += n.pastKey.Dim(2)
		}
		add("short mask", n.opset >= 24 && m.shape[len(m.shape)-1] < lk)
	}
	if n.QKMatmulOutputMode == 3 {
		w := n.reference()["qk_matmul_output"]
		add("empty row", slices.Max(w[:k.Dim(2)]) == 0)
	}
	return has
}

// draw draws a case, with numbers in a random precision.
func draw(rng *rand.Rand) *attention {
	one := func(of ...int) int { return of[rng.IntN(len(of))] }
	maybe := func() bool { return rng.IntN(2) == 0 }
	n := &attention{opset: 23 + rng.IntN(3)}
	typ := []safetensors.DType{safetensors.F32, safetensors.F32, safetensors.F16, safetensors.BF16}[rng.IntN(4)]
	numbers := func(shape ...int) *tensor.Tensor {
		x := tensor.Randn(rng, shape...)
		for i, v := range x.Data() {
			x.Data()[i] = round(v, typ)
		}
		return x
	}
	b, g, group, lq, lk := one(1, 2, 3), one(1, 2, 3), one(1, 1, 2, 3), one(1, 3, 5), one(1, 2, 7, 11)
	e, size := one(1, 5, 8, 13), one(1, 3, 8, 17)
	h := g * group

	n.q, n.k, n.v = numbers(b, h, lq, e), numbers(b, g, lk, e), numbers(b, g, lk, size)
	if maybe() {
		n.q, n.k, n.v = numbers(b, lq, h*e), numbers(b, lk, g*e), numbers(b, lk, g*size)
		n.QNumHeads, n.KVNumHeads = &h, &g
	}
	total := lk
	switch {
	case maybe():
		past := one(0, 1, 3, 7)
		n.pastKey, n.pastValue = numbers(b, g, past, e), numbers(b, g, past, size)
		total += past
	case n.opset >= 24 && maybe():
		for range b {
			n.nonpad = append(n.nonpad, rng.IntN(lk+1))
		}
	}

	n.IsCausal = rng.IntN(2)
	n.LeftWindowSize, n.RightWindowSize = -1, -1
	if n.opset >= 25 {
		n.LeftWindowSize, n.RightWindowSize = one(-1, -1, 0, 2, 5, math.MaxInt), one(-1, -1, 0, 1, 4, math.MaxInt)
	}
	if maybe() {
		scale := []float32{0, 0.01, 0.3, 1}[rng.IntN(4)]
		n.Scale = &scale
	}
	n.Softcap = []float32{0, 0, 0.5, 2, 30}[rng.IntN(5)]
	n.QKMatmulOutputMode = rng.IntN(4)
	if maybe() {
		p := one(1, 10, 11, 16)
		n.SoftmaxPrecision = &p
	}
	if rng.IntN(4) > 0 {
		n.mask = drawMask(rng, n.opset, typ, []int{b, h, lq, total})
	}
	return n
}

// drawMask draws a mask for scores of the given shape.
func drawMask(rng *rand.Rand, opset int, typ safetensors.DType, full []int) *maskInput {
	shape := slices.Clone(full[rng.IntN(4):])
	for i := range shape[:len(shape)-1] {
		if rng.IntN(3) == 0 {
			shape[i] = 1
		}
	}
	last := &shape[len(shape)-1]
	switch {
	case opset >= 24 && rng.IntN(2) == 0:
		*last = 1 + rng.IntN(*last)
	case opset < 24 && rng.IntN(4) == 0:
		*last = 1
	}
	m := &maskInput{shape: shape}
	size := 1
	for _, d := range shape {
		size *= d
	}
	kind, none := rng.IntN(3), rng.IntN(6) == 0
	for range size {
		hidden := none || rng.IntN(3) == 0
		switch x := float32(rng.NormFloat64()); {
		case kind == 0:
			m.booleans = append(m.booleans, !hidden)
		case kind == 1 && hidden:
			m.numbers = append(m.numbers, float32(math.Inf(-1)))
		case kind == 1:
			m.numbers = append(m.numbers, round(x, typ))
		default: // integers
			m.numbers = append(m.numbers, float32(rng.IntN(7)-3))
		}
	}
	return m
}

// Hidden values have no influence even if they are NaN, whichever mask hides them; a query without keys gets zeros.
func TestHiddenNaN(t *testing.T) {
	negInf := float32(math.Inf(-1))
	for name, mask := range map[string]*maskInput{
		"booleans": {shape: []int{2, 3}, booleans: []bool{true, false, true, false, false, false}},
		"numbers":  {shape: []int{2, 3}, numbers: []float32{0, negInf, 0, negInf, negInf, negInf}},
	} {
		n := attention{
			opset:    23,
			settings: settings{LeftWindowSize: -1, RightWindowSize: -1, QKMatmulOutputMode: 3},
			q:        tensor.Full(1, 1, 1, 2, 1),
			k:        tensor.New([]float32{1, float32(math.NaN()), 1}, 1, 1, 3, 1),
			v:        tensor.New([]float32{2, float32(math.Inf(1)), 4}, 1, 1, 3, 1),
			mask:     mask,
		}
		c := testCase{node: &n, want: []output{
			{"Y", safetensors.F32, []int{1, 1, 2, 1}, []float64{3, 0}},
			{"qk_matmul_output", safetensors.F32, []int{1, 1, 2, 3}, []float64{0.5, 0, 0.5, 0, 0, 0}},
		}}
		if _, err := c.run(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The square roots of the scale keep products in range that would otherwise overflow.
func TestScaleKeepsRange(t *testing.T) {
	scale := float32(0x1p-70)
	n := attention{
		opset:    23,
		settings: settings{LeftWindowSize: -1, RightWindowSize: -1, Scale: &scale},
		q:        tensor.Full(0x1p70, 1, 1, 1, 2),
		k:        tensor.New([]float32{0x1p70, -0x1p70, 0, 0}, 1, 1, 2, 2),
		v:        tensor.New([]float32{1, 3}, 1, 1, 2, 1),
	}
	c := testCase{node: &n, want: []output{
		{"Y", safetensors.F32, []int{1, 1, 1, 1}, []float64{2}},
		{"qk_matmul_output", safetensors.F32, []int{1, 1, 1, 2}, []float64{0, 0}},
	}}
	if _, err := c.run(); err != nil {
		t.Error(err)
	}
}

// TestRound compares the rounding of results with the decoding of all half-precision numbers by package safetensors.
func TestRound(t *testing.T) {
	data := make([]byte, 2<<16)
	for i := range 1 << 16 {
		data[2*i], data[2*i+1] = byte(i), byte(i>>8)
	}
	for _, typ := range []safetensors.DType{safetensors.F16, safetensors.BF16} {
		all := safetensors.Tensor{Name: "all", DType: typ, Shape: []int{1 << 16}, Data: data}
		x, err := all.Float32s()
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range x {
			if v != v {
				continue
			}
			if got := round(v, typ); got != v {
				t.Fatalf("%s: %v became %v", typ, v, got)
			}
			if i+1 == len(x) || x[i+1] != x[i+1] || x[i+1]-x[i+1] != 0 {
				continue
			}
			// Halfway between two neighbours, the one with an even code is chosen.
			middle := float32((float64(v) + float64(x[i+1])) / 2)
			even := x[i+i&1]
			for at, want := range map[float32]float32{
				middle: even, math.Nextafter32(middle, v): v, math.Nextafter32(middle, x[i+1]): x[i+1],
			} {
				if got := round(at, typ); got != want {
					t.Fatalf("%s: %v, between %v and %v, became %v, want %v", typ, at, v, x[i+1], got, want)
				}
			}
		}
	}
	for x, want := range map[float32]float32{65519: 65504, 65520: float32(math.Inf(1)), -1e9: float32(math.Inf(-1))} {
		if got := round(x, safetensors.F16); got != want {
			t.Errorf("%v became %v, want %v", x, got, want)
		}
	}
	if got := round(math.MaxFloat32, safetensors.BF16); !math.IsInf(float64(got), 1) {
		t.Errorf("the largest float32 became %v", got)
	}
}

// An invalid file or a wrong result gives a one-line error.
func TestWrongCases(t *testing.T) {
	zeros := func(name string, shape ...int) safetensors.Tensor {
		return safetensors.FromFloat32s(name, shape, make([]float32, tensor.Zeros(shape...).Len()))
	}
	type file = safetensors.File
	good := func() *file {
		return &file{
			Metadata: map[string]string{"name": "a", "op": "Attention", "opset": "25", "attributes": "{}"},
			Tensors:  []safetensors.Tensor{zeros("in.Q", 2, 3, 5, 8), zeros("in.K", 2, 3, 7, 8), zeros("in.V", 2, 3, 7, 11), zeros("out.Y", 2, 3, 5, 11)},
		}
	}
	attribute := func(text string) func(*file) { return func(f *file) { f.Metadata["attributes"] = text } }
	also := func(x safetensors.Tensor) func(*file) { return func(f *file) { f.Tensors = append(f.Tensors, x) } }
	opset := func(opset, attributes string, more ...safetensors.Tensor) func(*file) {
		return func(f *file) {
			f.Metadata["opset"], f.Metadata["attributes"] = opset, attributes
			f.Tensors = append(f.Tensors, more...)
		}
	}
	without := func(name string) func(*file) {
		return func(f *file) {
			f.Tensors = slices.DeleteFunc(f.Tensors, func(x safetensors.Tensor) bool { return x.Name == name })
		}
	}
	instead := func(x safetensors.Tensor) func(*file) {
		return func(f *file) { without(x.Name)(f); also(x)(f) }
	}
	flat := func(heads string) func(*file) {
		return func(f *file) {
			f.Tensors = []safetensors.Tensor{zeros("in.Q", 2, 5, 24), zeros("in.K", 2, 7, 24), zeros("in.V", 2, 7, 33), zeros("out.Y", 2, 5, 33)}
			f.Metadata["attributes"] = heads
		}
	}
	ints := func(name string, shape []int, x ...int) safetensors.Tensor {
		return safetensors.FromInts(name, shape, x)
	}
	for _, c := range []struct {
		spoil func(*file)
		want  string // empty if it passes
	}{
		{func(*file) {}, ""},
		{opset("23", "{}", zeros("in.attn_mask", 1)), ""},
		{opset("24", `{"q_num_heads": 3, "kv_num_heads": 3}`), ""},
		{also(ints("in.attn_mask", []int{7}, 1, 2, 3, 4, 5, 6, 7)), ""},
		{flat(`{"q_num_heads": 3, "kv_num_heads": 3}`), ""},

		{attribute(`{"alpha": 1}`), `onnx: Attention has no attribute "alpha"`},
		{attribute(`{"Scale": 1}`), `onnx: Attention has no attribute "Scale"`},
		{attribute(`{"in.Q": 1}`), `onnx: Attention has no attribute "in.Q"`},
		{attribute(`{"scale": null}`), `attribute scale is null, want a value`},
		{attribute(`{"is_causal": 1.5}`), `attributes: json: cannot unmarshal number 1.5`},
		{attribute(`{`), `attributes: unexpected end of JSON input`},
		{attribute(`{"is_causal": 2}`), `onnx: Attention-25: is_causal is 2, want 0 or 1`},
		{attribute(`{"left_window_size": -2}`), `onnx: Attention-25: left_window_size is -2, want -1 or more`},
		{attribute(`{"right_window_size": -2}`), `onnx: Attention-25: right_window_size is -2, want -1 or more`},
		{attribute(`{"qk_matmul_output_mode": 4}`), `onnx: Attention-25: qk_matmul_output_mode is 4, want 0 to 3`},
		{attribute(`{"scale": -1}`), `onnx: Attention-25: scale is -1, want 0 or more`},
		{attribute(`{"softcap": -1}`), `onnx: Attention-25: softcap is -1, want 0 or more`},
		{attribute(`{"softmax_precision": 7}`), `onnx: Attention-25: softmax_precision is 7, want 1 (FLOAT), 10 (FLOAT16), 11 (DOUBLE) or 16 (BFLOAT16)`},
		{attribute(`{"q_num_heads": 3}`), `onnx: Attention-25: q_num_heads is 3, want none, because Q, K and V have four axes`},
		{opset("24", `{"q_num_heads": 2}`), `onnx: Attention-24: q_num_heads is 2, want 3, as Q has`},
		{opset("24", `{"left_window_size": 1}`), `onnx: Attention-24 has no attribute "left_window_size", Attention-25 has`},
		{opset("23", "{}", ints("in.nonpad_kv_seqlen", []int{2}, 3, 5)), `onnx: Attention-23 has no tensor "in.nonpad_kv_seqlen", Attention-24 has`},
		{opset("23", "{}", zeros("in.attn_mask", 5, 4)), `bias has shape [5 4], want a shape that broadcasts to [B=2 H=3 Lq=5 Lk=7]`},
		{opset("22", "{}"), `opset is "22", want 23 to 25`},
		{func(f *file) { f.Metadata["op"] = "FlexAttention" }, `op is "FlexAttention", want Attention, LinearAttention or CausalConvWithState`},
		{func(f *file) { f.Metadata["seed"] = "1" }, `metadata has "seed", want name, op, opset and attributes`},

		{also(zeros("in.X", 1)), `onnx: Attention has no tensor "in.X"`},
		{also(zeros("scale", 1)), `onnx: Attention has no tensor "scale"`},
		{without("in.K"), `tensor in.K is missing`},
		{without("out.Y"), `tensor out.Y is missing`},
		{instead(safetensors.FromFloat64s("in.Q", []int{1}, []float64{1})), `tensor in.Q has type F64, want F32, F16 or BF16: attn computes in float32`},
		{instead(ints("in.V", []int{1}, 1)), `safetensors: tensor "in.V": dtype is I64, want F16, BF16, F32 or F64`},
		{instead(safetensors.FromFloat64s("out.Y", []int{1}, []float64{1})), `tensor out.Y has type F64, want F32, as in.Q has`},
		{also(zeros("in.nonpad_kv_seqlen", 2)), `tensor in.nonpad_kv_seqlen is F32 [2], want I64 [B]`},
		{also(ints("in.nonpad_kv_seqlen", []int{2}, 3, 8)), `lengths has 8 keys, want 0 to Lk=7`},
		{also(ints("in.nonpad_kv_seqlen", []int{3}, 3, 5, 5)), `lengths has 3 values, want one for each of B=2 sequences`},
		{also(zeros("in.past_key", 2, 3, 4, 8)), `onnx: Attention-25: only one of past_key and past_value is given, want both or none`},
		{func(f *file) {
			f.Tensors = append(f.Tensors, ints("in.nonpad_kv_seqlen", []int{2}, 3, 5), zeros("in.past_key", 2, 3, 4, 8), zeros("in.past_value", 2, 3, 4, 11))
		}, `onnx: Attention-25: nonpad_kv_seqlen is given beside past_key, want one of them`},
		{func(f *file) {
			f.Tensors = append(f.Tensors, zeros("in.past_key", 2, 3, 4, 9), zeros("in.past_value", 2, 3, 4, 11))
		}, `tensor: Concat: `},
		{func(f *file) {
			f.Tensors = append(f.Tensors, zeros("in.past_key", 2, 12, 8), zeros("in.past_value", 2, 12, 11))
		}, `onnx: Attention-25: the number of axes of past_key and past_value is [3 3], want 4`},
		{func(f *file) {
			f.Tensors = append(f.Tensors, ints("in.nonpad_kv_seqlen", []int{2}, 3, 5), zeros("out.present_key", 2, 3, 7, 8))
		}, `has present_key or present_value beside nonpad_kv_seqlen, want one of them`},
		{also(zeros("in.attn_mask")), `onnx: Attention-25: the number of axes of attn_mask is 0, want 1 to 4`},
		{also(zeros("in.attn_mask", 3, 7, 5)), `bias has shape [3 7 7], want a shape that broadcasts to [B=2 H=3 Lq=5 Lk=7]`},
		{instead(zeros("in.K", 2, 7, 24)), `onnx: Attention-25: the number of axes of K is 3, want 3 or 4, the same for Q, K and V`},
		{instead(zeros("in.K", 2, 2, 7, 8)), `attn: Attend: key has shape [2 2 7 8], want [B=2 G Lk E] with G a divisor of H=3`},
		{flat(`{"q_num_heads": 3}`), `onnx: Attention-25: kv_num_heads is missing, want the number of heads, because Q, K and V have three axes`},
		{flat(`{"q_num_heads": 5, "kv_num_heads": 3}`), `onnx: Attention-25: q_num_heads is 5, want a positive divisor of 24, the last axis of Q`},
		{flat(`{"q_num_heads": 0, "kv_num_heads": 3}`), `onnx: Attention-25: q_num_heads is 0, want a positive divisor`},

		{instead(zeros("out.Y", 2, 3, 5, 10)), `fast path: Y has shape [2 3 5 11], want [2 3 5 10]`},
		{instead(safetensors.FromFloat32s("out.Y", []int{2, 3, 5, 11}, slices.Repeat([]float32{1}, 330))), `fast path: Y element 0 is 0, want 1 to within 4e-06`},
	} {
		f, dir := good(), t.TempDir()
		c.spoil(f)
		if err := f.WriteFile(filepath.Join(dir, "a.safetensors")); err != nil {
			t.Fatal(err)
		}
		read, err := readCase(filepath.Join(dir, "a.safetensors"))
		if err == nil {
			_, err = read.run()
		}
		if c.want == "" && err != nil {
			t.Errorf("%v, want it to pass", err)
		}
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}
