package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/attn-go/attn/internal/app/flags"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/train"
)

// The script of each shell contains every command and flag.
func TestCompletionKnowsEverything(t *testing.T) {
	app := kong.Must(&commands{}, options(console{})...)
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script := command(t, "completion", shell)
		fields := strings.FieldsFunc(script, func(r rune) bool { return !(r == '-' || r == '_' || 'a' <= r && r <= 'z' || '0' <= r && r <= '9') })
		for _, node := range app.Model.Leaves(true) {
			if !slices.Contains(fields, node.Name) {
				t.Errorf("%s: there is no command %s", shell, node.Name)
			}
			for _, flag := range node.Flags {
				name := flag.Name
				if shell != "fish" { // fish has "-l name"
					name = "--" + name
				}
				for _, word := range append(wordsOf(flag.Value), name) {
					if !slices.Contains(fields, word) {
						t.Errorf("%s: attn %s has no %s", shell, node.Name, word)
					}
				}
			}
		}
	}
}

func wordsOf(v *kong.Value) []string {
	if v.Enum == "" {
		return nil
	}
	return v.EnumSlice()
}

// The parser of one command has the same help and flags as the parser of all.
func TestOneCommandIsAsAmongAll(t *testing.T) {
	for _, node := range kong.Must(&commands{}, options(console{})...).Model.Leaves(true) {
		args := append(strings.Fields(node.Path()), "--help")
		helpOf := func(root any, extra ...kong.Option) string {
			var out strings.Builder
			parser := kong.Must(root, slices.Concat(options(console{out: &out}), extra, []kong.Option{kong.Exit(func(int) {})})...)
			parser.Parse(args) // an error: after --help, which exits elsewhere, arguments are missing
			return out.String()
		}
		root, command := flags.Only(&commands{}, args)
		if _, all := root.(*commands); all != (args[0] == "completion") {
			t.Errorf("%s: the parser has the root %T", args[0], root)
		}
		if got, want := helpOf(root, command), helpOf(&commands{}); got != want || got == "" {
			t.Errorf("attn %s: alone the help is\n%s\namong all commands\n%s", strings.Join(args, " "), got, want)
		}
	}
}

// The help of every flag of train and bench with a value contains the default.
func TestHelpShowsDefaults(t *testing.T) {
	for _, node := range kong.Must(&commands{}, options(console{})...).Model.Leaves(true) {
		if node.Name != "train" && node.Name != "bench" {
			continue
		}
		for _, flag := range node.Flags {
			if help := flags.WithDefault(flag.Value); !flag.IsBool() && !strings.Contains(help, "default") && !strings.Contains(strings.ToLower(help), "without it") {
				t.Errorf("attn %s --%s: %q tells no default", node.Name, flag.Name, help)
			}
		}
	}
	help := strings.Join(strings.Fields(command(t, "train", "--help")), " ")
	for name, text := range recipeDefaults() {
		if !strings.Contains(help, "("+text) {
			t.Errorf("the help of train has no (%s) for %s", text, name)
		}
	}
	help = strings.Join(strings.Fields(command(t, "bench", "--help")), " ")
	for _, want := range []string{"(default 1s)", "(default 12 for sdpa and mha, 1 for additive and gaussian, 16 for linear, 32 for decode, 8 for generate)", "(default 8192 for decode, generate and read, otherwise --lq)"} {
		if !strings.Contains(help, want) {
			t.Errorf("the help of bench has no %q", want)
		}
	}
}

// recipeDefaults returns the defaults of attn train by the name of the flag. They depend on the data
// and on the architecture.
func recipeDefaults() map[string]string {
	vars := map[string]string{}
	follow := func(f recipeFlags) train.Recipe {
		r, err := f.fresh()
		if err != nil {
			panic(err) // the defaults are invalid
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
		if g := fmt.Sprint(of(recurrent)); g != usual && name != "arch" && name != "hidden" { // not flags of a GRU
			text += ", for gru " + g
		}
		vars[name] = text
	}
	return vars
}
