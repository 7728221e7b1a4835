package main

import (
	"path/filepath"
	"testing"
)

// A page has the name of the model, not of a commit in the cache of the Hub.
func TestModelName(t *testing.T) {
	for dir, want := range map[string]string{
		"runs/dates/": "dates", "model": "model", "snapshots/model": "model",
		"/hub/models--owner--name/snapshots/c1": "owner/name", "models--gpt2/snapshots/c1/": "gpt2", "models--a--b--c/snapshots/c1": "a/b--c",
	} {
		if got := modelName(filepath.FromSlash(dir)); got != want {
			t.Errorf("%s: %s, want %s", dir, got, want)
		}
	}
}
