//go:build unix

package models_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/attn-go/attn/models"
)

// No file of a directory is read if it is a pipe, which would be waited for, or a device, which may have no end.
func TestFilesAreRegular(t *testing.T) {
	for _, from := range []string{"testdata/sentence_mean", "testdata/decoders/llama3", "testdata/gemma2_text"} {
		entries, err := os.ReadDir(from)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.IsDir() || strings.HasPrefix(e.Name(), "golden") {
				continue
			}
			for _, to := range []string{"pipe", "/dev/zero"} {
				dir := t.TempDir()
				if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
					t.Fatal(err)
				}
				path := filepath.Join(dir, e.Name())
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
				if to == "pipe" {
					err = syscall.Mkfifo(path, 0o600)
				} else {
					err = os.Symlink(to, path)
				}
				if err != nil {
					t.Skip(err)
				}
				m, err := models.Load(dir, models.Options{})
				if err == nil && m.Head() != nil && m.Head().Task == models.NextWord {
					_, err = m.EndTokens()
				}
				if err == nil {
					_, err = m.Tokenizer()
				}
				if err == nil && from == "testdata/sentence_mean" {
					_, err = models.LoadEmbedder(dir, models.Options{})
				}
				if err == nil || !strings.Contains(err.Error(), "is not a regular file") {
					t.Errorf("%s as %s: error %v", e.Name(), to, err)
				}
			}
		}
	}
}
