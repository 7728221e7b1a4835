package main

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/position"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tensor/tensortest"
)

// Each flag, with its tensors, has bit-for-bit the results and gradients of the library's option.
func TestApplyOptions(t *testing.T) {
	const b, h, g, lq, lk, e, v = 2, 6, 3, 5, 7, 8, 11
	rope := func(c position.RoPEConfig) attn.Position {
		r, err := position.NewRoPE(c)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	ints := func(name string, shape []int, values ...byte) safetensors.Tensor {
		return safetensors.Tensor{Name: name, DType: safetensors.U8, Shape: shape, Data: values}
	}
	rng := rand.New(rand.NewPCG(7, 11))
	slopes, sinks := tensor.Randn(rng, h), tensor.Randn(rng, h)
	for _, c := range []struct {
		flags string
		more  []safetensors.Tensor
		o     attn.Options
		rope  attn.Position
		qAt   attn.Positions
		kAt   attn.Positions
	}{
		{flags: "--softcap 0.5", o: attn.Options{SoftCap: 0.5}},
		{flags: "--alibi", o: attn.Options{Changes: []attn.ScoreChange{position.ALiBi()}}},
		{flags: "--alibi", more: []safetensors.Tensor{safetensors.FromFloat32s("slopes", []int{h}, slopes.Data())}, o: attn.Options{Changes: []attn.ScoreChange{position.ALiBi(slopes.Data()...)}}},
		{flags: "", more: []safetensors.Tensor{safetensors.FromFloat32s("sinks", []int{h}, sinks.Data())}, o: attn.Options{Sinks: sinks}},
		{flags: "--window 2", o: attn.Options{Mask: mask.Window(2, 2)}},
		{flags: "--window 2,1", o: attn.Options{Mask: mask.Window(2, 1)}},
		{flags: "--window 2,1 --offset 1", o: attn.Options{Mask: mask.WindowAt(2, 1, 1)}},
		{flags: "--window 2,1 --sink 1", o: attn.Options{Mask: mask.WindowWithSinks(2, 1, 1)}},
		{flags: "--window 1 --causal --sink 2", o: attn.Options{Mask: mask.WindowWithSinks(1, 0, 2)}},
		{flags: "--documents 3,4,7", o: attn.Options{Mask: mask.Documents([]int{3, 4, 7})}},
		{flags: "", more: []safetensors.Tensor{ints("documents", []int{2, 2}, 3, 7, 4, 6)}, o: attn.Options{Mask: mask.Documents([]int{3, 7}, []int{4, 6})}},
		{flags: "", more: []safetensors.Tensor{ints("documents", []int{3}, 2, 3, 7)}, o: attn.Options{Mask: mask.Documents([]int{2, 3, 7})}},
		{flags: "--causal --documents 4,7", o: attn.Options{Mask: attn.And(mask.Causal(), mask.Documents([]int{4, 7}))}},
		{flags: "--rope", rope: rope(position.RoPEConfig{}), qAt: attn.Positions{Offsets: []int{lk - lq}}},
		{flags: "--rope --rope-adjacent", rope: rope(position.RoPEConfig{Pairs: position.AdjacentPairs}), qAt: attn.Positions{Offsets: []int{lk - lq}}},
		{flags: "--rope --rope-base 50 --rope-size 6", rope: rope(position.RoPEConfig{Base: 50, Size: 6}), qAt: attn.Positions{Offsets: []int{lk - lq}}},
		{
			flags: "--rope", rope: rope(position.RoPEConfig{}),
			more: []safetensors.Tensor{ints("q_positions", []int{lq}, 3, 1, 4, 1, 5), ints("k_positions", []int{2, lk}, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8)},
			qAt:  attn.Positions{IDs: [][]int{{3, 1, 4, 1, 5}}}, kAt: attn.Positions{IDs: [][]int{{9, 2, 6, 5, 3, 5, 8}, {9, 7, 9, 3, 2, 3, 8}}},
		},
	} {
		name := c.flags
		for _, x := range c.more {
			name += " " + x.Name
		}
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(3, 5))
			given := map[string]*tensor.Tensor{}
			in := &safetensors.File{Tensors: c.more}
			for _, x := range []struct {
				name  string
				shape []int
			}{
				{"q", []int{b, h, lq, e}}, {"k", []int{b, g, lk, e}}, {"v", []int{b, g, lk, v}},
				{"dout", []int{b, h, lq, v}}, {"dweights", []int{b, h, lq, lk}}, {"dlse", []int{b, h, lq}},
			} {
				given[x.name] = tensor.Randn(rng, x.shape...)
				in.Tensors = append(in.Tensors, safetensors.FromFloat32s(x.name, x.shape, given[x.name].Data()))
			}
			got := results(t, runApply(t, in, append(strings.Fields(c.flags), "--weights", "--lse")...))

			tape := tensor.NewTape(tensor.Eval)
			want := func(o attn.Options, position attn.Position) map[string][]float32 {
				o.Weights, o.LogSumExp = true, true
				leaves := map[string]*tensor.Tensor{}
				for _, name := range []string{"q", "k", "v"} {
					leaves[name] = given[name].Clone().Param()
				}
				q, k := leaves["q"], leaves["k"]
				if position != nil {
					q, k = attn.ApplyPosition(tape, position, q, attn.Query, c.qAt), attn.ApplyPosition(tape, position, k, attn.Key, c.kAt)
				}
				if o.Sinks != nil {
					leaves["sinks"] = o.Sinks.Clone().Param()
					o.Sinks = leaves["sinks"]
				}
				y := attn.Attend(tape, q, k, leaves["v"], o)
				tape.BackwardAll([]*tensor.Tensor{y.Out, y.Weights, y.LogSumExp}, []*tensor.Tensor{given["dout"], given["dweights"], given["dlse"]})
				all := map[string][]float32{"out": y.Out.Data(), "weights": y.Weights.Data(), "lse": y.LogSumExp.Data()}
				for name, x := range leaves {
					all["d."+name] = x.Grad().Data()
				}
				return all
			}
			with, without := want(c.o, c.rope), want(attn.Options{}, nil)
			if len(got) != len(with) {
				t.Errorf("%d results, want %d", len(got), len(with))
			}
			for name, x := range with {
				tensortest.Same(t, name, got[name], x)
			}
			if got["out"][len(got["out"])-1] == without["out"][len(without["out"])-1] {
				t.Error("the option changes nothing")
			}
		})
	}
}

// Layers from PyTorch's state dicts have the same results as in PyTorch.
func TestApplyTorch(t *testing.T) {
	const dir = "../../testdata/torch"
	for _, name := range []string{"mha", "mha_nobias", "mha_widths"} {
		t.Run(name, func(t *testing.T) {
			g := tensortest.Open(t, filepath.Join(dir, name+".golden.safetensors"))
			in := &safetensors.File{}
			for _, x := range []string{"q", "k", "v"} {
				in.Tensors = append(in.Tensors, safetensors.FromFloat32s(x, g.Shape("in."+x), g.Tensor("in."+x).Data()))
			}
			in.Tensors = append(in.Tensors, safetensors.FromFloat32s("dout", g.Shape("in.dout"), g.Tensor("in.dout").Data()))
			layer := filepath.Join(dir, name+".safetensors")
			out := runApply(t, in, "--heads", "3", "--weights", "--layer", layer)
			got := results(t, out)
			for _, x := range []string{"out", "weights"} {
				g.Check("want."+x, tensor.New(got[x], len(got[x])))
			}
			for _, x := range []string{"q", "k", "v"} {
				g.Check("grad."+x, tensor.New(got["d."+x], len(got["d."+x])))
			}
			state, err := safetensors.Read(layer)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range state.Tensors {
				if d := out.Lookup("d." + x.Name); d == nil || !slices.Equal(d.Shape, x.Shape) {
					t.Errorf("d.%s is %v, want the gradient of %v", x.Name, d, x.Shape)
				}
			}
		})
	}
}

// A layer has the same results and gradients with all naming schemes of its parameters.
func TestApplyLayerNames(t *testing.T) {
	const d = 15
	rng := rand.New(rand.NewPCG(13, 17))
	float := func(name string, shape ...int) safetensors.Tensor {
		return safetensors.FromFloat32s(name, shape, tensor.Randn(rng, shape...).Data())
	}
	inputs := []safetensors.Tensor{float("q", 2, 5, d), float("k", 2, 7, d), float("v", 2, 7, d), float("dout", 2, 5, d)}
	maps := []safetensors.Tensor{
		float("q.weight", d, d), float("k.weight", d, d), float("v.weight", d, d), float("out.weight", d, d),
		float("q.bias", d), float("k.bias", d), float("v.bias", d), float("out.bias", d),
	}
	renamed := func(name func(string) string) []safetensors.Tensor {
		all := slices.Clone(maps)
		for i := range all {
			all[i].Name = name(all[i].Name)
		}
		return all
	}
	stack := func(name string, parts ...safetensors.Tensor) safetensors.Tensor {
		x := safetensors.Tensor{Name: name, DType: safetensors.F32, Shape: slices.Clone(parts[0].Shape)}
		x.Shape[0] *= len(parts)
		for _, p := range parts {
			x.Data = append(x.Data, p.Data...)
		}
		return x
	}
	layer := filepath.Join(t.TempDir(), "layer.safetensors")
	run := func(parameters []safetensors.Tensor) map[string][]float32 {
		in := &safetensors.File{Tensors: slices.Clone(inputs)}
		if parameters == nil {
			in.Tensors = append(in.Tensors, maps...)
			return results(t, runApply(t, in, "--heads", "3", "--rope", "--rope-size", "4"))
		}
		file := &safetensors.File{}
		for _, x := range parameters {
			x.Name = "model." + x.Name
			file.Tensors = append(file.Tensors, x)
		}
		if err := file.WriteFile(layer); err != nil {
			t.Fatal(err)
		}
		return results(t, runApply(t, in, "--heads", "3", "--rope", "--rope-size", "4", "--layer", layer, "--prefix", "model."))
	}
	want := run(nil)
	check := func(what string, got map[string][]float32, name func(string) string) {
		t.Helper()
		for n, x := range want {
			tensortest.Same(t, what+": "+n, got[name(n)], x)
		}
	}
	same := func(name string) string { return name }
	check("own names", run(maps), same)
	for _, out := range []string{"o_proj", "out_proj"} {
		language := strings.NewReplacer("q.weight", "q_proj.weight", "k.weight", "k_proj.weight", "v.weight", "v_proj.weight", "out.weight", out+".weight",
			"q.bias", "q_proj.bias", "k.bias", "k_proj.bias", "v.bias", "v_proj.bias", "out.bias", out+".bias").Replace
		check(out, run(renamed(language)), language)
	}
	torch := run([]safetensors.Tensor{
		stack("in_proj_weight", maps[:3]...), stack("in_proj_bias", maps[4:7]...),
		stack("out_proj.weight", maps[3]), stack("out_proj.bias", maps[7]),
	})
	for i, n := range []string{"q", "k", "v"} {
		torch["d."+n+".weight"] = torch["d.in_proj_weight"][i*d*d:][:d*d]
		torch["d."+n+".bias"] = torch["d.in_proj_bias"][i*d:][:d]
	}
	torch["d.out.weight"], torch["d.out.bias"] = torch["d.out_proj.weight"], torch["d.out_proj.bias"]
	check("PyTorch", torch, same)
}
