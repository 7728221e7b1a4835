package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/seq2seq"
)

// stop returns a callback that ends a run after some steps.
func stop(steps int) func(Progress) error {
	return func(Progress) error {
		if steps--; steps == 0 {
			return errStop
		}
		return nil
	}
}

var errStop = errors.New("stop")

// A run that is saved after any step and resumed from its files alone ends with the same
// bits.
func TestResumeGoesOnExactly(t *testing.T) {
	pairs := toyPairs(20)
	for _, c := range []models.TranslatorConfig{
		{Arch: models.Transformer, Score: "scaled", Width: 12, Heads: 3, Layers: 1, Hidden: 10, Dropout: 0.2},
		{Arch: models.GRU, Score: "additive", Width: 12, Layers: 2, Dropout: 0.2},
		{Arch: models.GRU, Score: "cosine", Width: 12, Heads: 2, Layers: 1, Dropout: 0.2},
	} {
		whole := newToy(t, c, pairs)
		last := run(t, newToyTrainer(t, whole, pairs, toySettings(3)))
		for _, steps := range []int{1, 3, 5} {
			dir := t.TempDir()
			first := newToyTrainer(t, newToy(t, c, pairs), pairs, toySettings(1+steps/3)) // epochs may differ
			if err := first.Run(context.Background(), stop(steps)); !errors.Is(err, errStop) {
				t.Fatal(err)
			}
			if err := first.Save(dir); err != nil {
				t.Fatal(err)
			}
			m, err := models.Load(dir, models.Options{Trainable: true})
			if err != nil {
				t.Fatal(err)
			}
			tr := newToyTrainer(t, m, pairs, toySettings(3))
			if err := tr.Resume(dir); err != nil {
				t.Fatal(err)
			}
			all := run(t, tr)
			if len(all) != 3*3-steps {
				t.Errorf("%s: %d steps after %d, want 9 together", name(c), len(all), steps)
			}
			if got, want := all[len(all)-1].Loss, last[len(last)-1].Loss; got != want {
				t.Errorf("%s: loss %v at the end, want %v", name(c), got, want)
			}
			sameParams(t, m, whole)
		}
	}
}

// saved returns a directory with a run of four steps.
func saved(t *testing.T, m *models.Model, pairs []seq2seq.Pair) string {
	t.Helper()
	dir := t.TempDir()
	tr := newToyTrainer(t, m, pairs, toySettings(2))
	if err := tr.Run(context.Background(), stop(4)); !errors.Is(err, errStop) {
		t.Fatal(err)
	}
	if err := tr.Save(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestResumeRefuses(t *testing.T) {
	pairs := toyPairs(20)
	c := models.TranslatorConfig{Arch: models.GRU, Score: "scaled", Width: 8, Layers: 1}
	dir := saved(t, newToy(t, c, pairs), pairs)
	path := filepath.Join(dir, TrainingFile)
	whole, err := safetensors.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	about := whole.Metadata["checkpoint"]
	// with writes the file with a text of the checkpoint replaced.
	with := func(old, new string) {
		t.Helper()
		if !strings.Contains(about, old) {
			t.Fatalf("the checkpoint %s does not have %s", about, old)
		}
		f := *whole
		f.Metadata = map[string]string{"checkpoint": strings.Replace(about, old, new, 1)}
		if err := f.WriteFile(path); err != nil {
			t.Fatal(err)
		}
	}
	otherSeed := toySettings(2)
	otherSeed.Seed++
	wide := c
	wide.Width = 10
	for _, c := range []struct {
		want     string
		model    *models.Model
		pairs    []seq2seq.Pair
		settings Settings
		change   func()
	}{
		{want: "was made with other settings", settings: otherSeed},
		{want: "was saved for other training pairs", pairs: pairs[1:]},
		{want: "was saved for other training pairs", pairs: append([]seq2seq.Pair{pairs[1], pairs[0]}, pairs[2:]...)},
		{want: "was saved for other training pairs", pairs: append([]seq2seq.Pair{{Source: pairs[0].Source, Target: pairs[1].Target}}, pairs[1:]...)},
		{want: "was made with another network", model: newToy(t, wide, pairs)},
		{want: "no such file", change: func() { os.Remove(path) }},
		{want: "its metadata contains no checkpoint", change: func() { with(about, "") }},
		{want: "its metadata contains no checkpoint", change: func() { with("{", "[") }},
		// Four steps at three per epoch: one epoch and one step. Step 3 would belong to the next
		// epoch, and a search for it would never end.
		{want: "has an invalid position in the training", change: func() { with(`"step":1`, `"step":3`) }},
		{want: "has an invalid position in the training", change: func() { with(`"step":1`, `"step":-1`) }},
		{want: "has an invalid position in the training", change: func() { with(`"epoch":1`, `"epoch":-1`) }},
		{want: "has an invalid position in the training", change: func() { with(`"total":4`, `"total":0`) }},
		{want: "has an invalid position in the training", change: func() { with(`"total":4`, `"total":5`) }}, // dropout would differ
		{want: "has an invalid position in the training", change: func() { with(`"tokens":`, `"tokens":-`) }},
		{want: "has an invalid position in the training", change: func() { with(`"seconds":`, `"seconds":-`) }},
		{want: `tensor "adamw.`, change: func() {
			f := *whole
			f.Tensors = f.Tensors[1:]
			if err := f.WriteFile(path); err != nil {
				t.Fatal(err)
			}
		}},
		{want: "file has 0 bytes", change: func() { os.Truncate(path, 0) }},
		{want: "bytes follow", change: func() { os.Truncate(path, 5000) }},
		{want: "bytes of data, want", change: func() { os.Truncate(path, 9000) }},
	} {
		if err := whole.WriteFile(path); err != nil {
			t.Fatal(err)
		}
		if c.change != nil {
			c.change()
		}
		if c.model == nil {
			c.model = newToy(t, models.TranslatorConfig{Arch: models.GRU, Score: "scaled", Width: 8, Layers: 1}, pairs)
		}
		if c.pairs == nil {
			c.pairs = pairs
		}
		if c.settings == (Settings{}) {
			c.settings = toySettings(2)
		}
		tr := newToyTrainer(t, c.model, c.pairs, c.settings)
		err := tr.Resume(dir)
		var bad *seq2seq.InputError
		if !errors.As(err, &bad) || bad.Name != path || !strings.Contains(bad.Err.Error(), c.want) {
			t.Errorf("error %v, want an seq2seq.InputError of %s with %q", err, path, c.want)
		}
		if epochs, steps := tr.Done(); epochs != 0 || steps != 0 {
			t.Errorf("%s: the trainer is at epoch %d, step %d all the same", c.want, epochs, steps)
		}
	}
}

// If one file cannot be written, no file is replaced: old weights with a new config would be
// worse than no new model.
func TestSaveAllOrNothing(t *testing.T) {
	pairs := toyPairs(20)
	dir := saved(t, newToy(t, models.TranslatorConfig{Arch: models.GRU, Score: "scaled", Width: 8, Layers: 1}, pairs), pairs)
	before := contents(t, dir)
	for _, name := range []string{TrainingFile, models.WeightsFile, "target.json"} {
		path := filepath.Join(dir, name)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(path, 0o755); err != nil { // simulates a disk that is full when this file is written
			t.Fatal(err)
		}
		other := newToy(t, models.TranslatorConfig{Arch: models.Transformer, Score: "dot", Width: 6, Heads: 2, Layers: 1, Hidden: 3}, toyPairs(9))
		err := newToyTrainer(t, other, pairs, toySettings(2)).Save(dir)
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("error %v, want one that names %s", err, path)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(before[name]), 0o644); err != nil {
			t.Fatal(err)
		}
		after := contents(t, dir)
		if len(after) != len(before) {
			t.Errorf("%d files, want %d", len(after), len(before))
		}
		for file, data := range before {
			if after[file] != data {
				t.Errorf("%s cannot be written, and %s has changed", name, file)
			}
		}
	}
}

// contents returns the contents of the files in a directory.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = string(data)
	}
	return all
}

// The format of a position must not change, because saved runs contain it. The oldest ones lack
// the number of tokens.
func TestCheckpointFormat(t *testing.T) {
	const (
		position = `{"position":{"epoch":1,"step":2,"total":9,"loss":3.5,"count":4`
		rest     = `},"settings":{"epochs":5,"batch":6,"lr":0.25,"warmup":7,"smoothing":0.5,"clip":1,"max_length":8,"seed":9},` +
			`"network":{"arch":"gru","score":"dot","width":8,"heads":0,"layers":1,"dropout":0.5,"source_vocab":9,"target_vocab":7},"data":"abc"}`
	)
	for _, text := range []string{position + rest, position + `,"tokens":12,"seconds":1.5` + rest} {
		var c checkpoint
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			t.Fatal(err)
		}
		if back, err := json.Marshal(c); err != nil || string(back) != text {
			t.Errorf("read and written again: %s, %v\nwant %s", back, err, text)
		}
	}
}

// Each step drops different elements. The learning rate is too small to have an effect, so
// nothing else differs between two steps on the same pair.
func TestDropoutOfSteps(t *testing.T) {
	pairs := toyPairs(1)
	for dropout, want := range map[float32]int{0: 1, 0.5: 5} {
		m := newToy(t, models.TranslatorConfig{Arch: models.Transformer, Score: "scaled", Width: 12, Heads: 3, Layers: 1, Hidden: 10, Dropout: dropout}, pairs)
		settings := toySettings(5)
		settings.LR = 1e-40
		losses := map[float64]bool{}
		for _, p := range run(t, newToyTrainer(t, m, pairs, settings)) {
			losses[p.Loss] = true
		}
		if len(losses) != want {
			t.Errorf("dropout %v: %d different losses in 5 steps, want %d", dropout, len(losses), want)
		}
	}
}

type killed struct{}

// killedAt runs f and stops it before its n-th operation on the disk, as if the process were
// killed. It reports whether f had that many operations.
func killedAt(n int, f func()) (dead bool) {
	atomicfile.Before = func(string, string) {
		if n--; n < 0 {
			panic(killed{})
		}
	}
	defer func() {
		atomicfile.Before = nil
		if r := recover(); r == (killed{}) {
			dead = true
		} else if r != nil {
			panic(r)
		}
	}()
	f()
	return false
}

// A save can be killed at any operation: the first save, one over an older state, or one over
// another run. The directory then contains the old or the new run, which loads and can be resumed
// bit for bit.
func TestSaveKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: ends at every operation on the disk")
	}
	pairs, others := toyPairs(20), toyPairs(9)
	c := models.TranslatorConfig{Arch: models.Transformer, Score: "scaled", Width: 6, Heads: 3, Layers: 1, Hidden: 5, Dropout: 0.2}
	otherConfig := models.TranslatorConfig{Arch: models.GRU, Score: "dot", Width: 6, Layers: 1}
	after := func(t *testing.T, c models.TranslatorConfig, pairs []seq2seq.Pair, steps int) *Trainer {
		tr := newToyTrainer(t, newToy(t, c, pairs), pairs, toySettings(3))
		if err := tr.Run(context.Background(), stop(steps)); !errors.Is(err, errStop) {
			t.Fatal(err)
		}
		return tr
	}
	whole := newToy(t, c, pairs)
	run(t, newToyTrainer(t, whole, pairs, toySettings(3)))
	next := after(t, c, pairs, 4)
	// stateOf identifies the content of a directory, after training it to the end.
	stateOf := func(dir string) (string, error) {
		m, err := models.Load(dir, models.Options{Trainable: true})
		if err != nil {
			if entries, _ := os.ReadDir(dir); len(entries) <= 1 { // the folder of new files
				return "nothing", nil
			}
			return "", err
		}
		data := pairs
		if m.Family.Type == "attn-gru" {
			data = others
		}
		tr := newToyTrainer(t, m, data, toySettings(3))
		if err := tr.Resume(dir); err != nil {
			return "", err
		}
		epochs, steps := tr.Done()
		first := run(t, tr)[0]
		if steps > 0 && first.EpochTokens <= first.Tokens {
			return "", fmt.Errorf("%d tokens in the epoch, of them %d in the first step: the others are forgotten", first.EpochTokens, first.Tokens)
		}
		if m.Family.Type == "attn-gru" {
			return "another run", nil
		}
		sameParams(t, m, whole)
		if epochs == 0 {
			return "an older state", nil
		}
		return "the next", nil
	}
	for name, old := range map[string]*Trainer{"nothing": nil, "an older state": after(t, c, pairs, 2), "another run": after(t, otherConfig, others, 2)} {
		states := map[string]int{}
		for n := 0; ; n++ {
			dir := t.TempDir()
			if old != nil {
				if err := old.Save(dir); err != nil {
					t.Fatal(err)
				}
			}
			dead := killedAt(n, func() {
				if err := next.Save(dir); err != nil {
					t.Fatal(err)
				}
			})
			state, err := stateOf(dir)
			if err != nil {
				t.Fatalf("%s, killed before operation %d: %v", name, n, err)
			}
			states[state]++
			if !dead {
				break
			}
		}
		if len(states) != 2 || states[name] < 5 || states["the next"] < 5 {
			t.Errorf("over %s: the states after a kill are %v, want many of %s and of the next", name, states, name)
		}
	}
}

// A compact model that has lost all heads of a layer can be trained, and its run, saved and
// resumed, ends with the same bits.
func TestCompactResumes(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: trains")
	}
	pairs := toyPairs(20)
	for _, c := range headed() {
		c.Dropout = 0.2
		kept := toyKept(c)
		if c.Arch == models.GRU && c.Score == "gaussian" {
			kept["decoder.0.cross"] = nil
		}
		whole := keep(t, newToy(t, c, pairs), kept)
		before := logits(whole, pairs)
		dir := saved(t, keep(t, whole, nil), pairs)
		run(t, newToyTrainer(t, whole, pairs, toySettings(2)))
		m, err := models.Load(dir, models.Options{Trainable: true})
		if err != nil {
			t.Fatal(err)
		}
		tr := newToyTrainer(t, m, pairs, toySettings(2))
		if err := tr.Resume(dir); err != nil {
			t.Fatal(err)
		}
		run(t, tr)
		sameParams(t, m, whole)
		if slices.Equal(logits(m, pairs), before) {
			t.Errorf("%s: training has changed nothing", name(c))
		}
		if err := newToyTrainer(t, newToy(t, c, pairs), pairs, toySettings(2)).Resume(dir); err == nil || !strings.Contains(err.Error(), "another network") {
			t.Errorf("resumed with a network of all heads: error %v", err)
		}
		metrics, err := Evaluate(context.Background(), m, pairs, 1)
		if err != nil || !(metrics.Loss > 0) {
			t.Errorf("%s: evaluated to %+v, %v", name(c), metrics, err)
		}
	}
}
