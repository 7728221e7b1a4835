package guard

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Writable creates a directory if necessary, and returns an error if no file can be written there. It
// is called before long work.
func Writable(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".attn-*.tmp")
	if err != nil {
		return fmt.Errorf("write to %s: %w", dir, errors.Unwrap(err))
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// Ready returns an error if a file is a folder or its directory does not exist. It is called before
// long work.
func Ready(files []Place) error {
	for _, f := range files {
		if f.Path == "" || f.Path == "-" {
			continue
		}
		if info, err := os.Stat(f.Path); err == nil && info.IsDir() {
			return fmt.Errorf("write %s: is a folder, want a file", f.Path)
		}
		dir := filepath.Dir(f.Path)
		if info, err := os.Stat(dir); err != nil {
			return fmt.Errorf("write %s: %w", f.Path, errors.Unwrap(err))
		} else if !info.IsDir() {
			return fmt.Errorf("write %s: %s is not a folder", f.Path, dir)
		}
	}
	return nil
}
