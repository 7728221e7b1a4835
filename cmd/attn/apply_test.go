package main

import (
	"encoding/binary"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

const goldenDir = "../../testdata/golden"

// applyFlags returns the command line for a golden file, or false if no flags describe its case.
func applyFlags(g *tensortest.Golden) ([]string, bool) {
	if rule := g.Setting("rule"); rule != "" { // attention without a softmax
		return []string{"--rule", rule}, g.Setting("normalize") == "false" && !g.Has("in.ends0")
	}
	score := g.Among("score", score.Kinds().Names())
	if score == "" || !slices.Contains([]string{"1", "2", "4", "5", "6", "attend"}, g.Setting("system")) || g.Setting("dropout") != "" || g.Setting("gate") != "" {
		return nil, false
	}
	flags := []string{"--score", score, "--weights"}
	if scale := g.Setting("scale"); scale != "" {
		flags = append(flags, "--scale", scale)
	}
	if limit := g.Setting("softcap"); limit != "" {
		flags = append(flags, "--softcap", limit)
	}
	if g.Setting("causal") == "true" {
		flags = append(flags, "--causal")
	}
	if left := g.Setting("window_left"); left != "" {
		if g.Setting("causal") != "true" {
			left += "," + g.Setting("window_right")
		}
		flags = append(flags, "--window", left)
	}
	if g.Setting("default_offset") == "false" {
		flags = append(flags, "--offset="+g.Setting("offset"))
	}
	if g.Setting("heads") != "" && g.Has("param.q.weight") {
		flags = append(flags, "--heads", g.Setting("heads"))
	}
	return flags, true
}

// applyInput returns the tensors of a golden file with the names of attn apply.
func applyInput(t *testing.T, path string) *safetensors.File {
	t.Helper()
	golden, err := safetensors.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	in := &safetensors.File{}
	add := func(name string, x safetensors.Tensor) {
		x.Name = name
		in.Tensors = append(in.Tensors, x)
	}
	for _, x := range golden.Tensors {
		name, isInput := strings.CutPrefix(x.Name, "in.")
		switch {
		case isInput && name == "kv": // one tensor as keys and values
			add("k", x)
			add("v", x)
		case isInput:
			add(name, x)
		case strings.HasPrefix(x.Name, "param."):
			name := strings.TrimPrefix(x.Name, "param.")
			if golden.Lookup("param.q.weight") == nil { // without a layer, only the score has parameters
				name = "score." + name
			}
			add(name, x)
		}
	}
	return in
}

// runApply writes the input, runs the command and returns its output file.
func runApply(t *testing.T, in *safetensors.File, flags ...string) *safetensors.File {
	t.Helper()
	dir := t.TempDir()
	from, to := filepath.Join(dir, "in.safetensors"), filepath.Join(dir, "out.safetensors")
	if err := in.WriteFile(from); err != nil {
		t.Fatal(err)
	}
	command(t, append([]string{"apply", "--in", from, "--out", to}, flags...)...)
	out, err := safetensors.Read(to)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// results returns the tensors of a file by name.
func results(t *testing.T, f *safetensors.File) map[string][]float32 {
	t.Helper()
	all := map[string][]float32{}
	for _, x := range f.Tensors {
		data, err := x.Float32s()
		if err != nil {
			t.Fatal(err)
		}
		all[x.Name] = data
	}
	return all
}

// TestApplyGolden compares out, weights or states, and every gradient with PyTorch's results, for each golden file
// that flags can describe.
func TestApplyGolden(t *testing.T) {
	paths, err := filepath.Glob(goldenDir + "/*.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, path := range paths {
		flags, ok := applyFlags(tensortest.Open(t, path))
		if !ok {
			continue
		}
		count++
		t.Run(strings.TrimSuffix(filepath.Base(path), ".safetensors"), func(t *testing.T) {
			g := tensortest.Open(t, path)
			in := applyInput(t, path)
			out := runApply(t, in, flags...)
			checkGolden(t, g, in, results(t, out))
		})
	}
	if count < 50 {
		t.Errorf("only %d golden files, want at least 50", count)
	}
}

// checkGolden compares an output file with a golden file.
func checkGolden(t *testing.T, g *tensortest.Golden, in *safetensors.File, got map[string][]float32) {
	t.Helper()
	largest := 0.0 // largest gradient, the scale of rounding errors in gradients that are exactly zero
	for name, x := range got {
		if strings.HasPrefix(name, "d.") {
			for _, v := range x {
				largest = max(largest, math.Abs(float64(v)))
			}
		}
	}
	left := map[string]bool{} // inputs without a checked gradient
	for _, x := range in.Tensors {
		if x.DType == safetensors.F32 && !slices.Contains([]string{"dout", "dweights", "dstate"}, x.Name) {
			left[x.Name] = true
		}
	}
	for name, x := range got {
		rest, isGradient := strings.CutPrefix(name, "d.")
		switch {
		case !isGradient:
			g.Check("want."+name, tensor.New(x, len(x)))
			continue
		case g.Has("in.kv") && rest == "k": // the golden file has the sum of the gradients of k and v
			for i, v := range got["d.v"] {
				x[i] += v
			}
			rest = "kv"
			delete(left, "k")
			delete(left, "v")
		case g.Has("in.kv") && rest == "v":
			continue
		}
		delete(left, rest)
		if !g.Has("grad." + rest) {
			rest = strings.TrimPrefix(rest, "score.") // a golden file without a layer
		}
		exact := g.Float64s("grad." + rest)
		if slices.ContainsFunc(exact, func(v float64) bool { return math.Abs(v) > 1e-12 }) {
			g.Check("grad."+rest, tensor.New(x, len(x)))
		} else { // zero, up to rounding errors
			tensortest.Close(t, name, x, exact, largest*1e-6)
		}
	}
	for name := range left {
		t.Errorf("there is no gradient d.%s", name)
	}
	if more := map[bool]string{true: "weights", false: "state"}[g.Setting("rule") == ""]; got["out"] == nil || got[more] == nil {
		t.Errorf("out or %s is missing", more)
	}
}

// Inputs may have any float type.
func TestApplyDTypes(t *testing.T) {
	path := filepath.Join(goldenDir, "mha_additive.safetensors")
	flags, _ := applyFlags(tensortest.Open(t, path))
	for _, dtype := range []safetensors.DType{safetensors.F64, safetensors.F16, safetensors.BF16} {
		narrow, plain := &safetensors.File{}, &safetensors.File{}
		for _, x := range applyInput(t, path).Tensors {
			if x.DType != safetensors.F32 {
				narrow.Tensors, plain.Tensors = append(narrow.Tensors, x), append(plain.Tensors, x)
				continue
			}
			data, err := x.Float32s()
			if err != nil {
				t.Fatal(err)
			}
			coded := recode(x, dtype, data)
			rounded, err := coded.Float32s()
			if err != nil {
				t.Fatal(err)
			}
			narrow.Tensors = append(narrow.Tensors, coded)
			plain.Tensors = append(plain.Tensors, safetensors.FromFloat32s(x.Name, x.Shape, rounded))
		}
		got, want := results(t, runApply(t, narrow, flags...)), results(t, runApply(t, plain, flags...))
		if len(got) != len(want) {
			t.Errorf("%s: %d results, want %d", dtype, len(got), len(want))
		}
		for name, x := range want {
			tensortest.Same(t, string(dtype)+": "+name, got[name], x)
		}
	}
}

// recode converts a tensor to another type; conversion to half precision truncates.
func recode(x safetensors.Tensor, dtype safetensors.DType, data []float32) safetensors.Tensor {
	y := safetensors.Tensor{Name: x.Name, DType: dtype, Shape: x.Shape}
	for _, v := range data {
		bits := math.Float32bits(v)
		switch dtype {
		case safetensors.F64:
			y.Data = binary.LittleEndian.AppendUint64(y.Data, math.Float64bits(float64(v)))
		case safetensors.BF16:
			y.Data = binary.LittleEndian.AppendUint16(y.Data, uint16(bits>>16))
		case safetensors.F16:
			half := uint16(bits >> 16 & 0x8000)
			if e := int(bits>>23&0xff) - 127 + 15; e > 0 { // smaller ones become 0
				half |= uint16(e)<<10 | uint16(bits>>13&0x3ff)
			}
			y.Data = binary.LittleEndian.AppendUint16(y.Data, half)
		}
	}
	return y
}

// Masks in the file and on the command line are combined. A layer with grouped queries equals a layer in
// which each head has a copy of its group's keys and values.
func TestApplyGroupedLayer(t *testing.T) {
	const heads, groups, e, v, d = 6, 2, 5, 3, 7
	numbers := func(name string, shape ...int) safetensors.Tensor {
		n := 1
		for _, s := range shape {
			n *= s
		}
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(math.Sin(float64(len(name)*1000 + i*i)))
		}
		return safetensors.FromFloat32s(name, shape, x)
	}
	grouped := &safetensors.File{Tensors: []safetensors.Tensor{
		numbers("q", 2, 4, d), numbers("k", 2, 5, d), numbers("v", 2, 5, d),
		numbers("q.weight", heads*e, d), numbers("k.weight", groups*e, d), numbers("v.weight", groups*v, d), numbers("out.weight", 9, heads*v),
		numbers("q.bias", heads*e), numbers("k.bias", groups*e), numbers("v.bias", groups*v), numbers("out.bias", 9),
	}}
	full := &safetensors.File{}
	for _, x := range grouped.Tensors {
		if strings.HasPrefix(x.Name, "k.") || strings.HasPrefix(x.Name, "v.") {
			var data []byte
			for group := range slices.Chunk(x.Data, len(x.Data)/groups) {
				data = append(data, slices.Repeat(group, heads/groups)...)
			}
			shape := append([]int{x.Shape[0] * heads / groups}, x.Shape[1:]...)
			x = safetensors.Tensor{Name: x.Name, DType: x.DType, Shape: shape, Data: data}
		}
		full.Tensors = append(full.Tensors, x)
	}
	got := results(t, runApply(t, grouped, "--heads", "6", "--weights", "--causal"))
	for name, want := range results(t, runApply(t, full, "--heads", "6", "--weights", "--causal")) {
		wide := make([]float64, len(want))
		for i, x := range want {
			wide[i] = float64(x)
		}
		tensortest.Close(t, name, got[name], wide, 1e-6)
	}
}
