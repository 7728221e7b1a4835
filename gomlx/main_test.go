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
	"regexp"
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
	var programs strings.Builder // messages about them
	onGoMLX := func(t *testing.T, path string, o options) []step {
		t.Helper()
		on := backend(t)
		o.backend, o.devices, o.saveEvery = on.backend, on.devices, on.saveEvery
		var out strings.Builder
		programs.Reset()
		if err := trainRun(t.Context(), path, o, &out, &programs); err != nil {
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
			if _, err := models.Load(path, models.Options{Trainable: true}); err != nil {
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

	// Sources of 2 to 56 tokens need four programs, the same ones in both parts of the run.
	t.Run("mixed lengths", func(t *testing.T) {
		var text strings.Builder
		for n := range 80 {
			digits := strings.Repeat(strconv.Itoa(n%10), 1+n*n%60)
			fmt.Fprintf(&text, "%s\t%s %d\n", digits, digits[len(digits)/(n%4+1):], n)
		}
		mixed := filepath.Join(dir, "mixed.tsv")
		if err := os.WriteFile(mixed, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		path := prepare("mixed lengths", "--data", mixed, "--valid", mixed)
		copied := path + ".attn"
		if err := os.CopyFS(copied, os.DirFS(path)); err != nil {
			t.Fatal(err)
		}
		seconds := regexp.MustCompile(` \(.*\)`)
		compiled := func() string { return seconds.ReplaceAllString(programs.String(), "") }
		got := onGoMLX(t, path, options{steps: 3})
		first := compiled()
		got = append(got, onGoMLX(t, path, options{})...)
		compare(t, got, byAttn(copied))
		want := `compiling program 1 of 4: 17 pairs of 8 and 8 tokens
compiling program 2 of 4: 17 pairs of 24 and 16 tokens
compiling program 3 of 4: 17 pairs of 32 and 24 tokens
compiling program 4 of 4: 17 pairs of 56 and 48 tokens
`
		if first != want || compiled() != first {
			t.Errorf("programs\n%s\nwhen resumed\n%s\nwant\n%s", first, compiled(), want)
		}
		onGoMLX(t, path, options{})
		if programs.Len() > 0 {
			t.Errorf("a completed run compiles programs: %s", programs.String())
		}
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
}

func train1(path string) error {
	return trainRun(context.Background(), path, options{backend: "go", devices: 1, saveEvery: 1}, io.Discard, io.Discard)
}

func TestBackendErrors(t *testing.T) {
	for want, o := range map[string]options{
		`backend "go" has 1 devices, want 2`:                           {backend: "go", devices: 2},
		`backend "nonsense", want one of `:                             {backend: "nonsense"},
		`backend "go" does not multiply in TF32; -tf32 needs xla:cuda`: {backend: "go", tf32: true},
		`backend "xla:cpu" does not multiply in TF32`:                  {backend: "xla:cpu", tf32: true},
	} {
		if _, err := newBackend(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
}

// Padding changes nothing but the rounding of a step.
func TestPadding(t *testing.T) {
	attn := attnCommand(t)
	dir := t.TempDir()
	pairs, run := filepath.Join(dir, "pairs.tsv"), filepath.Join(dir, "run")
	if err := os.WriteFile(pairs, []byte("12\t345 6\n1\t2\n3456\t78\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	attn("train", "--data", pairs, "--limit", "2", "--valid", pairs, "--units", "char", "--batch", "4", "--dropout", "0",
		"--width", "16", "--heads", "2", "--layers", "1", "--prepare", "--out", run)
	// steps returns losses and norms.
	steps := func(to lengths) (results []float32) {
		same := func(r train.Recipe) (train.Recipe, error) { return r, nil }
		s, err := train.Reopen(run, same, train.Options{Prepared: true})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		o := backend(t)
		b, err := newBackend(o)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Finalize()
		e, err := newEngine(b, o.devices, s)
		if err != nil {
			t.Fatal(err)
		}
		e.lengths = []lengths{to}
		for batch := range s.Trainer.Batches(0) {
			for number := 1; number <= 3; number++ {
				loss, norm, err := e.Step(number, 0.01, batch)
				if err != nil {
					t.Fatal(err)
				}
				results = append(results, loss, norm)
			}
		}
		return results
	}
	want := steps(lengths{8, 8})
	for _, to := range []lengths{{8, 24}, {40, 8}, {64, 48}} {
		got := steps(to)
		for i, x := range got {
			if !(math.Abs(float64(x-want[i])) <= 1e-5) {
				t.Errorf("losses and norms when padded to %v: %v, want %v as when padded to 8", to, got, want)
				break
			}
		}
	}
}
