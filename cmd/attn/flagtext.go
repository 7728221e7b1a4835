package main

import (
	"fmt"
	"regexp"
	"slices"
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
		"scores": score.Kinds().Names(), "archs": {models.Transformer, models.GRU},
		"units": {string(seq2seq.Chars), string(seq2seq.Words), string(seq2seq.BPE)},
		"kinds": {heads.Encoder.String(), heads.Decoder.String(), heads.Cross.String()},
		"ops":   bench.Ops(), "masks": bench.Masks(),
	}
	for _, f := range tableFormats {
		lists["formats"] = append(lists["formats"], f.name)
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
	benchDefaults(vars)
	return vars
}

// fillIn replaces ${name} in what is said of flags and arguments. As variables of the
// parser they would be expanded once for each flag, which is half of the time that a short
// command takes.
func fillIn(vars kong.Vars) kong.Option {
	var pairs []string
	for name, text := range vars {
		pairs = append(pairs, "${"+name+"}", text)
	}
	texts := strings.NewReplacer(pairs...)
	return kong.PostBuild(func(k *kong.Kong) error {
		return kong.Visit(k.Model.Node, func(node kong.Visitable, next kong.Next) error {
			if v, ok := node.(*kong.Value); ok {
				v.Help, v.Enum = texts.Replace(v.Help), texts.Replace(v.Enum)
			}
			return next(nil)
		})
	})
}

// listed returns "a, b or c", or with another word before the last.
func listed(list []string, word string) string {
	last := len(list) - 1
	if last < 1 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:last], ", ") + " " + word + " " + list[last]
}

// withDefault is the help of a flag or argument, with the default if it has one.
func withDefault(v *kong.Value) string {
	if !v.HasDefault || v.Default == "" {
		return v.Help
	}
	help, period := strings.CutSuffix(v.Help, ".")
	help += fmt.Sprintf(" (default %s)", v.Default)
	if period {
		help += "."
	}
	return help
}

// said maps the parser's messages about a value to attn's form: the flag, what it got, and
// what it takes.
var said = []struct {
	parser *regexp.Regexp
	want   string
}{
	{regexp.MustCompile(`^(--[a-z-]+): expected .* but got "EOL" \(<EOL>\)$`), "%s needs a value"},
	{regexp.MustCompile(`^(--[a-z-]+): missing value, expecting `), "%s needs a value"},
	{regexp.MustCompile(`^expected "(<[a-z]+>)"$`), "%s is missing"},
	{regexp.MustCompile(`^(--[a-z-]+): expected a valid \d+ bit u?int but got "(\d+)"$`), "%s %s is too large"},
	{regexp.MustCompile(`^(--[a-z-]+): expected a valid \d+ bit int but got (".*")$`), "%s %s, want a whole number"},
	{regexp.MustCompile(`^(--[a-z-]+): expected a valid \d+ bit uint but got (".*")$`), "%s %s, want a whole number, at least 0"},
	{regexp.MustCompile(`^(--[a-z-]+): expected a float but got (".*") \(string\)$`), "%s %s, want a number"},
	{regexp.MustCompile(`^(--[a-z-]+): expected duration but got (".*"): `), "%s %s, want a duration such as 500ms or 2s"},
	{regexp.MustCompile(`^(--[a-z-]+): bool value must be .* but got (".*")$`), "%s %s, want true or false"},
}

var notOneOf = regexp.MustCompile(`^(--[a-z-]+|<[a-z]+>) must be one of (.*) but got (".*")$`)

// plain rewrites the parser's error about a flag's value in attn's form.
func plain(err error) error {
	for _, s := range said {
		if m := s.parser.FindStringSubmatch(err.Error()); m != nil {
			var parts []any
			for _, part := range m[1:] {
				parts = append(parts, part)
			}
			return fmt.Errorf(s.want, parts...)
		}
	}
	if m := notOneOf.FindStringSubmatch(err.Error()); m != nil {
		return fmt.Errorf("%s %s, want %s", m[1], m[3], listed(strings.Split(strings.ReplaceAll(m[2], `"`, ""), ","), "or"))
	}
	return err
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
	data, gru := "FILE", models.GRU
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

// benchDefaults adds the sizes that operations have if nothing is asked for.
func benchDefaults(vars kong.Vars) {
	for name, size := range map[string]struct {
		of   func(bench.Work) int
		skip string // operations of which it follows from other sizes
	}{
		"b": {func(w bench.Work) int { return w.B }, ""}, "h": {func(w bench.Work) int { return w.H }, ""},
		"lq": {func(w bench.Work) int { return w.Lq }, ""}, "lk": {func(w bench.Work) int { return w.Lk }, "gemm sdpa additive gaussian mha"},
		"e":     {func(w bench.Work) int { return w.E }, "gemm mha"},
		"width": {func(w bench.Work) int { return w.Width }, "additive"},
	} {
		var sizes []int
		ops := map[int][]string{}
		for _, op := range bench.Ops() {
			w, err := bench.Work{Op: op}.Complete()
			if err != nil {
				panic(err) // the defaults themselves are wrong
			}
			if w.Training() || strings.HasSuffix(op, "-fixed") || !w.Takes(name) || slices.Contains(strings.Fields(size.skip), op) {
				continue
			}
			n := size.of(w)
			if ops[n] == nil {
				sizes = append(sizes, n)
			}
			ops[n] = append(ops[n], op)
		}
		var parts []string
		for _, n := range sizes {
			parts = append(parts, fmt.Sprintf("%d for %s", n, listed(ops[n], "and")))
		}
		vars["bench_"+name] = strings.Join(parts, ", ")
	}
}
