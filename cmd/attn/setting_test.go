package main

import (
	"slices"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/attn-go/attn/internal/app/flags"
)

// Every command that loads a model takes --allow-setting.
func TestSettingsCanBeAllowed(t *testing.T) {
	without := []string{"tokenize", "merge", "train", "follow", "fetch", "apply", "shards"} // read no config.json, or its text
	for _, command := range kong.Must(&commands{}, options(console{})...).Model.Leaves(true) {
		model, allows := false, false
		for _, v := range flags.Values(command) {
			model = model || v.Tag.PlaceHolder == "DIR"
			allows = allows || v.Name == "allow-setting"
		}
		if want := model && !slices.Contains(without, command.Name); allows != want {
			t.Errorf("attn %s: --allow-setting %t, want %t", command.Name, allows, want)
		}
	}
}
