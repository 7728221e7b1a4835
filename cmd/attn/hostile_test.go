package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/attn-go/attn/internal/quote/hostile"
)

// harmless returns an error if an output contains control characters, or if a message about a hostile
// text is broken into lines.
func harmless(output string) error {
	for line := range strings.Lines(output) {
		if err := hostile.Check(strings.TrimSuffix(line, "\n")); err != nil {
			return err
		}
	}
	return nil
}

// attnOf runs a command line with a canceled context, and returns its output.
func attnOf(t *testing.T, args ...string) (code int, out, messages string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var o, e bytes.Buffer
	code = run(ctx, args, console{in: strings.NewReader(hostile.Text), out: &o, err: &e})
	return code, o.String(), e.String()
}

// No flag or argument of any command can pass control characters to the terminal. A file name with
// control characters can come from an archive or a shell glob.
func TestHostileArguments(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: every flag of every command")
	}
	parser := kong.Must(&commands{}, options(console{})...)
	refused, seen := 0, map[string]bool{}
	for _, leaf := range parser.Model.Leaves(true) {
		if leaf.Name == "completion" || leaf.Name == "version" {
			continue
		}
		values := leaf.Positional
		for _, flag := range leaf.Flags {
			if !flag.IsBool() && flag.Name != "help" {
				values = append(values, flag.Value)
			}
		}
		for _, hit := range values {
			args := []string{leaf.Name}
			for _, v := range values {
				text := "x"
				if v == hit {
					text = hostile.Text
				} else if !v.Required {
					continue
				}
				if v.Flag != nil {
					text = "--" + v.Name + "=" + text
				}
				args = append(args, text)
			}
			places := map[string]func(path string) error{"nothing": func(string) error { return nil }}
			if parsed := fmt.Sprint(hit.Target.Type(), hit.Enum); !strings.HasSuffix(parsed, "string") { // rejected by its type
				if seen[parsed] {
					continue
				}
				seen[parsed] = true
			} else {
				places["a file"] = func(path string) error { return os.WriteFile(path, []byte(hostile.Text), 0o600) }
				places["a directory"] = func(path string) error { return os.Mkdir(path, 0o700) }
			}
			for kind, place := range places {
				dir := t.TempDir()
				t.Chdir(dir)
				if err := place(filepath.Join(dir, hostile.Text)); err != nil {
					if runtime.GOOS == "windows" { // Windows has no such names
						continue
					}
					t.Fatal(err)
				}
				code, out, messages := attnOf(t, args...)
				if code != exitOK {
					refused++
				}
				lines := strings.Split(strings.TrimSuffix(messages, "\n"), "\n")
				if err := harmless(out + messages); err != nil || code != exitOK && !strings.HasPrefix(lines[len(lines)-1], "attn: ") {
					t.Errorf("%q, which is %s: exit code %d, %v\n%.500q", args, kind, code, err, messages)
				}
			}
		}
	}
	if refused < 100 {
		t.Errorf("%d command lines are refused", refused)
	}
}

// attn models prints names from the files of a directory without control characters.
func TestHostileModels(t *testing.T) {
	for from, file := range map[string]string{"bert_text": "config.json", "sentence_dense": "modules.json", "bert_shards": "model.safetensors.index.json"} {
		dir := filepath.Join(t.TempDir(), "m")
		if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "models", "testdata", from))); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, file)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		codes := map[int]int{}
		for changed := range hostile.Files(data, hostile.Text) {
			if err := os.WriteFile(path, changed, 0o600); err != nil {
				t.Fatal(err)
			}
			code, out, messages := attnOf(t, "models", dir)
			if err := harmless(out + messages); err != nil || code == exitInput && strings.Count(messages, "\n") != 1 {
				t.Errorf("%s: exit code %d, %v\n%.500q", from, code, err, out+messages)
			}
			most := 30
			if testing.Short() {
				most = 5
			}
			if codes[code]++; codes[code] > most { // the rest have the same keys
				break
			}
		}
		if codes[exitInput] == 0 {
			t.Errorf("%s: exit codes %v, want some of %d", from, codes, exitInput)
		}
	}
}
