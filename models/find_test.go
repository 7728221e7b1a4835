package models_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attn-go/attn/models"
)

// hubCache writes a cache of huggingface_hub with a model "owner/name" and snapshots of commits. main is refs/main, if it
// is not "".
func hubCache(t *testing.T, dir, main string, commits ...string) {
	t.Helper()
	model := filepath.Join(dir, "models--owner--name")
	for _, commit := range commits {
		if err := os.MkdirAll(filepath.Join(model, "snapshots", commit), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if main != "" {
		if err := os.MkdirAll(filepath.Join(model, "refs"), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(model, "refs", "main"), main)
	}
}

// The cache is the one that huggingface_hub uses.
func TestFindCache(t *testing.T) {
	all := []string{"HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME", "HOME"} // the first that is set counts
	below := map[string]string{"HF_HUB_CACHE": "", "HF_HOME": "hub", "XDG_CACHE_HOME": "huggingface/hub", "HOME": ".cache/huggingface/hub"}
	t.Chdir(t.TempDir())
	t.Setenv("USERPROFILE", "HOME") // of Windows
	for _, name := range all {
		t.Setenv(name, name)
		hubCache(t, filepath.Join(name, below[name]), "c1", "c1")
	}
	for _, name := range all {
		want := filepath.Join(name, below[name], "models--owner--name", "snapshots", "c1")
		if got, err := models.Find("owner/name"); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", name, got, err, want)
		}
		t.Setenv(name, "")
	}
}

// The snapshot is that of the branch main, or the only one, and a directory comes before the cache.
func TestFind(t *testing.T) {
	for _, c := range []struct {
		main    string
		commits []string
		want    string // a commit or an error
	}{
		{"c2", []string{"c1", "c2", "c3"}, "c2"},
		{"c2\n", []string{"c1", "c2"}, "c2"},
		{"", []string{"c1"}, "c1"},
		{"", []string{"c1", "c2"}, `has several snapshots and no refs/main, want the path of one: "snapshots/c1", "snapshots/c2"`},
		{"c2", []string{"c1"}, `models: "owner/name" is neither a directory nor in `},
		{"../c1", []string{"c1"}, `models: "owner/name" is neither a directory nor in `},
		{"", nil, `models: "owner/name" is neither a directory nor in `},
	} {
		cache := filepath.Join(t.TempDir(), "a [b]") // not a pattern
		t.Setenv("HF_HUB_CACHE", cache)
		hubCache(t, cache, c.main, c.commits...)
		got, err := models.Find("owner/name")
		switch want := filepath.Join(cache, "models--owner--name", "snapshots", c.want); {
		case strings.HasPrefix(c.want, "c"):
			if err != nil || got != want {
				t.Errorf("%q of %q: %s, %v, want %s", c.main, c.commits, got, err, want)
			}
		case err == nil || !strings.Contains(err.Error(), c.want):
			t.Errorf("%q of %q: %s, %v, want %s", c.main, c.commits, got, err, c.want)
		case errors.Is(err, fs.ErrNotExist) != strings.Contains(c.want, "neither"), errors.Is(err, fs.ErrNotExist) == errors.As(err, new(*models.FormatError)):
			t.Errorf("error %v of type %T", err, err)
		}
	}
	cache := t.TempDir()
	t.Setenv("HF_HUB_CACHE", cache)
	hubCache(t, cache, "", "c1")
	for _, name := range []string{"owner", "../owner/name", "owner/name/", `owner\name`, "", cache + "/owner/name", "OWNER--x"} {
		if got, err := models.Find(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %s, %v, want none", name, got, err)
		}
	}
	t.Chdir(t.TempDir())
	if err := os.MkdirAll("owner/name", 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := models.Find("owner/name"); err != nil || got != "owner/name" {
		t.Errorf("%s, %v, want the directory", got, err)
	}
}
