package main

import (
	"slices"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
)

// precisionFlag is for commands that run a model and do not change it.
type precisionFlag struct {
	Precision string `default:"float32" enum:"${precisions}" help:"Precision of products with the weights: float32; bfloat16, twice as fast on processors with AVX512-BF16; int8, three times as fast with AVX512-VNNI. See docs/models.md for their errors." placeholder:"NAME" group:"Model"`
}

// options returns the options of Load.
func (f precisionFlag) options() models.Options {
	all := tensor.Precisions()
	i := slices.IndexFunc(all, func(n tensor.Numbers) bool { return n.String() == f.Precision })
	return models.Options{Precision: all[i]}
}
