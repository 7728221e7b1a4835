package probe_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

const testdata = "../models/testdata/"

// copyDir returns a copy of a directory.
func copyDir(t *testing.T, from string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// edit returns a copy of a directory of a model with other settings; nil removes one.
func edit(t *testing.T, dir string, change map[string]any) string {
	t.Helper()
	dir = copyDir(t, testdata+dir)
	path := filepath.Join(dir, "config.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	config := map[string]any{}
	if err := json.Unmarshal(data, &config); err != nil {
		t.Fatal(err)
	}
	for key, value := range change {
		if config[key] = value; value == nil {
			delete(config, key)
		}
	}
	if data, err = json.Marshal(config); err != nil {
		t.Fatal(err)
	}
	write(t, path, string(data))
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// fewer returns every third element with -short, and otherwise all.
func fewer[T any](list []T) []T {
	if !testing.Short() {
		return list
	}
	var some []T
	for i := 0; i < len(list); i += 3 {
		some = append(some, list[i])
	}
	return some
}
