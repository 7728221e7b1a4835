package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/train"
)

// backend returns the options with the backend under test. check.sh selects others than GoMLX's own.
func backend(t *testing.T) options {
	o := options{backend: cmp.Or(os.Getenv("ATTN_GOMLX_BACKEND"), "go"), devices: 1, saveEvery: 1000}
	if devices := os.Getenv("ATTN_GOMLX_DEVICES"); devices != "" {
		var err error
		if o.devices, err = strconv.Atoi(devices); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// attnCommand builds attn, and returns a function that runs it and ends the test on failure.
func attnCommand(t *testing.T) func(args ...string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "attn")
	build := exec.Command("go", "build", "-o", binary, "./cmd/attn")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return func(args ...string) string {
		t.Helper()
		command := exec.Command(binary, args...)
		var messages strings.Builder
		command.Stderr = &messages
		out, err := command.Output()
		if err != nil {
			t.Fatalf("attn %s: %v: %s", strings.Join(args, " "), err, messages.String())
		}
		return string(out)
	}
}

// step is the line of a step.
type step struct {
	Kind        string
	Epoch, Step int
	Loss, Norm  float32
}

// stepsOf returns the lines of steps in the output of a program.
func stepsOf(t *testing.T, output string) (steps []step) {
	t.Helper()
	for line := range strings.Lines(output) {
		var s step
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if s.Kind == "update" {
			steps = append(steps, s)
		}
	}
	return steps
}

// Ten steps with every score give the same losses as attn. attn continues from the saved state, and the reverse.
func TestTenSteps(t *testing.T) {
	attn := attnCommand(t)
	dir := t.TempDir()
	pairs := filepath.Join(dir, "pairs.tsv")
	var text strings.Builder
	for n := 1; n <= 90; n++ {
		fmt.Fprintf(&text, "%d\t%d %d\n", n*7919%100_000, n*7919%1000, n%7)
	}
	if err := os.WriteFile(pairs, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	prepare := func(name string, flags ...string) string {
		out := filepath.Join(dir, name)
		attn(append([]string{"train", "--data", pairs, "--limit", "80", "--valid", pairs, "--units", "char", "--batch", "17", "--epochs", "2",
			"--dropout", "0", "--warmup", "4", "--width", "24", "--heads", "3", "--layers", "1", "--prepare", "--out", out}, flags...)...)
		return out
	}
	onGoMLX := func(t *testing.T, path string, o options) []step {
		t.Helper()
		on := backend(t)
		o.backend, o.devices, o.saveEvery = on.backend, on.devices, on.saveEvery
		var out strings.Builder
		if err := trainRun(t.Context(), path, o, &out); err != nil {
			t.Fatal(err)
		}
		return stepsOf(t, out.String())
	}
	byAttn := func(path string, flags ...string) []step {
		return stepsOf(t, attn(append([]string{"train", "--resume", "--json", "--steps", "--out", path}, flags...)...))
	}
	compare := func(t *testing.T, got, want []step) {
		t.Helper()
		if len(got) != 10 || len(want) != 10 {
			t.Fatalf("%d steps, attn makes %d, want 10", len(got), len(want))
		}
		worst := 0.0
		for i, w := range want {
			g := got[i]
			off := math.Abs(float64(g.Loss - w.Loss))
			if worst = max(worst, off); g.Epoch != w.Epoch || g.Step != w.Step || !(off < 1e-4) || !(math.Abs(float64(g.Norm-w.Norm)) < 1e-3) {
				t.Errorf("step %d: %+v, attn has %+v", i+1, g, w)
			}
		}
		t.Logf("losses %.4f to %.4f, within %.1e of attn's", want[0].Loss, want[9].Loss, worst)
	}
	networks := map[string][]string{"two layers": {"--layers", "2", "--smoothing", "0"}}
	for _, score := range []string{"scaled", "dot", "additive", "bilinear", "scaled-bilinear", "gaussian", "cosine", "l1"} {
		networks[score] = []string{"--score", score}
	}
	for name, flags := range networks {
		t.Run(name, func(t *testing.T) {
			path := prepare(name, flags...)
			copied := path + ".attn"
			if err := os.CopyFS(copied, os.DirFS(path)); err != nil {
				t.Fatal(err)
			}
			got := onGoMLX(t, path, options{})
			compare(t, got, byAttn(copied))
			if _, err := models.LoadTranslator(path); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("from hand to hand", func(t *testing.T) {
		path := prepare("hands")
		copied := path + ".attn"
		if err := os.CopyFS(copied, os.DirFS(path)); err != nil {
			t.Fatal(err)
		}
		got := onGoMLX(t, path, options{steps: 3})
		got = append(got, byAttn(path, "--epochs", "1")...)
		got = append(got, onGoMLX(t, path, options{epochs: 2})...)
		compare(t, got, byAttn(copied))
		attn("translate", "--model", path, "123")
		attn("eval", "--model", path, "--data", pairs)
	})

	// A repeated run drops the same elements, and dropout changes the losses.
	t.Run("dropout", func(t *testing.T) {
		var losses [3][]step
		for i, p := range []string{"0.2", "0.2", "0"} {
			losses[i] = onGoMLX(t, prepare("dropout"+strconv.Itoa(i), "--dropout", p), options{})
		}
		last := func(i int) float32 { return losses[i][9].Loss }
		if last(0) != last(1) || last(0) == last(2) || !(last(0) < losses[0][0].Loss) {
			t.Errorf("losses %v, again %v, without dropout %v", losses[0], losses[1], losses[2])
		}
	})

	// A run that cannot be trained gives a one-line error, and no file changes.
	whole := prepare("whole")
	without := prepare("without examples")
	other := prepare("other pairs", "--limit", "70")
	if err := os.Remove(filepath.Join(without, train.ExamplesFile)); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(whole, train.ExamplesFile), filepath.Join(other, train.ExamplesFile)); err != nil {
		t.Fatal(err)
	}
	gru := filepath.Join(dir, "gru")
	attn("train", "--data", pairs, "--arch", "gru", "--width", "8", "--prepare", "--out", gru)
	for path, want := range map[string]string{
		filepath.Join(dir, "absent"): "contains no run to resume",
		dir:                          "contains no run to resume",
		gru:                          "the network is a gru, want a transformer",
		without:                      "examples.safetensors: no such file or directory; run attn train --prepare again",
		other:                        "training.safetensors: was saved for other training pairs",
	} {
		if err := train1(path); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	for name, want := range map[string]string{
		"go":       `backend "go" has 1 devices, want 2`,
		"nonsense": `backend "nonsense", want one of `,
	} {
		if _, err := newBackend(name, 2); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("two devices of %s: %v, want %q", name, err, want)
		}
	}
}

func train1(path string) error {
	return trainRun(context.Background(), path, options{backend: "go", devices: 1, saveEvery: 1}, io.Discard)
}
