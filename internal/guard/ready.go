package guard

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/attn-go/attn/internal/atomicfile"
)

// Ready returns an error if a file is a folder, or if no file can be written to its directory. It is called before long
// work.
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
		if err := atomicfile.Ready(f.Path); err != nil {
			return err
		}
	}
	return nil
}
