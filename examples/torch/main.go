// Command torch computes the lessons with attn, and writes inputs, parameters and results into lessons.safetensors in
// the directory given as an argument. The Python programs beside it are the same lessons in PyTorch. A reader who
// compares both must see the same numbers, so check.py computes these with the functions of those programs.
package main

import (
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/attn-go/attn"
	"github.com/attn-go/attn/nn"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/tensor"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: go run ./examples/torch DIR")
	}
	f := &file{rng: rand.New(rand.NewPCG(1, 2))}
	for _, lesson := range []func(*file){regression, scores, shapes, dates, masks, cache} {
		lesson(f)
	}
	check(f.WriteFile(filepath.Join(os.Args[1], "lessons.safetensors")))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// file collects tensors. Their names begin with that of a piece of code.
type file struct {
	safetensors.File
	rng *rand.Rand
}

func (f *file) put(name string, x *tensor.Tensor) *tensor.Tensor {
	f.Tensors = append(f.Tensors, safetensors.FromFloat32s(name, x.Shape(), x.Data()))
	return x
}

func (f *file) random(name string, shape ...int) *tensor.Tensor {
	return f.put(name, tensor.Randn(f.rng, shape...))
}

func (f *file) params(name string, m nn.Module) {
	for p, x := range m.Params() {
		f.put(name+"."+p, x)
	}
}

func (f *file) output(name string, o attn.Output) {
	f.put(name+".out", o.Out)
	if o.Weights != nil {
		f.put(name+".weights", o.Weights)
	}
}

func (f *file) layer(name string, c attn.MultiHeadConfig) *attn.MultiHead {
	c.Name, c.Init = name, nn.NewLinear // draws biases too
	layer, err := attn.NewMultiHead(c, f.rng)
	check(err)
	f.params(name, layer)
	return layer
}
