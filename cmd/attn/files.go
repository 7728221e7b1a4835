package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/seq2seq"
)

// Where commands may write: what cannot work, or would take the place of something
// else, is found before the work and not after it.

// writable makes a directory if need be and returns an error if no file can be
// written there, which after an hour of work would come late.
func writable(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".attn-*.tmp")
	if err != nil {
		return fmt.Errorf("write to %s: %w", dir, errors.Unwrap(err))
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
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

// exists reports whether there is something at a path, or will be when a save that was
// killed half-way is completed.
func exists(path string) bool { return atomicfile.Exists(path) }

// firstOf returns the first of these files that a directory has, or "".
func firstOf(dir string, names ...string) string {
	for _, name := range names {
		if exists(filepath.Join(dir, name)) {
			return name
		}
	}
	return ""
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
