package main

import (
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
)

// settingFlag is for all commands that load a model.
type settingFlag struct {
	AllowSetting []string `help:"Setting of config.json that attn does not know, and that does not change results: ignore it, or several, comma-separated (default none)." placeholder:"NAME" group:"Model" needs:"model"`
}

// formatFlag is for commands that run a model and do not change it.
type formatFlag struct {
	settingFlag
	Format tensor.Format `help:"Number format of the weights and of products with them: float32; bfloat16, twice as fast on processors with AVX512-BF16; int8, three times as fast with AVX512-VNNI; bfloat16-weights, exact for bfloat16 files, which makes only generation faster. See docs/models.md for their errors (default float32)." placeholder:"NAME" group:"Model"`
}

// options returns the options of Load.
func (f formatFlag) options() models.Options {
	return models.Options{Format: f.Format, Allowed: f.AllowSetting}
}
