package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// cutting is an answer that ends the connection after some bytes of the weights, the given number of times.
func cutting(f *fake, times, bytes int) func(http.ResponseWriter, *http.Request, string) bool {
	return func(w http.ResponseWriter, r *http.Request, path string) bool {
		if path != "model.safetensors" || times == 0 {
			return false
		}
		times--
		from := 0
		fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from)
		w.Header().Set("Content-Length", fmt.Sprint(len(big)-from))
		if from > 0 {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(big)-1, len(big)))
			w.WriteHeader(http.StatusPartialContent)
		}
		w.Write(f.Files[path][from:min(from+bytes, len(big))])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

// A broken connection is resumed where it broke, in the same run and in the next.
func TestResume(t *testing.T) {
	f, dir := newFake(t), t.TempDir()
	f.Answer = cutting(f, 2, 100_000)
	if err := f.fetch(t, dir); err != nil {
		t.Fatal(err)
	}
	f.want(t, dir, "config.json", "model.safetensors")
	want := []string{"config.json", "model.safetensors", "model.safetensors bytes=100000-", "model.safetensors bytes=200000-"}
	if got := f.Asked(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("requests %q, want %q", got, want)
	}

	f, dir = newFake(t), t.TempDir()
	f.Answer = cutting(f, attempts, 70_000)
	err := f.fetch(t, dir)
	if want := fmt.Sprintf("the connection ended after %d of %d bytes of model.safetensors: unexpected EOF; tried 6 times", attempts*70_000, len(big)); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Fatalf("error %v, want … %s", err, want)
	}
	sum := f.Entries()[2]["lfs"].(map[string]any)["sha256"].(string)
	f.want(t, dir, "config.json."+f.Entries()[1]["blobId"].(string)[:16]+".part", "model.safetensors."+sum[:16]+".part")
	before := len(f.Asked())
	if err := f.fetch(t, dir); err != nil {
		t.Fatal(err)
	}
	f.want(t, dir, "config.json", "model.safetensors")
	if got := fmt.Sprint(f.Asked()[before:]); got != fmt.Sprintf("[model.safetensors bytes=%d-]", attempts*70_000) {
		t.Errorf("requests %s", got)
	}
}

// An error in one file keeps the partial files of the others.
func TestResumeAfterOtherFile(t *testing.T) {
	f, dir := newFake(t), t.TempDir()
	sum := f.Entries()[2]["lfs"].(map[string]any)["sha256"].(string)
	if err := os.WriteFile(filepath.Join(dir, "model.safetensors."+sum[:16]+".part"), big[:50_000], 0o644); err != nil {
		t.Fatal(err)
	}
	f.Answer = func(w http.ResponseWriter, _ *http.Request, path string) bool {
		if path == "config.json" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return path == "config.json"
	}
	if err := f.fetch(t, dir); err == nil {
		t.Fatal("no error")
	}
	before := len(f.Asked())
	f.Answer = nil
	if err := f.fetch(t, dir); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(f.Asked()[before:]); got != "[config.json model.safetensors bytes=50000-]" {
		t.Errorf("requests %s", got)
	}
}

// An attempt with progress resets the number of attempts.
func TestPersistently(t *testing.T) {
	h := newFake(t).hub(t, "")
	for _, advanced := range []bool{true, false} {
		var waited []time.Duration
		h.wait = func(_ context.Context, d time.Duration) error { waited = append(waited, d); return nil }
		calls := 0
		err := h.persistently(t.Context(), func() (bool, error) {
			if calls++; calls > 3*attempts {
				return true, nil
			}
			return advanced, temporary{error: errors.New("broken")}
		})
		if advanced {
			if want := slices.Repeat([]time.Duration{time.Second}, 3*attempts); err != nil || !slices.Equal(waited, want) {
				t.Errorf("got somewhere each time: error %v, waited %v, want %v", err, waited, want)
			}
		} else if err == nil || err.Error() != "broken; tried 6 times" || calls != attempts || len(waited) != attempts-1 {
			t.Errorf("got nowhere: error %v after %d calls", err, calls)
		}
	}
}

// An interrupted download keeps its data.
func TestInterrupted(t *testing.T) {
	f, dir := newFake(t), t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	f.Answer = func(w http.ResponseWriter, r *http.Request, path string) bool {
		if path == "model.safetensors" && r.Header.Get("Range") == "" {
			w.Header().Set("Content-Length", fmt.Sprint(len(big)))
			w.Write(big[:300_000])
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return true
		}
		return false
	}
	m, err := f.hub(t, "").Model(ctx, "owner/tiny", "main")
	if err != nil {
		t.Fatal(err)
	}
	err = m.Download(ctx, dir, Watch{Whole: func(File) {}, Bytes: func(have, _ int64) {
		if have > 300_000 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	if err := f.fetch(t, dir); err != nil {
		t.Fatal(err)
	}
	f.want(t, dir, "config.json", "model.safetensors")
	if got := f.Asked(); got[len(got)-1] != "model.safetensors bytes=300000-" {
		t.Errorf("requests %q", got)
	}
}

// A file changes between two responses, on a server that ignores commits. The hash prevents that the parts of different
// files are joined.
func TestFileChanges(t *testing.T) {
	f, dir := newFake(t), t.TempDir()
	old := []byte(strings.ToUpper(string(big)))
	f.Answer = func(w http.ResponseWriter, r *http.Request, path string) bool {
		if path != "model.safetensors" || r.Header.Get("Range") != "" || len(f.Asked()) > 2 {
			return false
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(big)))
		w.Write(old[:500_000])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	if err := f.fetch(t, dir); err != nil {
		t.Fatal(err)
	}
	f.want(t, dir, "config.json", "model.safetensors")
}

// A server without ranges sends the whole file again.
func TestNoRanges(t *testing.T) {
	f, dir := newFake(t), t.TempDir()
	cut := cutting(f, 1, 80_000)
	f.Answer = func(w http.ResponseWriter, r *http.Request, path string) bool {
		r.Header.Del("Range")
		return cut(w, r, path)
	}
	if err := f.fetch(t, dir); err != nil {
		t.Fatal(err)
	}
	f.want(t, dir, "config.json", "model.safetensors")
}

// The client gives up on a server that stops sending.
func TestSilence(t *testing.T) {
	f, silent := newFake(t), true
	f.Answer = func(w http.ResponseWriter, r *http.Request, path string) bool {
		if path != "model.safetensors" || !silent {
			return false
		}
		silent = false
		w.Header().Set("Content-Length", fmt.Sprint(len(big)))
		w.Write(big[:50_000])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return true
	}
	h := f.hub(t, "")
	h.patience = 50 * time.Millisecond
	var why error
	h.retry = func(err error, _ time.Duration) { why = err }
	m, err := h.Model(t.Context(), "owner/tiny", "main")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Download(t.Context(), t.TempDir(), unwatched); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(why, errSilent) {
		t.Errorf("tried again after %v, want silence", why)
	}
}
