package modeldir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestExplain(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{
		"x.gguf", "X.GGUF", "gguf/q4.gguf", "gguf/readme.md", "one/model/config.json", "two/a/config.json", "two/b/config.json",
		"many/a/config.json", "many/b/config.json", "many/c/config.json", "many/d/config.json",
		"cache/snapshots/0123/config.json", "cache/refs/main", "other/readme.md", "model/config.json", "model/q4.gguf",
		"[odd]/m/config.json", "folder.gguf/config.json",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const want = "; want a model in Hugging Face's format, a directory with config.json, model.safetensors and tokenizer.json"
	for _, c := range []struct{ dir, want string }{
		{"x.gguf", "is in the format GGUF, which is not read" + want},
		{"X.GGUF", "is in the format GGUF, which is not read" + want},
		{"missing.gguf", "is in the format GGUF, which is not read" + want},
		{"gguf", "has a model in the format GGUF, q4.gguf, which is not read" + want},
		{"one", "is not the directory of a model, but ROOT/one/model is; want that directory"},
		{"two", "is not the directory of a model, but contains several, want one of ROOT/two/a, ROOT/two/b"},
		{"many", "is not the directory of a model, but contains several, want one of ROOT/many/a, ROOT/many/b, ROOT/many/c, …"},
		{"cache", "is not the directory of a model, but ROOT/cache/snapshots/0123 is; want that directory"},
		{"[odd]", "is not the directory of a model, but ROOT/[odd]/m is; want that directory"},
		{"other", "has no config.json, so it is not the directory of a model" + want},
		{"model/config.json", "is a file, want the directory of the model"},
		{"model", ""},
		{"folder.gguf", ""},
		{"missing", ""},
	} {
		got := ""
		if err := Explain(filepath.Join(root, c.dir), "config.json"); err != nil {
			got = strings.ReplaceAll(err.Error(), root, "ROOT")
		}
		if got != filepath.FromSlash(c.want) {
			t.Errorf("%s: %q, want %q", c.dir, got, c.want)
		}
	}
	if err := Explain("", "config.json"); err == nil || err.Error() != "is an empty path, want the directory of a model" {
		t.Errorf("empty path: %v", err)
	}
}
