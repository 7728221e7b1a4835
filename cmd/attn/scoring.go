package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/seq2seq"
)

// What attn heads and attn prune share: which model, which data, which methods.

// scoredFlags say what heads are scored on.
type scoredFlags struct {
	Model     string   `required:"" help:"Directory of the model." placeholder:"DIR"`
	Data      string   `help:"Tab-separated pairs, one a line, that the model has not learnt. A model of dates makes its own." placeholder:"FILE"`
	Method    []string `help:"leave-one-out, gradient, taylor, fisher, weight-norm, confidence, random, or several with commas; all but random if not given." placeholder:"NAME" group:"Importance"`
	Normalize bool     `help:"Divide gradient, taylor and fisher by the norm over their layer." group:"Importance"`
	Limit     int      `default:"1000" help:"Most sources of the data, or of each of its parts, that are used." placeholder:"N"`
	Seed      uint64   `default:"1" help:"Seed of all random numbers." placeholder:"N"`

	recipe *recipe // the model's, if it has one
}

// methods returns the methods asked for, each once.
func (f *scoredFlags) methods() ([]heads.Method, error) {
	if len(f.Method) == 0 {
		return slices.DeleteFunc(heads.Methods(), func(m heads.Method) bool { return m == heads.Random }), nil
	}
	var list []heads.Method
	for _, name := range f.Method {
		m, err := heads.ParseMethod(name)
		if err != nil {
			return nil, usage("unknown method %q, want one of %s", name, methodNames())
		}
		if !slices.Contains(list, m) {
			list = append(list, m)
		}
	}
	return list, nil
}

func methodNames() (names string) {
	for i, m := range heads.Methods() {
		if i > 0 {
			names += ", "
		}
		names += m.String()
	}
	return names
}

// load returns the model, which has heads.
func (f *scoredFlags) load() (*seq2seq.Translator, error) {
	m, err := seq2seq.Load(f.Model)
	if err != nil {
		return nil, err
	}
	if f.recipe, err = readRecipe(f.Model); err != nil {
		return nil, err
	}
	for _, l := range m.Layers() {
		if l.Config().Heads > 0 {
			return m, nil
		}
	}
	return nil, &seq2seq.InputError{Name: f.Model, Reason: "the model has no attention heads"}
}

// pairs returns the data and their name: those of the file, or for a model of
// dates as many dates that are new to it: it was neither trained nor pruned on them,
// and attn eval does not measure on them.
func (f *scoredFlags) pairs(most int) (pairs []seq2seq.Pair, name string, err error) {
	if f.Data != "" {
		pairs, err = loadTest(f.Data)
		return pairs, f.Data, err
	}
	if f.recipe == nil || f.recipe.Data != "" {
		return nil, "", usage("--data is needed: %s has not learnt the built-in dates", f.Model)
	}
	learnt, err := f.recipe.pairs()
	if err != nil {
		return nil, "", err
	}
	known := map[string]bool{}
	for _, p := range slices.Concat(learnt.learn, learnt.test) {
		known[p.Source] = true
	}
	for i, n := range f.recipe.Pruned {
		for _, p := range f.recipe.moreDates(i, n) {
			known[p.Source] = true
		}
	}
	pairs = f.recipe.moreDates(len(f.recipe.Pruned), most)
	f.recipe.Pruned = append(f.recipe.Pruned, most)
	return slices.DeleteFunc(pairs, func(p seq2seq.Pair) bool { return known[p.Source] }), "built-in dates", nil
}

// Validate is called by the parser.
func (f *scoredFlags) Validate() error {
	if f.Limit < 1 || f.Limit > seq2seq.MaxDates/4 {
		return fmt.Errorf("--limit %d, want 1 to %d", f.Limit, seq2seq.MaxDates/4)
	}
	gradients := func(name string) bool { return slices.Contains([]string{"gradient", "taylor", "fisher"}, name) }
	if f.Normalize && len(f.Method) > 0 && !slices.ContainsFunc(f.Method, gradients) {
		return errors.New("--normalize goes with gradient, taylor or fisher")
	}
	return nil
}

// outputFile is a file that a flag asks for; without a path it does not.
type outputFile struct{ flag, path string }

// apart returns an error if two files are one, or one of them would take the place
// of a part of a model in one of the directories.
func apart(files []outputFile, dirs ...string) error {
	parts := []string{"config.json", seq2seq.WeightsFile, "source.json", "target.json", seq2seq.TrainingFile, recipeFile, reportFile, unfinishedFile}
	for i, f := range files {
		if f.path == "" {
			continue
		}
		if f.path == "-" {
			return fmt.Errorf("%s -: want a file, not standard output", f.flag)
		}
		for _, g := range files[:i] {
			if g.path != "" && sameFile(f.path, g.path) {
				return fmt.Errorf("%s and %s are both %s", g.flag, f.flag, quoted(f.path))
			}
		}
		for _, dir := range dirs {
			if slices.ContainsFunc(parts, func(name string) bool { return sameFile(f.path, filepath.Join(dir, name)) }) {
				return fmt.Errorf("%s %s would overwrite a file of the model in %s", f.flag, quoted(f.path), quoted(dir))
			}
		}
	}
	return nil
}

// sameFile reports whether two paths lead to one place, where there may be nothing
// yet.
func sameFile(a, b string) bool {
	if resolve(a) == resolve(b) {
		return true
	}
	x, err1 := os.Stat(a)
	y, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}

// resolve returns the absolute path without links, as far as there is something.
func resolve(path string) string {
	path, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if dir := filepath.Dir(path); dir != path {
		return filepath.Join(resolve(dir), filepath.Base(path))
	}
	return path
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// remove removes files that may be there.
func remove(paths ...string) error {
	for _, path := range paths {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// ready returns an error if a file cannot be written because of where it is to be,
// so that nobody hears of it after the work.
func ready(files []outputFile) error {
	for _, f := range files {
		if f.path == "" {
			continue
		}
		if info, err := os.Stat(f.path); err == nil && info.IsDir() {
			return fmt.Errorf("write %s: is a folder, want a file", f.path)
		}
		dir := filepath.Dir(f.path)
		if info, err := os.Stat(dir); err != nil {
			return fmt.Errorf("write %s: %w", f.path, errors.Unwrap(err))
		} else if !info.IsDir() {
			return fmt.Errorf("write %s: %s is not a folder", f.path, dir)
		}
	}
	return nil
}
