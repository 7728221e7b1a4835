package main

import (
	"slices"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
)

// settingFlag is for all commands that load a model.
type settingFlag struct {
	AllowSetting []string `help:"Setting of config.json that attn does not know, and that does not change results: ignore it, or several, comma-separated (default none)." placeholder:"NAME" group:"Model" needs:"model"`
}

// precisionFlag is for commands that run a model and do not change it.
type precisionFlag struct {
	settingFlag
	Precision string `default:"float32" enum:"${precisions}" help:"Precision of products with the weights: float32; bfloat16, twice as fast on processors with AVX512-BF16; int8, three times as fast with AVX512-VNNI. See docs/models.md for their errors." placeholder:"NAME" group:"Model"`
}

// options returns the options of Load.
func (f precisionFlag) options() models.Options {
	all := tensor.Precisions()
	i := slices.IndexFunc(all, func(n tensor.Numbers) bool { return n.String() == f.Precision })
	return models.Options{Precision: all[i], Allowed: f.AllowSetting}
}

// numbersFlags are for commands whose weights may have another format than their products.
type numbersFlags struct {
	precisionFlag
	Weights tensor.Numbers `help:"Number format of the weights in memory (default that of --precision): float32; bfloat16, exact for bfloat16 files; float16, slower than bfloat16; int8, with an error of up to 1/254 of the largest weight in a row. Smaller formats make generation faster." placeholder:"NAME" group:"Model"`
}

// given reports whether a flag changes the numbers.
func (f numbersFlags) given() bool { return f.Weights != 0 || f.options().Precision != tensor.Float32 }

// numbers returns the options of Load.
func (f numbersFlags) numbers() (models.Options, error) {
	o := f.options()
	if p := o.Precision; p != tensor.Float32 && f.Weights != 0 && f.Weights != p {
		return o, usage("--weights %v, want %v, which is the --precision", f.Weights, p)
	}
	o.Weights = f.Weights
	return o, nil
}
