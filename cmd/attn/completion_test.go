package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/attn-go/attn/internal/flags"
)

// Whatever the command line knows, each shell's script knows too.
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
				if shell != "fish" { // which has "-l name"
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

// Every flag of train and bench that takes a value says what it is without it.
func TestHelpShowsDefaults(t *testing.T) {
	for _, name := range []string{"train", "bench"} {
		app := kong.Must(&commands{}, options(console{})...)
		for _, node := range app.Model.Leaves(true) {
			if node.Name != name {
				continue
			}
			for _, flag := range node.Flags {
				if help := flags.WithDefault(flag.Value); !flag.IsBool() && !strings.Contains(help, "default") && !strings.Contains(strings.ToLower(help), "without it") {
					t.Errorf("attn %s --%s: %q tells no default", name, flag.Name, help)
				}
			}
		}
	}
	help := strings.Join(strings.Fields(command(t, "train", "--help")), " ")
	for _, want := range []string{"(default 10, for dates 16)", "(default 4, for gru 0)", "(default 2, for dates 1, for gru 1)", "(default 0.002, for dates 0.003)", "(default bpe, for dates char)"} {
		if !strings.Contains(help, want) {
			t.Errorf("the help of train has no %q", want)
		}
	}
	help = strings.Join(strings.Fields(command(t, "bench", "--help")), " ")
	for _, want := range []string{"(default 1s)", "(default 12 for sdpa and mha, 1 for additive and gaussian, 32 for decode, 8 for generate)", "(default 8192 for decode, generate and read, else as --lq)"} {
		if !strings.Contains(help, want) {
			t.Errorf("the help of bench has no %q", want)
		}
	}
}
