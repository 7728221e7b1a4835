package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/curve"
	"github.com/attn-go/attn/internal/strictjson"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/train"
)

// quietly runs a command line within this process and returns its exit code and messages.
func quietly(args ...string) (code int, messages string) {
	var out, said bytes.Buffer
	code = run(context.Background(), args, console{in: strings.NewReader(""), out: &out, err: &said})
	return code, said.String()
}

// outcome returns the files of a run, without the data that vary between equal runs.
func outcome(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := readAll(t, dir)
	var kept []string
	for line := range strings.Lines(all[curve.File]) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("%s: %q: %v", dir, line, err)
		}
		delete(fields, "seconds")
		kept = append(kept, fmt.Sprint(fields))
	}
	all[curve.File] = strings.Join(kept, "\n")
	return all
}

// expectOutcome fails the test unless the files of a run equal one of the given outcomes.
func expectOutcome(t *testing.T, what, dir string, want ...map[string]string) {
	t.Helper()
	got := outcome(t, dir)
	if !slices.ContainsFunc(want, func(w map[string]string) bool { return maps.Equal(w, got) }) {
		t.Fatalf("%s: in the end the files are not as they should be; the metrics are\n%s", what, got[curve.File])
	}
}

// deaths runs f and returns copies of a directory: one before each operation on the disk, as a process
// killed there would leave it, and at the end.
func deaths(t *testing.T, dir string, f func()) (copies []string) {
	t.Helper()
	all := t.TempDir()
	save := func() {
		to := filepath.Join(all, fmt.Sprint(len(copies)))
		if err := os.Mkdir(to, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(to, os.DirFS(dir)); err != nil && !errors.Is(err, fs.ErrNotExist) { // may not exist yet
			t.Fatal(err)
		}
		copies = append(copies, to)
	}
	atomicfile.Before = func(string, string) { save() }
	defer func() { atomicfile.Before = nil }()
	f()
	save()
	return copies
}

// A run that is killed before any operation on the disk leaves the complete state before or after the
// save: at its first save, at a later one, or when it overwrites another run. The resumed run is
// bit-for-bit equal to an uninterrupted one, and its metrics have no missing or duplicate lines.
func TestTrainKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: ends at every operation on the disk")
	}
	dir := t.TempDir()
	var text strings.Builder
	for _, p := range train.Dates(13, 1) {
		fmt.Fprintf(&text, "%s\t%s\n", p.Source, p.Target)
	}
	data := filepath.Join(dir, "pairs.tsv")
	if err := os.WriteFile(data, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	begin := func(out string, more ...string) []string {
		return append([]string{"train", "--data", data, "--units", "char", "--width", "4", "--heads", "2", "--layers", "1", "--dropout", "0.3",
			"--batch", "5", "--epochs", "1", "--save-every", "2", "--out", filepath.Join(dir, out)}, more...)
	}
	goOn := func(out string) {
		t.Helper()
		if code, said := quietly("train", "--resume", "--epochs", "2", "--out", out); code != exitOK {
			t.Fatalf("%s: exit code %d: %s", out, code, said)
		}
	}
	command(t, begin("first")...)
	command(t, begin("other", "--seed", "2", "--width", "6")...)
	ends := map[string]map[string]string{} // the files of each run after two epochs
	for _, name := range []string{"first", "other"} {
		again := filepath.Join(dir, name+"2")
		if err := os.CopyFS(again, os.DirFS(filepath.Join(dir, name))); err != nil {
			t.Fatal(err)
		}
		goOn(again)
		ends[name] = outcome(t, again)
	}
	fresh := filepath.Join(dir, "fresh")
	command(t, begin("fresh", "--epochs", "2")...)
	ends["fresh"] = outcome(t, fresh)

	out := filepath.Join(dir, "out")
	for _, c := range []struct {
		name, before string // before: the run in the directory
		args         []string
		states       int // number of states that a kill can leave
		want         []map[string]string
	}{
		// A run saves at two steps, after the epoch, and after its evaluation.
		{"a first run", "", begin("out"), 4, []map[string]string{ends["fresh"], ends["first"]}},
		{"a run that replaces another", "other", begin("out", "--force"), 4, []map[string]string{ends["fresh"], ends["first"], ends["other"]}},
		{"a resumed run", "first", begin("out", "--resume", "--epochs", "2"), 4, []map[string]string{ends["first"]}},
	} {
		if err := os.RemoveAll(out); err != nil {
			t.Fatal(err)
		}
		if c.before != "" {
			if err := os.CopyFS(out, os.DirFS(filepath.Join(dir, c.before))); err != nil {
				t.Fatal(err)
			}
		}
		left := deaths(t, out, func() { command(t, c.args...) })
		atomicfile.Before = func(string, string) {} // skips fsync below
		states := map[string]int{}
		for n, out := range left {
			what := fmt.Sprintf("%s, killed before operation %d", c.name, n)
			_, err := models.Load(out, models.Options{Trainable: true}) // without recovery
			store, lockErr := atomicfile.Lock(out)
			if lockErr != nil {
				t.Fatal(lockErr)
			}
			store.Unlock()
			names := readAll(t, out)
			if len(names) == 0 && c.before == "" {
				states["nothing"]++
				continue
			}
			if err != nil || len(names) != 9 {
				t.Fatalf("%s: %d files, error %v", what, len(names), err)
			}
			// Resume each distinct state only once.
			o := outcome(t, out)
			state := o[models.WeightsFile] + o[curve.File] + o[train.RecipeFile]
			if states[state]++; states[state] == 1 {
				goOn(out)
				expectOutcome(t, what, out, c.want...)
			}
		}
		atomicfile.Before = nil
		if len(states) != c.states {
			t.Errorf("%s: a kill leaves %d states, want %d", c.name, len(states), c.states)
		}
	}
}

// A resumed run keeps the metrics up to its state. It drops later metrics, and repeats an evaluation that
// was interrupted.
func TestMetricsFollowState(t *testing.T) {
	dir := makePairs(t)
	begin := func(out, epochs string) string {
		out = filepath.Join(dir, out)
		command(t, append([]string{"train", "--data", filepath.Join(dir, "pairs.tsv"), "--out", out}, append(small, "--epochs", epochs)...)...)
		return out
	}
	whole, first := begin("whole", "2"), begin("first", "1")
	metrics := readAll(t, first)[curve.File]
	lines := strings.SplitAfter(strings.TrimSuffix(metrics, "\n"), "\n")
	n := len(lines) - 2 // the epoch; the last line is the final evaluation
	var epoch curve.Epoch
	if err := json.Unmarshal([]byte(lines[n]), &epoch); err != nil || epoch.Kind != curve.KindEpoch {
		t.Fatalf("%s: %v", lines[n], err)
	}
	cut := epoch
	cut.ValidLoss = strictjson.Number(math.NaN())
	beyond := cut
	beyond.Epoch, beyond.Step = 2, 2*epoch.Step
	line := func(e curve.Epoch) string {
		data, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		return string(data) + "\n"
	}
	before := strings.Join(lines[:n], "")
	for what, text := range map[string]string{
		"an epoch that was not measured": before + line(cut), "an epoch beyond the state": before + line(epoch) + line(beyond),
	} {
		out := filepath.Join(t.TempDir(), "out")
		if err := errors.Join(os.CopyFS(out, os.DirFS(first)), os.WriteFile(filepath.Join(out, curve.File), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
		command(t, "train", "--resume", "--epochs", "2", "--out", out)
		expectOutcome(t, what, out, outcome(t, whole))
	}
}

// A run that the system kills repeatedly has the same result as an uninterrupted run.
func TestKilledBySystem(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: kills processes")
	}
	dir := makePairs(t)
	begin := []string{"train", "--data", filepath.Join(dir, "pairs.tsv"), "--width", "16", "--layers", "1", "--batch", "3", "--epochs", "8", "--save-every", "3", "--out"}
	whole, out := filepath.Join(dir, "whole"), filepath.Join(dir, "out")
	start := time.Now()
	command(t, append(begin, whole)...)
	took := time.Since(start)
	path, err := exec.LookPath("attn") // this test program, see TestMain
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	kills := 0
	const tries = 12
	for i := range tries {
		args := append(begin, out)
		if exists(filepath.Join(out, train.RecipeFile)) {
			args = []string{"train", "--resume", "--out", out}
		}
		cmd := exec.Command(path, args...)
		var said bytes.Buffer
		cmd.Stderr = &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// The first kill comes before any save, the later ones after more and more progress.
		time.AfterFunc(time.Duration(rng.Float64()*float64(took)/3*float64(i)/tries), func() { cmd.Process.Kill() })
		if err := cmd.Wait(); err != nil {
			kills++
			if cmd.ProcessState.ExitCode() != -1 {
				t.Fatalf("%v: %s", err, said.String())
			}
		}
	}
	if kills == 0 {
		t.Error("nothing was killed")
	}
	if exists(filepath.Join(out, train.RecipeFile)) {
		command(t, "train", "--resume", "--out", out)
	} else {
		command(t, append(begin, out)...)
	}
	expectOutcome(t, fmt.Sprintf("killed %d times", kills), out, outcome(t, whole))
	if files := readAll(t, out); len(files) != 9 {
		t.Errorf("left are %d files, want 9", len(files))
	}
}
