package main

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/attn-go/attn/internal/app/flags"
	"github.com/attn-go/attn/internal/app/guard"
)

// Every flag that names an output has a tag for it. Without the tag, the command could overwrite its
// inputs.
func TestOutputsAreGuarded(t *testing.T) {
	parser := kong.Must(&commands{}, options(console{})...)
	for _, command := range parser.Model.Leaves(true) {
		for _, v := range flags.Values(command) {
			says := strings.HasPrefix(v.Help, "Write ") || strings.Contains(v.Help, "to write")
			if flags.IsPath(v) && says && !v.Tag.Has("writes") {
				t.Errorf("attn %s: the tags of %s do not say that it is written", command.Name, flags.Name(v))
			}
		}
	}
}

// No command that reads a model can write to a file of the model, even if only other commands read
// that file.
func TestModelsAreSpared(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: every command")
	}
	t.Chdir(t.TempDir())
	newModel(t, "run")
	copyModel(t, "sentence_dense", "pipeline")
	copyModel(t, "bert_shards", "shards")
	for name, text := range map[string]string{
		"texts": "a\nb\n", "similar": strings.Repeat("a\tb\t1\nb\tc\t0\n", 20), "pairs": "5 mar\t2001-03-05\n",
		"pipeline/vocab.txt": "a\n", "pipeline/generation_config.json": "{}", "pipeline/chat_template.jinja": "", "pipeline/1_Pooling/other": "",
		"run/training.safetensors": "", "run/metrics.jsonl": "",
	} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// The other arguments of each command.
	lines := map[string]map[string]string{
		"map":   {"pipeline": "--model pipeline hello", "run": "--model run hello"},
		"run":   {"pipeline": "--model pipeline hello", "shards": "--model shards --ids 1,2"},
		"embed": {"pipeline": "--model pipeline texts"},
		"heads": {"pipeline": "--model pipeline --data similar", "run": "--model run --data pairs"},
		"prune": {"pipeline": "--model pipeline --data similar --limit 10 --experiment --out new",
			"run": "--model run --data pairs --experiment --out new"},
		"lens":   {"run": "--model run '5 march'", "pipeline": "--model pipeline a --metric similarity(b)"},
		"export": {"run": "--model run"},
		"train":  {"run": "--resume --out run"},
		"apply":  {"shards": "--in texts --heads 2 --layer shards"},
	}
	parser := kong.Must(&commands{}, options(console{})...)
	for _, command := range parser.Model.Leaves(true) {
		for _, flag := range outputFlags(command) {
			if lines[command.Name] == nil {
				t.Errorf("attn %s has %s, and is not tried", command.Name, flag)
			}
			for dir, line := range lines[command.Name] {
				err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
					if err != nil || e.IsDir() {
						return err
					}
					before, err := os.ReadFile(path)
					if err != nil {
						return err
					}
					args := append([]string{command.Name, flag, path}, strings.Fields(line)...)
					if command.Name == "apply" && !strings.HasPrefix(e.Name(), "model") {
						return nil // apply does not read this file
					}
					code, said := quietly(args...)
					if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) || code != exitUsage {
						t.Errorf("attn %s: exit code %d, %s", strings.Join(args, " "), code, said)
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// outputFlags returns the flags of a command that name an output file, except model directories.
func outputFlags(command *kong.Node) (names []string) {
	for _, flag := range command.Flags {
		if flag.PlaceHolder != "FILE" || flag.Target.Kind() != reflect.String {
			continue
		}
		flag.Target.SetString("path")
		if slices.ContainsFunc(guard.Of(command).Writes, func(p guard.Place) bool { return p.Path == "path" }) {
			names = append(names, "--"+flag.Name)
		}
		flag.Target.SetString("")
	}
	return names
}

// An empty path is an error, and "-" is not a directory.
func TestEmptyPaths(t *testing.T) {
	t.Chdir(t.TempDir())
	parser := kong.Must(&commands{}, options(console{})...)
	for _, command := range parser.Model.Leaves(true) {
		values := slices.Clone(command.Positional)
		for _, flag := range command.Flags {
			values = append(values, flag.Value)
		}
		for _, v := range values {
			if !flags.IsPath(v) {
				continue
			}
			name, arg := "--"+v.Name, "--"+v.Name+"="
			if slices.Contains(command.Positional, v) {
				name, arg = v.Tag.PlaceHolder, ""
			}
			code, said := quietly(command.Name, arg)
			if want := "attn: " + name + " is empty, want a path\n"; code != exitUsage || said != want {
				t.Errorf("attn %s %q: exit code %d, %q, want %d, %q", command.Name, arg, code, said, exitUsage, want)
			}
		}
	}
	for _, line := range []string{"train --out -", "fetch a/b --out -", "merge --base m --adapter m --out -", "prune --model m --data d --out -", "shards --input * --shards 1 --output - tokenize"} {
		args := strings.Fields(line)
		if code, said := quietly(args...); code != exitUsage || !strings.Contains(said, " -: want a directory, not standard output") {
			t.Errorf("attn %s: exit code %d, %s", line, code, said)
		}
	}
	if exists("-") {
		t.Error("there is a directory of the name -")
	}
}
