package figures

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/attn-go/attn/internal/input"
)

// A file that is named must be a font; fonts of the system are looked for only if a character lacks.
func TestFonts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.ttf")
	if _, err := Fonts(path, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(path, []byte("no font"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Fonts(path, nil); !errors.As(err, new(*input.Error)) {
		t.Errorf("no font: %v", err)
	}
	if fonts, err := Fonts("", nil); fonts != nil || err != nil {
		t.Errorf("nothing lacks: %v, %v", fonts, err)
	}
}
