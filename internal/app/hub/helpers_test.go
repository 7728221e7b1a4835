package hub

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// fake is a hub for tests with one model, owner/tiny. Tests can change its responses.
type fake struct {
	*httptest.Server
	Files map[string][]byte
	// List, if not nil, changes the list of files.
	List func([]map[string]any) []map[string]any
	// Answer, if not nil, may answer a request itself and then returns true. path is the path of a file of the model,
	// or another path.
	Answer func(w http.ResponseWriter, r *http.Request, path string) bool

	mu       sync.Mutex
	requests []string // path, and range if any
}

// commit is the commit of the model.
const commit = "0123456789abcdef0123456789abcdef01234567"

// newFake starts a hub. Files that end in .safetensors are listed with a SHA-256 hash.
func newFake(t *testing.T) *fake {
	f := &fake{Files: map[string][]byte{
		"config.json": []byte(`{"model_type": "tiny"}`), "model.safetensors": big, "pytorch_model.bin": []byte("pickle"), "README.md": []byte("text"),
	}}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	return f
}

func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	at := r.URL.Path
	if v := r.Header.Get("Range"); v != "" {
		at += " " + v
	}
	f.mu.Lock()
	f.requests = append(f.requests, at)
	f.mu.Unlock()
	file, isFile := strings.CutPrefix(r.URL.Path, "/owner/tiny/resolve/"+commit+"/")
	switch {
	case f.Answer != nil && f.Answer(w, r, file):
	case r.URL.Path == "/api/models/owner/tiny/revision/main" && r.URL.RawQuery == "blobs=true":
		entries := f.Entries()
		if f.List != nil {
			entries = f.List(entries)
		}
		json.NewEncoder(w).Encode(map[string]any{"id": "owner/tiny", "sha": commit, "siblings": entries})
	case isFile && f.Files[file] != nil:
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(string(f.Files[file])))
	default:
		http.NotFound(w, r)
	}
}

// Entries returns the list of files in the hub's format.
func (f *fake) Entries() []map[string]any {
	var list []map[string]any
	for path, data := range f.Files {
		blob := sha1.Sum([]byte(fmt.Sprintf("blob %d\x00%s", len(data), data)))
		e := map[string]any{"blobId": hex.EncodeToString(blob[:]), "size": len(data), "rfilename": path}
		if strings.HasSuffix(path, ".safetensors") {
			sum := sha256.Sum256(data)
			e["blobId"] = commit // the hash of an LFS pointer
			e["lfs"] = map[string]any{"sha256": hex.EncodeToString(sum[:]), "size": len(data), "pointerSize": 133}
		}
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b map[string]any) int {
		return strings.Compare(a["rfilename"].(string), b["rfilename"].(string))
	})
	return list
}

// Asked returns the requests for files of the model, in order.
func (f *fake) Asked() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []string
	for _, r := range f.requests {
		if file, ok := strings.CutPrefix(r, "/owner/tiny/resolve/"+commit+"/"); ok {
			list = append(list, file)
		}
	}
	return list
}

// big is larger than the buffers of a connection.
var big = []byte(strings.Repeat("0123456789abcdefghijklmnopqrstuvwxyz", 20_000))

// hub returns a Hub for the server that retries without waiting.
func (f *fake) hub(t *testing.T, token string) *Hub {
	t.Helper()
	h, err := New(f.URL, token, "attn", func(error, time.Duration) {})
	if err != nil {
		t.Fatal(err)
	}
	h.wait = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	return h
}

// unwatched ignores the progress.
var unwatched = Watch{Bytes: func(have, all int64) {}, Whole: func(File) {}}

// fetch downloads the model to a directory.
func (f *fake) fetch(t *testing.T, dir string) error {
	t.Helper()
	m, err := f.hub(t, "").Model(t.Context(), "owner/tiny", "main")
	if err != nil {
		return err
	}
	return m.Download(t.Context(), dir, unwatched)
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
