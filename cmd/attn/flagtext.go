package main

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/apply"
	"github.com/attn-go/attn/internal/app/bench"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/prune"
	"github.com/attn-go/attn/score"
	"github.com/attn-go/attn/seq2seq"
)

// pruned returns the names of the families whose config.json describes removed heads in a way.
func pruned(how models.HeadPruning) (names []string) {
	for _, f := range models.Families() {
		if f.Pruning == how && !slices.Contains(names, f.Name) {
			names = append(names, f.Name)
		}
	}
	return names
}

// choices returns the variables in the help and enumerations of flags. The lists are those that the
// packages check values against.
func choices() kong.Vars {
	lists := map[string][]string{
		"scores": score.Kinds().Names(), "archs": {models.Transformer, models.GRU},
		"units": {string(seq2seq.Chars), string(seq2seq.Words), string(seq2seq.BPE)},
		"kinds": {heads.Encoder.String(), heads.Decoder.String(), heads.Cross.String()},
		"ops":   bench.Ops(), "masks": bench.Masks(),
		"tables": {bench.Aligned, bench.Markdown, bench.CSV},
	}
	for _, m := range prune.Methods() {
		lists["methods"] = append(lists["methods"], m.String())
	}
	for _, m := range (heads.Measures{}).List() {
		lists["measures"] = append(lists["measures"], m.Name)
	}
	for _, p := range models.Poolings() {
		lists["poolings"] = append(lists["poolings"], p.Name)
	}
	vars := kong.Vars{
		"scaled_and": listed(apply.Scaled(), "and"), "masks_help": bench.MasksHelp(), "extras_help": bench.ExtrasHelp(),
	}
	for name, list := range lists {
		vars[name] = strings.Join(list, ",")
		vars[name+"_or"] = listed(list, "or")
	}
	return vars
}
