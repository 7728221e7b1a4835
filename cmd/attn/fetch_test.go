package main

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/attn-go/attn/internal/app/hub/hubtest"
)

// hub DIR starts a test server at $HF_ENDPOINT that serves the directory as owner/tiny. The first download of
// model.safetensors stops half-way.
func startHub(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: hub DIR")
	}
	files := map[string][]byte{}
	dir := os.DirFS(ts.MkAbs(args[0]))
	ts.Check(fs.WalkDir(dir, ".", func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			files[path], err = fs.ReadFile(dir, path)
		}
		return err
	}))
	h := hubtest.New(deferrer{ts: ts}, files)
	var came atomic.Int32
	h.Answer = func(w http.ResponseWriter, r *http.Request, path string) bool {
		if strings.Contains(r.URL.Path, "/revision/") {
			came.Add(1)
		}
		if path != "model.safetensors" || came.Load() > 1 {
			return false
		}
		data := files[path]
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		w.Write(data[:len(data)/2])
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
		case <-time.After(time.Minute):
		}
		return true
	}
	ts.Setenv("HF_ENDPOINT", h.URL)
}

// deferrer implements, for a script, the methods of testing.T that the test server calls.
type deferrer struct {
	testing.TB
	ts *testscript.TestScript
}

// Cleanup calls f at the end of the script.
func (d deferrer) Cleanup(f func()) { d.ts.Defer(f) }
