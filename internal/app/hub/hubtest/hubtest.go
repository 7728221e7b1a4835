// Package hubtest provides a hub for tests with one model: owner/tiny.
package hubtest

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Hub is a server whose responses tests can change.
type Hub struct {
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

// Commit is the commit of the model.
const Commit = "0123456789abcdef0123456789abcdef01234567"

// New starts a hub with these files. Files that end in .safetensors are listed with a SHA-256 hash.
func New(tb testing.TB, files map[string][]byte) *Hub {
	f := &Hub{Files: files}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	tb.Cleanup(f.Close)
	return f
}

func (f *Hub) serve(w http.ResponseWriter, r *http.Request) {
	at := r.URL.Path
	if v := r.Header.Get("Range"); v != "" {
		at += " " + v
	}
	f.mu.Lock()
	f.requests = append(f.requests, at)
	f.mu.Unlock()
	file, isFile := strings.CutPrefix(r.URL.Path, "/owner/tiny/resolve/"+Commit+"/")
	switch {
	case f.Answer != nil && f.Answer(w, r, file):
	case r.URL.Path == "/api/models/owner/tiny/revision/main":
		fmt.Fprintf(w, `{"sha": %q, "siblings": []}`, Commit)
	case r.URL.Path == "/api/models/owner/tiny/tree/"+Commit:
		entries := f.Entries()
		if f.List != nil {
			entries = f.List(entries)
		}
		n, _ := strconv.Atoi(r.URL.Query().Get("cursor")) // one entry per page
		if n+1 < len(entries) {
			w.Header().Set("Link", fmt.Sprintf(`<%s%s?recursive=1&cursor=%d>; rel="next"`, f.URL, r.URL.Path, n+1))
		}
		json.NewEncoder(w).Encode(entries[n : n+1])
	case isFile && f.Files[file] != nil:
		w.Header().Set("ETag", fmt.Sprintf(`"%x"`, sha1.Sum(f.Files[file])))
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(string(f.Files[file])))
	default:
		http.NotFound(w, r)
	}
}

// Entries returns the list of files in the hub's format.
func (f *Hub) Entries() []map[string]any {
	list := []map[string]any{{"type": "directory", "oid": Commit, "size": 0, "path": "1_Pooling"}}
	for path, data := range f.Files {
		blob := sha1.Sum([]byte(fmt.Sprintf("blob %d\x00%s", len(data), data)))
		e := map[string]any{"type": "file", "oid": hex.EncodeToString(blob[:]), "size": len(data), "path": path}
		if strings.HasSuffix(path, ".safetensors") {
			sum := sha256.Sum256(data)
			e["oid"] = Commit // the hash of an LFS pointer
			e["lfs"] = map[string]any{"oid": hex.EncodeToString(sum[:]), "size": len(data), "pointerSize": 133}
		}
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b map[string]any) int { return strings.Compare(a["path"].(string), b["path"].(string)) })
	return list
}

// Asked returns the requests for files of the model, in order.
func (f *Hub) Asked() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []string
	for _, r := range f.requests {
		if file, ok := strings.CutPrefix(r, "/owner/tiny/resolve/"+Commit+"/"); ok {
			list = append(list, file)
		}
	}
	return list
}
