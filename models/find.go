package models

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/attn-go/attn/internal/atomicfile"
	"github.com/attn-go/attn/internal/quote"
)

// Find returns the directory of the model that has a name on the Hub, such as "owner/name", in the cache of
// huggingface_hub: the snapshot of its branch main, or its only snapshot. The cache is HF_HUB_CACHE, or hub in HF_HOME,
// by default ~/.cache/huggingface/hub. A path that exists is returned as it is. Load does not call Find, so what a
// program loads does not depend on its environment unless it asks for that.
//
// Errors: fs.ErrNotExist, wrapped; a *FormatError for several snapshots without a branch main.
func Find(name string) (string, error) {
	if _, err := atomicfile.Read(name, os.Stat); !errors.Is(err, fs.ErrNotExist) {
		return name, nil // Load reports an error
	}
	user, _ := os.UserHomeDir()
	caches := cmp.Or(os.Getenv("XDG_CACHE_HOME"), filepath.Join(user, ".cache"))
	home := cmp.Or(os.Getenv("HF_HOME"), filepath.Join(caches, "huggingface"))
	cache := cmp.Or(os.Getenv("HF_HUB_CACHE"), filepath.Join(home, "hub"))
	dir := filepath.Join(cache, "models--"+strings.ReplaceAll(name, "/", "--"))
	commit := "*"
	if main, err := atomicfile.ReadFile(filepath.Join(dir, "refs", "main"), 1<<10); err == nil {
		commit = strings.TrimSpace(string(main))
	}
	found, _ := fs.Glob(os.DirFS(dir), "snapshots/"+commit)
	switch len(found) {
	case 0:
		return "", fmt.Errorf("models: %s is neither a directory nor in %s: %w", quote.Text(name), quote.Name(cache), fs.ErrNotExist)
	case 1:
		return filepath.Join(dir, found[0]), nil
	}
	return "", &FormatError{dir, fmt.Errorf("has several snapshots and no refs/main, want the path of one: %s", quote.Texts(found))}
}
