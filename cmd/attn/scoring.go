package main

import (
	"encoding/json"
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
	for _, l := range m.Layers() {
		if l.Config().Heads > 0 {
			return m, nil
		}
	}
	return nil, &seq2seq.InputError{Name: f.Model, Reason: "the model has no attention heads"}
}

// pairs returns the data and their name: those of the file, or for a model of
// dates as many dates that it has not learnt.
func (f *scoredFlags) pairs(most int) (pairs []seq2seq.Pair, name string, err error) {
	if f.Data != "" {
		pairs, err = loadTest(f.Data)
		return pairs, f.Data, err
	}
	var r recipe
	data, err := os.ReadFile(filepath.Join(f.Model, recipeFile))
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if errors.Is(err, fs.ErrNotExist) || err == nil && r.Data != "" {
		return nil, "", usage("--data is needed: %s has not learnt the built-in dates", f.Model)
	}
	if err != nil {
		return nil, "", &seq2seq.InputError{Name: filepath.Join(f.Model, recipeFile), Reason: err.Error()}
	}
	learnt, err := r.pairs()
	if err != nil {
		return nil, "", err
	}
	known := map[string]bool{}
	for _, p := range learnt.learn {
		known[p.Source] = true
	}
	_, pairs = seq2seq.DatesSplit(0, most, r.Training.Seed+1)
	return slices.DeleteFunc(pairs, func(p seq2seq.Pair) bool { return known[p.Source] }), "built-in dates", nil
}

// Validate is called by the parser.
func (f *scoredFlags) Validate() error {
	if f.Limit < 1 || f.Limit > seq2seq.MaxDates/4 {
		return fmt.Errorf("--limit %d, want 1 to %d", f.Limit, seq2seq.MaxDates/4)
	}
	return nil
}

// outputFile is a file that a flag asks for; without a path it does not.
type outputFile struct{ flag, path string }

// apart returns an error if two files are one, or one of them would take the place
// of a part of a model in one of the directories.
func apart(files []outputFile, dirs ...string) error {
	parts := []string{"config.json", seq2seq.WeightsFile, "source.json", "target.json", recipeFile, reportFile}
	for i, f := range files {
		if f.path == "" {
			continue
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
