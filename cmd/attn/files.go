package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/attn-go/attn/internal/atomicfile"
)

// Where commands may write: what cannot work, or would take the place of something
// else, is found before the work and not after it.

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
// which would come late after hours of work.
func ready(files []place) error {
	for _, f := range files {
		if f.path == "" || f.path == "-" {
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
