package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/attn-go/attn/internal/par/partest"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/train"
)

// The scripts run this test program as attn, in a separate process. Each process computes on one thread unless a
// script sets GOMAXPROCS.
func TestMain(m *testing.M) {
	partest.OneThread()
	testscript.Main(m, map[string]func(){"attn": main, "limited": limited, "occupied": occupied})
}

// TestScripts runs testdata/script. Each script starts with pairs.tsv, a file of 60 pairs, and the
// directories model, gru and gruheads, translators trained on these pairs. The command pretrained copies
// directories of models/testdata.
func TestScripts(t *testing.T) {
	fixture := makeFixture(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			return os.CopyFS(env.WorkDir, os.DirFS(fixture))
		},
		Condition: func(cond string) (bool, error) {
			if cond == "root" { // root ignores permissions
				return os.Geteuid() == 0, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "interrupt": interruptCommand, "same": same, "holds": holds, "pretrained": copyPretrained, "hub": startHub,
			"json": checkJSON, "tensors": writeTensors, "weights": writeWeights, "raw": writeRaw,
			"edit": edit, "keep": keepHeads, "cut": cut, "repeat": repeat, "nan": fillWithNaN, "shapes": checkShapes,
		},
	})
}

// pretrained NAMES… copies directories of models/testdata: a/b as b.
func copyPretrained(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: pretrained NAMES…")
	}
	for _, name := range args {
		ts.Check(os.CopyFS(ts.MkAbs(filepath.Base(name)), os.DirFS("../../models/testdata/"+name)))
	}
}

// small are flags for very short training.
var small = []string{"--width", "16", "--layers", "1", "--epochs", "2", "--batch", "8"}

// makePairs returns a directory with pairs.tsv: every character is in the pairs that attn train learns.
func makePairs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	var text strings.Builder
	for _, p := range train.Dates(60, 2) {
		fmt.Fprintf(&text, "%s\t%s\n", p.Source, p.Target)
	}
	if err := os.WriteFile(filepath.Join(dir, "pairs.tsv"), []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func makeFixture(t *testing.T) string {
	t.Helper()
	dir := makePairs(t)
	data := filepath.Join(dir, "pairs.tsv")
	for out, flags := range map[string][]string{"model": nil, "gru": {"--arch", "gru"}, "gruheads": {"--arch", "gru", "--heads", "2"}} {
		args := append([]string{"train", "--data", data, "--out", filepath.Join(dir, out)}, small...)
		command(t, append(args, flags...)...)
	}
	return dir
}

// command runs a command line within this process and returns its output.
func command(t *testing.T, args ...string) string {
	t.Helper()
	var out, messages bytes.Buffer
	if code := run(context.Background(), args, console{in: strings.NewReader(""), out: &out, err: &messages}); code != exitOK {
		t.Fatalf("attn %s: exit code %d: %s", strings.Join(args, " "), code, messages.String())
	}
	return out.String()
}

// exits CODE PROGRAM ARGS… runs a program and checks its exit code. After a failure of attn, it also
// checks for a message of one line.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARGS…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
	if code != 0 {
		checkMessage(ts, code, ts.ReadFile("stderr"))
	}
}

// checkMessage checks the standard error of a failure.
func checkMessage(ts *testscript.TestScript, code int, text string) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, "attn: ") || len(last) > 500 {
		ts.Fatalf("the last line is %q, want one that says what is wrong", last)
	}
	for _, line := range lines[:len(lines)-1] {
		if strings.HasPrefix(line, "attn: ") || strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "goroutine ") {
			ts.Fatalf("there is more than one message: %q", text)
		}
		if code == exitUsage || code == exitInput {
			ts.Fatalf("there is more than the message: %q", text)
		}
	}
}

// same FILE FILE checks that two files have the same bytes.
func same(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: same FILE FILE")
	}
	if equal := ts.ReadFile(args[0]) == ts.ReadFile(args[1]); equal == neg {
		ts.Fatalf("%s and %s: the same is %v", args[0], args[1], equal)
	}
}

// The script command with DIR NAMES… checks that a directory contains exactly these files.
func holds(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: holds DIR NAMES…")
	}
	entries, err := os.ReadDir(ts.MkAbs(args[0]))
	ts.Check(err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	want := slices.Sorted(slices.Values(args[1:]))
	if !slices.Equal(names, want) {
		ts.Fatalf("%s holds %q, want %q", args[0], names, want)
	}
}

// json FILE KEYS… checks that each line of a file, or of stdout, is a JSON object, and that the last
// object has exactly these keys.
func checkJSON(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: json FILE KEYS…")
	}
	var object map[string]any
	lines := bufio.NewScanner(strings.NewReader(ts.ReadFile(args[0])))
	for lines.Scan() {
		object = nil
		if err := json.Unmarshal(lines.Bytes(), &object); err != nil || object == nil {
			ts.Fatalf("%q is not a JSON object: %v", lines.Text(), err)
		}
	}
	var keys []string
	for key := range object {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	if want := slices.Sorted(slices.Values(args[1:])); !slices.Equal(keys, want) {
		ts.Fatalf("the last object has the keys %q, want %q", keys, want)
	}
}

// edit FILE OLD NEW replaces a text in a file.
func edit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: edit FILE OLD NEW")
	}
	text := ts.ReadFile(args[0])
	if !strings.Contains(text, args[1]) {
		ts.Fatalf("%s does not have %q", args[0], args[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Replace(text, args[1], args[2], 1)), 0o644))
}

// keep DIR OUT LAYER=HEADS… writes a model with only these heads in the named layers, and all heads in
// the other layers.
func keepHeads(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: keep DIR OUT LAYER=HEADS…")
	}
	m, err := models.Load(ts.MkAbs(args[0]), models.Options{Trainable: true})
	ts.Check(err)
	kept := map[string][]int{}
	for _, arg := range args[2:] {
		layer, list, _ := strings.Cut(arg, "=")
		kept[layer] = numbers(ts, list)
	}
	m, err = m.Keep(kept)
	ts.Check(err)
	ts.Check(m.Save(ts.MkAbs(args[1])))
}

// cut FILE N truncates a file to N bytes.
func cut(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: cut FILE N")
	}
	n, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	ts.Check(os.Truncate(ts.MkAbs(args[0]), n))
}

// repeat FILE N TEXT writes a text N times; \t and \n are tab and newline.
func repeat(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: repeat FILE N TEXT")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	text, err := strconv.Unquote(`"` + args[2] + `"`)
	ts.Check(err)
	f, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	_, err = io.WriteString(f, strings.Repeat(text, n))
	ts.Check(errors.Join(err, f.Close()))
}
