package main

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/bench"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/train"
)

// What the parser shows of flags and says of them.

// choices returns the variables of the flags' help and enumerations: the same lists
// that the packages check against, and the defaults that follow from a recipe or an
// operation.
func choices() kong.Vars {
	lists := map[string][]string{
		"scores": score.Kinds().Names(), "archs": {seq2seq.Transformer, seq2seq.GRU},
		"units": {string(seq2seq.Chars), string(seq2seq.Words), string(seq2seq.BPE)},
		"kinds": {heads.Encoder.String(), heads.Decoder.String(), heads.Cross.String()},
		"ops":   bench.Ops(), "masks": bench.Masks(),
		"formats": {bench.Aligned, bench.Markdown, bench.CSV},
	}
	for _, m := range prune.Methods() {
		lists["methods"] = append(lists["methods"], m.String())
	}
	for _, p := range models.Poolings() {
		lists["poolings"] = append(lists["poolings"], p.Name)
	}
	vars := kong.Vars{
		"scaled_and": listed(scaledScores(), "and"), "masks_help": bench.MasksHelp(), "extras_help": bench.ExtrasHelp(),
	}
	for name, list := range lists {
		vars[name] = strings.Join(list, ",")
		vars[name+"_or"] = listed(list, "or")
	}
	recipeDefaults(vars)
	return vars
}

// recipeDefaults adds the defaults of attn train, which depend on the data and on the
// architecture, by the name of the flag.
func recipeDefaults(vars kong.Vars) {
	follow := func(f recipeFlags) train.Recipe {
		r, err := f.fresh()
		if err != nil {
			panic(err) // the defaults themselves are wrong
		}
		return r
	}
	data, gru := "FILE", seq2seq.GRU
	dates, pairs, recurrent := follow(recipeFlags{}), follow(recipeFlags{Data: &data}), follow(recipeFlags{Data: &data, Arch: &gru})
	for name, of := range map[string]func(train.Recipe) any{
		"arch": func(r train.Recipe) any { return r.Network.Arch }, "score": func(r train.Recipe) any { return r.Network.Score },
		"heads": func(r train.Recipe) any { return r.Network.Heads }, "width": func(r train.Recipe) any { return r.Network.Width },
		"layers": func(r train.Recipe) any { return r.Network.Layers }, "hidden": func(r train.Recipe) any { return r.Network.Hidden },
		"dropout": func(r train.Recipe) any { return r.Network.Dropout }, "units": func(r train.Recipe) any { return r.Units },
		"vocab": func(r train.Recipe) any { return r.VocabSize }, "epochs": func(r train.Recipe) any { return r.Training.Epochs },
		"batch": func(r train.Recipe) any { return r.Training.Batch }, "lr": func(r train.Recipe) any { return r.Training.LR },
		"warmup": func(r train.Recipe) any { return r.Training.Warmup }, "smoothing": func(r train.Recipe) any { return r.Training.Smoothing },
		"seed": func(r train.Recipe) any { return r.Training.Seed },
	} {
		usual := fmt.Sprint(of(pairs))
		text := "default " + usual
		if d := fmt.Sprint(of(dates)); d != usual {
			text += ", for dates " + d
		}
		if g := fmt.Sprint(of(recurrent)); g != usual && name != "arch" && name != "hidden" { // which a GRU does not have
			text += ", for gru " + g
		}
		vars["train_"+name] = text
	}
}
