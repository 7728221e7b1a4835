package main

import (
	"crypto/sha1"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// hub DIR starts a test server at $HF_ENDPOINT that serves the directory as owner/tiny. The first download of
// model.safetensors stops half-way.
func startHub(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: hub DIR")
	}
	const commit = "0123456789abcdef0123456789abcdef01234567"
	dir := os.DirFS(ts.MkAbs(args[0]))
	var list []map[string]any
	ts.Check(fs.WalkDir(dir, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := fs.ReadFile(dir, name)
		blob := sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(data), data))
		list = append(list, map[string]any{"rfilename": name, "size": len(data), "blobId": fmt.Sprintf("%x", blob)})
		return err
	}))
	var came atomic.Int32
	mux := http.NewServeMux()
	mux.HandleFunc("/api/models/owner/tiny/revision/main", func(w http.ResponseWriter, _ *http.Request) {
		came.Add(1)
		json.NewEncoder(w).Encode(map[string]any{"sha": commit, "siblings": list})
	})
	const at = "/owner/tiny/resolve/" + commit + "/"
	files := http.StripPrefix(at, http.FileServerFS(dir))
	mux.HandleFunc(at, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != at+"model.safetensors" || came.Load() > 1 {
			files.ServeHTTP(w, r)
			return
		}
		data, err := fs.ReadFile(dir, "model.safetensors")
		if err != nil {
			panic(err)
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		w.Write(data[:len(data)/2])
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
		case <-time.After(time.Minute):
		}
	})
	server := httptest.NewServer(mux)
	ts.Defer(server.Close)
	ts.Setenv("HF_ENDPOINT", server.URL)
}
