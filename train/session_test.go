package train

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/curve"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/seq2seq"
)

// toyRecipe learns toy pairs from a file in a new directory, in two epochs of eight steps.
func toyRecipe(t *testing.T) Recipe {
	t.Helper()
	var text strings.Builder
	for _, p := range toyPairs(51) { // one of them is held out
		text.WriteString(p.Source + "\t" + p.Target + "\n")
	}
	r := PairsRecipe()
	r.Data = filepath.Join(t.TempDir(), "pairs.tsv")
	if err := os.WriteFile(r.Data, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	r.Units, r.Training.Batch, r.Training.Epochs = seq2seq.Chars, 7, 2
	r.Network.Width, r.Network.Heads, r.Network.Layers, r.Network.Hidden = 8, 2, 1, 8
	return r
}

// watch is a Watcher that calls a function, if not nil, after each step.
type watch struct {
	step   func(Progress)
	epochs int
}

func (w *watch) Step(p Progress) {
	if w.step != nil {
		w.step(p)
	}
}

func (w *watch) Epoch(Progress, float64) { w.epochs++ }

// same resumes a run with its own recipe.
func same(r Recipe) (Recipe, error) { return r, nil }

// kinds returns the kinds of lines, and the last line.
func kinds(lines []byte) (all []curve.Kind, last string) {
	for line := range bytes.Lines(lines) {
		all, last = append(all, curve.KindOf(line)), string(line)
	}
	return all, last
}

// A session that is interrupted after any step and reopened ends with the same result.
func TestSessionInterrupted(t *testing.T) {
	r, ctx := toyRecipe(t), context.Background()
	var out bytes.Buffer
	whole, err := Create(filepath.Join(t.TempDir(), "whole"), r, Options{JSON: &out})
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	w := &watch{}
	if err := whole.Train(ctx, w); err != nil || w.epochs != 2 {
		t.Fatalf("%d epochs, %v", w.epochs, err)
	}
	want, err := whole.Measure(ctx)
	if err != nil {
		t.Fatal(err)
	}
	all, final := kinds(out.Bytes())
	written, err := os.ReadFile(filepath.Join(whole.Dir, curve.File))
	if err != nil || !bytes.Equal(written, out.Bytes()) {
		t.Errorf("the file and the output differ: %v", err)
	}
	for _, stop := range []int{1, 8, 11, 16} {
		var parts bytes.Buffer
		o := Options{JSON: &parts, Every: Interval{Steps: 3}}
		s, err := Create(filepath.Join(t.TempDir(), "run"), r, o)
		if err != nil {
			t.Fatal(err)
		}
		stopped, cancel := context.WithCancel(ctx)
		err = s.Train(stopped, &watch{step: func(p Progress) {
			if p.Total == stop {
				cancel()
			}
		}})
		if done := stop == 16; !done && !errors.Is(err, context.Canceled) || done && err != nil || !s.Saved {
			t.Errorf("interrupted after step %d: %v", stop, err)
		}
		cancel()
		s.Close()
		if s, err = Reopen(s.Dir, same, o); err != nil {
			t.Fatal(err)
		}
		if s.Trainer.Total() != stop {
			t.Errorf("reopened at step %d, want %d", s.Trainer.Total(), stop)
		}
		if err := s.Train(ctx, &watch{}); err != nil {
			t.Fatal(err)
		}
		got, err := s.Measure(ctx)
		if err != nil || got != want {
			t.Errorf("interrupted after step %d: %+v, want %+v, %v", stop, got, want, err)
		}
		s.Close()
		sameParams(t, s.Model, whole.Model)
		if !bytes.Equal(loadFile(t, s.Dir, FilmFile), loadFile(t, whole.Dir, FilmFile)) {
			t.Errorf("interrupted after step %d: the recording differs", stop)
		}
		saved, err := os.ReadFile(filepath.Join(s.Dir, curve.File))
		if err != nil {
			t.Fatal(err)
		}
		if k, last := kinds(saved); !slices.Equal(k, all) || last != final {
			t.Errorf("interrupted after step %d: lines %v, the last %s; want %v, %s", stop, k, last, all, final)
		}
	}
}

// A resumed run that is stopped before its first step saves its changed recipe.
func TestSessionStoppedAtOnce(t *testing.T) {
	dir := finished(t, toyRecipe(t), func(*Session) {})
	s, err := Reopen(dir, func(r Recipe) (Recipe, error) { r.Training.Epochs = 5; return r, nil }, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Train(stopped, &watch{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that the run was cancelled", err)
	}
	r, err := ReadRecipe(dir)
	if err != nil || r.Training.Epochs != 5 {
		t.Errorf("the saved recipe has %d epochs, %v, want 5", r.Training.Epochs, err)
	}
}

// A session draws its metrics with the function that it is given. Without one, no picture of an earlier run is left.
func TestSessionPicture(t *testing.T) {
	r, dir := toyRecipe(t), filepath.Join(t.TempDir(), "run")
	for _, o := range []Options{
		{Picture: func(w io.Writer, metrics [][]byte) error {
			_, err := w.Write(bytes.Join(metrics, nil))
			return err
		}},
		{Force: true},
	} {
		s, err := Create(dir, r, o)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Train(context.Background(), &watch{}); err != nil {
			t.Fatal(err)
		}
		s.Close()
		if has(dir, curve.PictureFile) != (o.Picture != nil) {
			t.Errorf("with a function %v, there is a picture: %v", o.Picture != nil, has(dir, curve.PictureFile))
		}
		if o.Picture != nil && !bytes.Equal(loadFile(t, dir, curve.PictureFile), loadFile(t, dir, curve.File)) {
			t.Error("the picture is not of the metrics")
		}
	}
	broken := errors.New("full")
	s, err := Create(dir, r, Options{Force: true, Picture: func(io.Writer, [][]byte) error { return broken }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Train(context.Background(), &watch{}); !errors.Is(err, broken) {
		t.Errorf("a picture that fails: %v", err)
	}
}

// A run without any step is not saved.
func TestSessionWithoutSteps(t *testing.T) {
	s, err := Create(t.TempDir(), toyRecipe(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Train(ctx, &watch{}); !errors.Is(err, context.Canceled) || s.Saved || has(s.Dir, TrainingFile) {
		t.Errorf("saved %v, error %v", s.Saved, err)
	}
}

// It is an error if a new run would replace files or if the directory is in use.
func TestSessionGuards(t *testing.T) {
	r, dir := toyRecipe(t), t.TempDir()
	create := func(o Options) error {
		s, err := Create(dir, r, o)
		if err == nil {
			s.Close()
		}
		return err
	}
	put := func(name string) {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("report")
	for _, c := range []struct {
		put     string
		o       Options
		refused string
	}{
		{"", Options{}, ""},
		{"", Options{Reserved: []string{"report"}, Force: true}, "report"},
		{ExamplesFile, Options{}, ""},
		{"", Options{Prepare: true}, ExamplesFile},
		{"", Options{Prepare: true, Force: true}, ""},
		{RecipeFile, Options{}, RecipeFile},
		{models.WeightsFile, Options{}, models.WeightsFile},
		{TrainingFile, Options{}, TrainingFile},
		{"", Options{Force: true}, ""},
	} {
		if c.put != "" {
			put(c.put)
		}
		var o *OccupiedError
		switch err := create(c.o); {
		case c.refused == "" && err != nil:
			t.Errorf("%+v: %v", c.o, err)
		case c.refused != "" && (!errors.As(err, &o) || o.File != c.refused || o.Dir != dir):
			t.Errorf("%+v: error %v, want one of %s", c.o, err, c.refused)
		}
	}
	s, err := Create(dir, r, Options{Force: true})
	if err != nil || !s.Replaces {
		t.Fatalf("%+v, %v", s, err)
	}
	if err := create(Options{Force: true}); !errors.Is(err, atomicfile.ErrInUse) {
		t.Errorf("of a directory in use: %v", err)
	}
	s.Close()
	for _, dir := range []string{filepath.Join(dir, "none"), t.TempDir()} {
		var bad *seq2seq.InputError
		if _, err := Reopen(dir, same, Options{}); !errors.As(err, &bad) || !strings.Contains(err.Error(), "contains no run to resume") {
			t.Errorf("error %v, want that there is no run", err)
		}
	}
}

// A prepared run contains everything for training elsewhere, and this program can resume it.
func TestSessionPrepare(t *testing.T) {
	s, err := Create(t.TempDir(), toyRecipe(t), Options{Prepare: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Prepare(); err != nil || !has(s.Dir, ExamplesFile) {
		t.Fatal(err)
	}
	s.Close()
	again, err := Reopen(s.Dir, same, Options{})
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
	sameParams(t, again.Model, s.Model)

	// Settings must match the checkpoint, even if the caller allows others.
	_, err = Reopen(s.Dir, func(r Recipe) (Recipe, error) { r.Training.Seed++; return r, nil }, Options{})
	if err == nil || !strings.Contains(err.Error(), "was made with other settings") {
		t.Errorf("with another seed: %v", err)
	}
}

func TestInterval(t *testing.T) {
	for text, want := range map[string]Interval{"0": {}, "500": {Steps: 500}, "30s": {Time: 30 * time.Second}} {
		var i Interval
		if err := i.UnmarshalText([]byte(text)); err != nil || i != want {
			t.Errorf("%s: %+v, %v", text, i, err)
		}
	}
	for _, text := range []string{"", "-1", "-1s", "0s", "1x"} {
		if err := new(Interval).UnmarshalText([]byte(text)); err == nil || !strings.HasSuffix(err.Error(), "want a time such as 30s or a number of steps such as 500") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestRecipeContinues(t *testing.T) {
	r := DatesRecipe()
	longer, other := r, r
	longer.Training.Epochs++
	other.Limit = 9
	if !longer.Continues(r) || other.Continues(r) {
		t.Error("only the number of epochs may differ")
	}
}
