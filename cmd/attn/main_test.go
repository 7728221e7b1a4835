package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/strictjson"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/train"
)

// An interruption before the first save changes no file, in particular not an existing model in the
// same directory.
func TestInterruptedAtOnce(t *testing.T) {
	dir := makeFixture(t)
	data, model := filepath.Join(dir, "pairs.tsv"), filepath.Join(dir, "model")
	before := readAll(t, model)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, c := range []struct {
		want string
		args []string
	}{
		{"attn: interrupted before the first step; nothing was saved", append([]string{"train", "--data", data, "--out", model, "--force"}, small...)},
		{"attn: interrupted after 2 epochs and 0 steps; all progress is saved, resume with: attn train --resume --out " + quoted(model),
			[]string{"train", "--resume", "--epochs", "3", "--out", model}},
		{"attn: interrupted", []string{"eval", "--model", model, "--data", data}},
		{"attn: interrupted", []string{"translate", "--model", model, "hello"}},
		{"attn: interrupted before a head was scored", []string{"heads", "--model", model, "--data", data, "--method", "leave-one-out,taylor", "--svg", filepath.Join(dir, "x.svg")}},
		{"attn: interrupted", []string{"translate", "--model", model, "--beam", "3", "hello"}},
	} {
		var out, messages bytes.Buffer
		code := run(ctx, c.args, console{in: strings.NewReader(""), out: &out, err: &messages})
		lines := strings.Split(strings.TrimSpace(messages.String()), "\n")
		if last := lines[len(lines)-1]; code != exitInterrupted || last != c.want {
			t.Errorf("%v: exit code %d and %q, want %d and %q", c.args, code, last, exitInterrupted, c.want)
		}
		if out.Len() > 0 {
			t.Errorf("%v: output %q", c.args, out.String())
		}
		after := readAll(t, model)
		delete(after, train.RecipeFile) // resuming changes the number of epochs in it
		for name, data := range after {
			if name != "training.safetensors" && before[name] != data {
				t.Errorf("%v: %s has changed", c.args, name)
			}
		}
	}
}

// readAll returns the files of a directory.
func readAll(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".attn-live") { // a killed run leaves it; the next run removes it
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = string(data)
	}
	return all
}

func TestExitCode(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{errors.New("something"), 1},
		{models.ErrDiverged, 1},
		{usage("no such flag"), 2},
		{usage("%w", &input.Error{}), 2}, // about the value of a flag
		{fmt.Errorf("wrapped: %w", &input.Error{Name: "x"}), 4},
		{&input.Error{Name: "x", Line: 3, Err: errors.New("y")}, 4},
		{&safetensors.FormatError{Err: errors.New("x")}, 4},
		{&fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist}, 4},
		{&fs.PathError{Op: "stat", Path: "x", Err: fs.ErrPermission}, 4},
		{&fs.PathError{Op: "mkdir", Path: "x", Err: fs.ErrPermission}, 1},
		{&fs.PathError{Op: "write", Path: "x", Err: fs.ErrPermission}, 1},
		{fmt.Errorf("write x: %w", fs.ErrNotExist), 1}, // an error of package atomicfile
		{fmt.Errorf("wrapped: %w", context.Canceled), 130},
		{interrupted{"x"}, 130},
	} {
		if got := exitCode(c.err); got != c.want {
			t.Errorf("%v: exit code %d, want %d", c.err, got, c.want)
		}
	}
}

func TestNumber(t *testing.T) {
	for x, want := range map[float64]string{1.5: "1.5", 0: "0", math.Inf(1): "null", math.Inf(-1): "null", math.NaN(): "null"} {
		if got, err := json.Marshal(strictjson.Number(x)); err != nil || string(got) != want {
			t.Errorf("%v is %s, %v, want %s", x, got, err, want)
		}
	}
}

func TestTryHint(t *testing.T) {
	for text, want := range map[string]string{
		"le 5 mars": "'le 5 mars'", "it's": `'it'\''s'`, "5": "5",
		"": "TEXT", "-5": "TEXT", "a\x1b[2Jb": "TEXT", "a\nb": "TEXT", strings.Repeat("x", 61): "TEXT",
	} {
		if got, want := tryHint("my runs", text), "try: attn translate --model 'my runs' --map "+want; got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
