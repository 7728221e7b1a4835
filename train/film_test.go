package train

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/attn-go/attn/models"
)

// The number of frames of a run is bounded; they are denser at the beginning, and include the frames of a longer run.
func TestFilmedSteps(t *testing.T) {
	of := func(total int) (steps []int) {
		for step := range total + 1 {
			if filmed(step, total) {
				steps = append(steps, step)
			}
		}
		return steps
	}
	if got := of(40); !slices.Equal(got, []int{0, 1, 4, 9, 16, 25, 36}) {
		t.Errorf("frames of 40 steps: %v", got)
	}
	totals := []int{5, 6399, 6400, 20_000, 25_599, 25_600, 102_400, 1_000_000}
	for i, total := range totals {
		steps := of(total)
		if len(steps) > mostFilmed || total > 6400 && len(steps) < mostFilmed/2 {
			t.Errorf("%d steps: %d frames", total, len(steps))
		}
		for _, step := range steps {
			for _, shorter := range totals[:i] {
				if step <= shorter && !filmed(step, shorter) {
					t.Errorf("the run of %d steps has step %d and that of %d has not", total, step, shorter)
				}
			}
		}
	}
}

// finished trains a toy run to its end, and returns its directory.
func finished(t *testing.T, r Recipe, change func(*Session)) string {
	t.Helper()
	s, err := Create(filepath.Join(t.TempDir(), "run"), r, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	change(s)
	if err := s.Train(context.Background(), &watch{}); err != nil {
		t.Fatal(err)
	}
	return s.Dir
}

// Recording changes neither the model nor the state of the training.
func TestFilmChangesNothing(t *testing.T) {
	r := toyRecipe(t)
	r.Network.Dropout = 0.3
	with := finished(t, r, func(*Session) {})
	without := finished(t, r, func(s *Session) { s.film = nil })
	a, b := loadFile(t, with, models.WeightsFile), loadFile(t, without, models.WeightsFile)
	if !bytes.Equal(a, b) {
		t.Error("the recording changes the weights of the model")
	}
	film, err := ReadFilm(with)
	if err != nil {
		t.Fatal(err)
	}
	var steps []int
	for _, x := range film.Frames {
		steps = append(steps, x.Step)
		if known := x.Loss == x.Loss; known != (x.Step > 0) {
			t.Errorf("step %d has loss %v", x.Step, x.Loss)
		}
	}
	if !slices.Equal(steps, []int{0, 1, 4, 9, 16}) {
		t.Errorf("frames at steps %v", steps)
	}
	if n := len(film.Frames[0].Record.Layers); n != 3 {
		t.Errorf("%d layers, want 3", n)
	}
	if _, err := ReadFilm(without); err == nil {
		t.Error("a film without a recording")
	}
}

func loadFile(t *testing.T, dir, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A run without a recording is resumed; one with a recording of another model is rejected.
func TestFilmResumed(t *testing.T) {
	r := toyRecipe(t)
	dir := finished(t, r, func(*Session) {})
	path := filepath.Join(dir, FilmFile)
	whole := loadFile(t, dir, FilmFile)
	more := func(r Recipe) (Recipe, error) {
		r.Training.Epochs = 3
		return r, nil
	}
	refused := func(what string) {
		t.Helper()
		if s, err := Reopen(dir, more, Options{}); err == nil || !strings.HasPrefix(err.Error(), path+": "+what) {
			t.Errorf("%v, want %s: %s", err, path, what)
			if err == nil {
				s.Close()
			}
		}
	}
	if err := os.WriteFile(path, whole[:len(whole)-1], 0o644); err != nil {
		t.Fatal(err)
	}
	refused("")
	wide := r
	wide.Network.Heads = 4
	if err := os.WriteFile(path, loadFile(t, finished(t, wide, func(*Session) {}), FilmFile), 0o644); err != nil {
		t.Fatal(err)
	}
	refused("was made with another model or text: ")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	s, err := Reopen(dir, more, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Train(context.Background(), &watch{}); err != nil {
		t.Fatal(err)
	}
	if first, last := s.Film().Frames[0].Step, s.Film().Frames[len(s.Film().Frames)-1].Step; first != 24 || last != 24 {
		t.Errorf("frames at steps %d to %d", first, last)
	}
}

// The first frame after resuming, before any step, has the loss of the last step of the saved curve.
func TestFilmResumedLoss(t *testing.T) {
	dir := finished(t, toyRecipe(t), func(*Session) {})
	whole, err := ReadFilm(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := whole.Frames[len(whole.Frames)-1].Loss
	if err := os.Remove(filepath.Join(dir, FilmFile)); err != nil {
		t.Fatal(err)
	}
	s, err := Reopen(dir, func(r Recipe) (Recipe, error) { r.Training.Epochs = 3; return r, nil }, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Train(stopped, &watch{}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	film, err := ReadFilm(dir)
	if err != nil {
		t.Fatal(err)
	}
	if f := film.Frames; len(f) != 1 || f[0].Step != 16 || !(math.Abs(f[0].Loss/want-1) < 1e-6) {
		t.Errorf("frames %+v, want one of step 16 with loss %v", f, want)
	}
}

// A run whose test pairs have changed records the text that it began with.
func TestFilmKeepsText(t *testing.T) {
	r := toyRecipe(t)
	r.Valid = filepath.Join(t.TempDir(), "valid.tsv")
	valid := func(text string) {
		t.Helper()
		if err := os.WriteFile(r.Valid, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	valid("a b c\tc b a\n")
	dir := finished(t, r, func(*Session) {})
	valid("c a b a\tb a b\n")
	s, err := Reopen(dir, func(r Recipe) (Recipe, error) {
		r.Training.Epochs++
		return r, nil
	}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Train(context.Background(), &watch{}); err != nil {
		t.Fatal(err)
	}
	film, err := ReadFilm(dir)
	if err != nil {
		t.Fatal(err)
	}
	if r := film.Frames[0].Record; len(film.Frames) < 6 || r.Source != "a b c" || r.Target != "c b a" {
		t.Errorf("%d frames of %q", len(film.Frames), r.Source)
	}
}

// The layers of a frame are bounded; cross-attention comes first.
func TestFilmedLayers(t *testing.T) {
	r := toyRecipe(t)
	r.Network.Layers = 3
	s, err := Create(filepath.Join(t.TempDir(), "run"), r, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Data.Test[0].Source = strings.Repeat(s.Data.Test[0].Source+" ", 200)[:140] // 2 heads · 140² weights of a layer of the encoder
	s.Data.Test = s.Data.Test[:1]
	f, err := s.newCamera()
	if err != nil || f == nil {
		t.Fatalf("no film, %v", err)
	}
	for name, want := range map[string]bool{"encoder.0.self": false, "encoder.2.self": true, "decoder.0.self": true, "decoder.0.cross": true, "decoder.2.cross": true} {
		if f.keep[name] != want {
			t.Errorf("%s is recorded: %v", name, f.keep[name])
		}
	}
	s.Data.Test[0].Target = strings.Repeat("a ", 2000)
	s.Data.Test[0].Source = strings.Repeat("a ", 2000)
	if f, err := s.newCamera(); f != nil || err != nil {
		t.Errorf("a film of a text that is too long, %v", err)
	}
}

// A run without a recording removes that of the run that it replaces.
func TestFilmReplaced(t *testing.T) {
	r := toyRecipe(t)
	dir := finished(t, r, func(*Session) {})
	s, err := Create(dir, r, Options{Force: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Prepare(); err != nil {
		t.Fatal(err)
	}
	if has(dir, FilmFile) {
		t.Error("the recording of the earlier run is still there")
	}
}

// A Projector reads the last save: nothing, a recording, or its error.
func TestProjector(t *testing.T) {
	dir := finished(t, toyRecipe(t), func(*Session) {})
	whole := loadFile(t, dir, FilmFile)
	p := Projector{Dir: t.TempDir()}
	put := func(data []byte, second int) {
		t.Helper()
		path := filepath.Join(p.Dir, FilmFile)
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		at := time.Unix(int64(second), 0)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	if f, err := p.Read(); f != nil || err != nil {
		t.Errorf("without a file: %v, %v", f, err)
	}
	put(whole, 1)
	f, err := p.Read()
	if err != nil || len(f.Frames) != 5 {
		t.Fatalf("%v, %v", f, err)
	}
	if again, _ := p.Read(); again != f {
		t.Error("an unchanged file is read again")
	}
	put(whole[:100], 2)
	if _, err := p.Read(); err == nil {
		t.Error("a broken file is read")
	}
	put(whole, 3)
	if _, err := p.Read(); err != nil {
		t.Error(err)
	}
}
