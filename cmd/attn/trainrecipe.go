package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/train"
)

// recipeFlags are the flags that change a recipe; nil keeps the recipe's value.
type recipeFlags struct {
	Data  *string `help:"Tab-separated training pairs, one per line (default built-in dates)." placeholder:"FILE"`
	Valid *string `help:"Pairs to evaluate on (default some pairs held out from the data)." placeholder:"FILE"`
	Limit *int    `help:"Use only the first N pairs of the data (default all)." placeholder:"N"`

	Arch      *string  `enum:"${archs}" help:"${archs_or} (default transformer)." placeholder:"NAME" group:"Network"`
	Score     *string  `enum:"${scores}" help:"${scores_or} (default scaled)." placeholder:"NAME" group:"Network"`
	Heads     *int     `help:"Heads of each attention layer; 0, only for gru, attends without projections (default 4, for gru 0)." placeholder:"N" group:"Network"`
	Width     *int     `help:"Size of embeddings and states (default 128, for dates 64)." placeholder:"N" group:"Network"`
	Layers    *int     `help:"Layers of the encoder and of the decoder (default 2, for dates 1, for gru 1)." placeholder:"N" group:"Network"`
	Hidden    *int     `help:"Size of the transformer's feed-forward layers (default 512, for dates 128; with --width, 4 × the width, for dates 2 ×)." placeholder:"N" group:"Network"`
	Dropout   *float32 `help:"Probability of dropping an activation (default 0.1, for dates 0.05)." placeholder:"P" group:"Network"`
	Units     *string  `enum:"${units}" help:"Tokens of texts: ${units_or} (default bpe, for dates char)." placeholder:"NAME" group:"Network"`
	VocabSize *int     `help:"Maximum size of each vocabulary (default 4000, for dates 1000)." placeholder:"N" group:"Network"`

	Epochs    *int     `help:"Total number of epochs (default 10, for dates 16)." placeholder:"N" group:"Training"`
	Batch     *int     `help:"Pairs per step (default 32)." placeholder:"N" group:"Training"`
	LR        *float64 `name:"lr" help:"Peak learning rate (default 0.002, for dates 0.003)." placeholder:"RATE" group:"Training"`
	Warmup    *int     `help:"Warm-up steps, until the learning rate reaches its peak (default 400)." placeholder:"N" group:"Training"`
	Smoothing *float32 `help:"Label smoothing (default 0.1, for dates 0)." placeholder:"P" group:"Training"`
	Format    *string  `enum:"float32,bfloat16" help:"Number format of products: float32, or bfloat16, which is faster on AMD processors with AVX512-BF16; sums and parameters stay float32 (default float32)." placeholder:"NAME" group:"Training"`
	Seed      *uint64  `help:"Random seed (default 1)." placeholder:"N" group:"Training"`
}

// set copies the value of a flag, if the flag was given.
func set[T any](to *T, flag *T) {
	if flag != nil {
		*to = *flag
	}
}

// apply returns the recipe with the values of the given flags.
func (f *recipeFlags) apply(r train.Recipe) (train.Recipe, error) {
	for _, p := range []struct{ to, flag *string }{{&r.Data, f.Data}, {&r.Valid, f.Valid}} {
		if p.flag == nil {
			continue
		}
		abs, err := filepath.Abs(*p.flag) // the run may be resumed from another directory
		if err != nil {
			return r, err
		}
		*p.to = abs
	}
	if f.Limit != nil && *f.Limit == 0 { // 0 means no limit in the recipe
		return r, usage("--limit 0, want at least 1")
	}
	set(&r.Limit, f.Limit)
	set(&r.Network.Arch, f.Arch)
	set(&r.Network.Score, f.Score)
	set(&r.Network.Heads, f.Heads)
	set(&r.Network.Width, f.Width)
	set(&r.Network.Layers, f.Layers)
	set(&r.Network.Hidden, f.Hidden)
	set(&r.Network.Dropout, f.Dropout)
	if f.Units != nil {
		units, err := seq2seq.ParseUnits(*f.Units)
		if err != nil {
			return r, usage("%w", err)
		}
		r.Units = units
	}
	set(&r.VocabSize, f.VocabSize)
	set(&r.Training.Epochs, f.Epochs)
	set(&r.Training.Batch, f.Batch)
	set(&r.Training.LR, f.LR)
	set(&r.Training.Warmup, f.Warmup)
	set(&r.Training.Smoothing, f.Smoothing)
	set(&r.Training.Seed, f.Seed)
	if f.Format != nil { // float32 is 0, as in runs that did not know the setting
		r.Training.Format = 0
		if *f.Format == tensor.BFloat16.String() {
			r.Training.Format = tensor.BFloat16
		}
	}
	if err := r.Validate(); err != nil {
		return r, usage("%w", err)
	}
	return r, nil
}

// fresh returns the recipe of a new run.
func (f *recipeFlags) fresh() (train.Recipe, error) {
	r := train.DatesRecipe()
	if f.Data != nil {
		r = train.PairsRecipe()
	}
	if f.Arch != nil && *f.Arch == models.GRU {
		r = r.Recurrent()
	}
	if f.Hidden == nil && f.Width != nil {
		r.Network.Hidden = *f.Width * r.Network.Hidden / r.Network.Width
	}
	return f.apply(r)
}

// resumed returns the recipe of a resumed run. Only the number of epochs may differ from the stored
// recipe.
func (f *recipeFlags) resumed(stored train.Recipe, dir string) (train.Recipe, error) {
	r, err := f.apply(stored)
	if err == nil && !r.Continues(stored) {
		err = usage("the run in %s was started with other settings; only --epochs may change when it is resumed", dir)
	}
	return r, err
}

// directory returns the default of --out.
func (f *recipeFlags) directory() string {
	if f.Data == nil {
		return filepath.Join("runs", "dates")
	}
	base := filepath.Base(*f.Data)
	return filepath.Join("runs", fmt.Sprintf("%s.run", strings.TrimSuffix(base, filepath.Ext(base))))
}
