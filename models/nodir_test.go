package models_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tokenizer"
)

// A path that is not the directory of a model gives an error that says what it is, whatever loads it.
func TestNoModelDirectory(t *testing.T) {
	root := t.TempDir()
	if err := os.CopyFS(filepath.Join(root, "above", "model"), os.DirFS("testdata/sentence_mean")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"x.gguf", "other/notes.txt", "gguf/q4.gguf"} {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(root, name), "")
	}
	loaders := map[string]func(dir string) error{
		"Load":           func(dir string) error { _, err := models.Load(dir, models.Options{}); return err },
		"LoadEmbedder":   func(dir string) error { _, err := models.LoadEmbedder(dir, models.Options{}); return err },
		"Describe":       func(dir string) error { _, err := models.Describe(dir, models.Options{}); return err },
		"tokenizer.Load": func(dir string) error { _, err := tokenizer.Load(dir); return err },
	}
	for loader, load := range loaders {
		for _, c := range []struct{ path, want string }{
			{"", "is an empty path, want the directory of a model"},
			{"x.gguf", "x.gguf: is in the format GGUF, which is not read; want a model in Hugging Face's format"},
			{"gguf", "has a model in the format GGUF, q4.gguf, which is not read; want a model in Hugging Face's format"},
			{"above", filepath.FromSlash("is not the directory of a model, but ROOT/above/model is; want that directory")},
			{"other", "other: has no config.json, so it is not the directory of a model"},
			{"above/model/config.json", "config.json: is a file, want the directory of the model"},
		} {
			path := c.path
			if path != "" {
				path = filepath.Join(root, c.path)
			}
			err := load(path)
			if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), root, "ROOT"), c.want) {
				t.Errorf("%s of %q: error %v, want %s", loader, c.path, err, c.want)
			}
		}
		if err := load(filepath.Join(root, "missing")); !errors.Is(err, fs.ErrNotExist) && loader != "LoadTranslator" {
			t.Errorf("%s of a missing path: error %v", loader, err)
		}
	}
	if _, err := models.LoadEmbedder(copyDir(t, "testdata/bert"), models.Options{}); !errors.Is(err, models.ErrNoPipeline) {
		t.Errorf("a model without a pipeline: error %v, want ErrNoPipeline", err)
	}
}
