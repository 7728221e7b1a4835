package hub

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/attn-go/attn/internal/app/hub/hubtest"
)

// fake is a hub for tests.
type fake struct{ *hubtest.Hub }

// big is larger than the buffers of a connection.
var big = []byte(strings.Repeat("0123456789abcdefghijklmnopqrstuvwxyz", 20_000))

func newFake(t *testing.T) *fake {
	return &fake{hubtest.New(t, map[string][]byte{
		"config.json": []byte(`{"model_type": "tiny"}`), "model.safetensors": big, "pytorch_model.bin": []byte("pickle"), "README.md": []byte("text"),
	})}
}

// hub returns a Hub for the server that retries without waiting.
func (f *fake) hub(t *testing.T, token string) *Hub {
	t.Helper()
	h, err := New(f.URL, token, "attn")
	if err != nil {
		t.Fatal(err)
	}
	h.wait = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	return h
}

// fetch downloads the model to a directory.
func (f *fake) fetch(t *testing.T, dir string) error {
	t.Helper()
	m, err := f.hub(t, "").Model(t.Context(), "owner/tiny", "main")
	if err != nil {
		return err
	}
	return m.Download(t.Context(), dir, Watch{})
}

// want checks that a directory contains exactly these files of the model.
func (f *fake) want(t *testing.T, dir string, names ...string) {
	t.Helper()
	var got []string
	filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		name = filepath.ToSlash(name)
		got = append(got, name)
		if data, err := os.ReadFile(path); err != nil || !strings.HasSuffix(name, ".part") && string(data) != string(f.Files[name]) {
			t.Errorf("%s has other contents (%v)", name, err)
		}
		return nil
	})
	if slices.Sort(names); !slices.Equal(got, names) {
		t.Errorf("the directory has %q, want %q", got, names)
	}
}
