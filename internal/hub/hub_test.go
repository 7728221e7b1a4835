package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/attn-go/attn/internal/hub/hubtest"
)

func TestDownload(t *testing.T) {
	f, dir := newFake(t), filepath.Join(t.TempDir(), "new")
	m, err := f.hub(t, "").Model(t.Context(), "owner/tiny", "main")
	if err != nil {
		t.Fatal(err)
	}
	var have, all int64
	var whole []string
	w := Watch{Bytes: func(h, a int64) { have, all = h, a }, Whole: func(f File) { whole = append(whole, f.Path) }}
	if err := m.Download(t.Context(), dir, w); err != nil {
		t.Fatal(err)
	}
	f.want(t, dir, "config.json", "model.safetensors")
	if n := int64(len(big) + len(f.Files["config.json"])); have != n || all != n || m.Commit != hubtest.Commit {
		t.Errorf("%d of %d bytes of commit %s, want %d", have, all, m.Commit, n)
	}
	if got := strings.Join(whole, " "); got != "config.json model.safetensors" {
		t.Errorf("told of %s", got)
	}
	// What is there is not brought again.
	before := len(f.Asked())
	if err := m.Download(t.Context(), dir, w); err != nil || len(f.Asked()) != before || have != all {
		t.Errorf("a second time: %v, requests %q", err, f.Asked()[before:])
	}
}

// A model in several files, and modules of sentence-transformers in folders.
func TestChoose(t *testing.T) {
	f, dir := newFake(t), t.TempDir()
	f.Files = map[string][]byte{
		"config.json": []byte("{}"), "tokenizer.json": []byte("{}"), "model.safetensors.index.json": []byte(`{"weight_map": {"a": "m-1.safetensors", "b": "m-2.safetensors", "c": "m-1.safetensors"}}`),
		"m-1.safetensors": big, "m-2.safetensors": big[:7], "m-3.safetensors": big[:5], "onnx/model.onnx": big,
		"modules.json":          []byte(`[{"path": ""}, {"path": "1_Pooling"}, {"path": "2_Dense"}]`),
		"1_Pooling/config.json": []byte("{}"), "2_Dense/config.json": []byte("{}"), "2_Dense/model.safetensors": big[:11], "2_Dense/pytorch_model.bin": big,
	}
	if err := f.fetch(t, dir); err != nil {
		t.Fatal(err)
	}
	f.want(t, dir, "config.json", "tokenizer.json", "model.safetensors.index.json", "m-1.safetensors", "m-2.safetensors",
		"modules.json", "1_Pooling/config.json", "2_Dense/config.json", "2_Dense/model.safetensors")
}

// cutting is an answer that ends the connection after some bytes of the weights, so many
// times.
func cutting(f *fake, times, bytes int) func(http.ResponseWriter, *http.Request, string) bool {
	return func(w http.ResponseWriter, r *http.Request, path string) bool {
		if path != "model.safetensors" || times == 0 {
			return false
		}
		times--
		from := 0
		fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from)
		w.Header().Set("ETag", `"one"`)
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

// A connection that breaks is taken up where it broke, in one run and in the next.
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
	sum := f.Entries()[3]["lfs"].(map[string]any)["oid"].(string)
	f.want(t, dir, "config.json."+f.Entries()[2]["oid"].(string)[:16]+".part", "model.safetensors."+sum[:16]+".part")
	before := len(f.Asked())
	if err := f.fetch(t, dir); err != nil {
		t.Fatal(err)
	}
	f.want(t, dir, "config.json", "model.safetensors")
	if got := fmt.Sprint(f.Asked()[before:]); got != fmt.Sprintf("[model.safetensors bytes=%d-]", attempts*70_000) {
		t.Errorf("requests %s", got)
	}
}

// A user who interrupts keeps what has come.
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
	err = m.Download(ctx, dir, Watch{Bytes: func(have, _ int64) {
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

// A part of what the file was at another commit is not continued, and does not stay; one
// that is too long or broken is begun anew.
func TestOldParts(t *testing.T) {
	f := newFake(t)
	sum := f.Entries()[3]["lfs"].(map[string]any)["oid"].(string)
	for name, part := range map[string]string{
		"another commit": "model.safetensors.fedcba9876543210.part",
		"too long":       "model.safetensors." + sum[:16] + ".part",
		"broken":         "model.safetensors." + sum[:16] + ".part",
	} {
		dir := t.TempDir()
		data := []byte("other bytes than those of the file")
		if name == "too long" {
			data = append(big, "more"...)
		}
		if err := os.WriteFile(filepath.Join(dir, part), data, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := f.fetch(t, dir); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		f.want(t, dir, "config.json", "model.safetensors")
	}
}

// A file that changes between two answers, at a server that does not care for commits: what
// it has become is not joined to what it was, with If-Range or, failing that, by the hash.
func TestFileChanges(t *testing.T) {
	for _, ifRange := range []bool{true, false} {
		f, dir := newFake(t), t.TempDir()
		old := []byte(strings.ToUpper(string(big)))
		f.Answer = func(w http.ResponseWriter, r *http.Request, path string) bool {
			if !ifRange {
				r.Header.Del("If-Range")
			}
			if path != "model.safetensors" || r.Header.Get("Range") != "" || len(f.Asked()) > 2 {
				return false
			}
			w.Header().Set("ETag", `"old"`)
			w.Header().Set("Content-Length", fmt.Sprint(len(big)))
			w.Write(old[:500_000])
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
		if err := f.fetch(t, dir); err != nil {
			t.Fatalf("If-Range %v: %v", ifRange, err)
		}
		f.want(t, dir, "config.json", "model.safetensors")
	}
}

// A server without ranges sends all of a file again.
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

// What a server may not do, and what is said of it.
func TestRefuses(t *testing.T) {
	file := func(change func(e map[string]any)) func(*fake) {
		return func(f *fake) {
			f.List = func(list []map[string]any) []map[string]any {
				change(list[3])
				return list
			}
		}
	}
	status := func(code int, header ...string) func(*fake) {
		return func(f *fake) {
			f.Answer = func(w http.ResponseWriter, r *http.Request, _ string) bool {
				for i := 0; i < len(header); i += 2 {
					w.Header().Set(header[i], header[i+1])
				}
				w.WriteHeader(code)
				return true
			}
		}
	}
	for name, c := range map[string]struct {
		spoil func(*fake)
		want  string
		not   bool // a *ModelError
	}{
		"wrong hash": {spoil: file(func(e map[string]any) { e["lfs"].(map[string]any)["oid"] = strings.Repeat("ab", 32) }),
			want: "model.safetensors came with SHA-256 "},
		"wrong blob": {spoil: func(f *fake) {
			f.List = func(list []map[string]any) []map[string]any { list[2]["oid"] = strings.Repeat("cd", 20); return list }
		}, want: "config.json came with git's hash "},
		"longer":         {spoil: file(func(e map[string]any) { e["lfs"].(map[string]any)["size"] = 10 }), want: "model.safetensors has 720000 bytes at the server, and 10 are listed"},
		"shorter":        {spoil: file(func(e map[string]any) { e["lfs"].(map[string]any)["size"] = 1 << 21 }), want: "model.safetensors has 720000 bytes at the server, and 2097152 are listed"},
		"negative":       {spoil: file(func(e map[string]any) { e["lfs"].(map[string]any)["size"] = -1 }), want: `lists the file "model.safetensors" with -1 bytes`},
		"more than disk": {spoil: file(func(e map[string]any) { e["lfs"].(map[string]any)["size"] = int64(1) << 60 }), want: "GB are needed and ", not: true},
		"no hash":        {spoil: file(func(e map[string]any) { e["lfs"].(map[string]any)["oid"] = "abc" }), want: `lists the file "model.safetensors" without a hash`},
		"above":          {spoil: file(func(e map[string]any) { e["path"] = "../model.safetensors" }), want: `lists the file "../model.safetensors", want paths within the directory`},
		"inside":         {spoil: file(func(e map[string]any) { e["path"] = "a/../../model.safetensors" }), want: `want paths within the directory`},
		"absolute":       {spoil: file(func(e map[string]any) { e["path"] = "/etc/model.safetensors" }), want: `want paths within the directory`},
		"backslash":      {spoil: file(func(e map[string]any) { e["path"] = `..\model.safetensors` }), want: `want paths within the directory`},
		"drive":          {spoil: file(func(e map[string]any) { e["path"] = `c:model.safetensors` }), want: `want paths within the directory`},
		"twice":          {spoil: file(func(e map[string]any) { e["path"] = "config.json" }), want: `file "config.json" is listed twice`},
		"kind":           {spoil: file(func(e map[string]any) { e["type"] = "symlink" }), want: `is a "symlink", want files and directories`},
		"pickle":         {spoil: func(f *fake) { delete(f.Files, "model.safetensors") }, want: "has its weights in pytorch_model.bin and not in model.safetensors"},
		"no weights": {spoil: func(f *fake) { delete(f.Files, "model.safetensors"); delete(f.Files, "pytorch_model.bin") },
			want: "has no model.safetensors and no model.safetensors.index.json"},
		"no config": {spoil: func(f *fake) { delete(f.Files, "config.json") }, want: "has no config.json, want a model in the form of transformers"},
		"missing shard": {spoil: func(f *fake) {
			delete(f.Files, "model.safetensors")
			f.Files["model.safetensors.index.json"] = []byte(`{"weight_map": {"a": "m-1.safetensors"}}`)
		}, want: `model.safetensors.index.json names the file "m-1.safetensors", which the model does not have`},
		"shard above": {spoil: func(f *fake) {
			delete(f.Files, "model.safetensors")
			f.Files["model.safetensors.index.json"] = []byte(`{"weight_map": {"a": "../config.json"}}`)
		}, want: `names the file "../config.json"`},
		"module above": {spoil: func(f *fake) { f.Files["modules.json"] = []byte(`[{"path": "../x"}]`) }, want: `modules.json names the folder "../x", want one within the directory`},
		"modules":      {spoil: func(f *fake) { f.Files["modules.json"] = []byte(`{}`) }, want: `modules.json: json: cannot unmarshal`},
		"404":          {spoil: status(404), want: "answers 404 Not Found: there is no such model or revision"},
		"no revision":  {spoil: status(404, "X-Error-Code", "RevisionNotFound"), want: "owner/tiny: has no such revision"},
		"401":          {spoil: status(401), want: "answers 401 Unauthorized: there is no such model, or it wants a token in HF_TOKEN"},
		"403":          {spoil: status(403), want: "answers 403 Forbidden: the token in HF_TOKEN, if there is one, does not open it"},
		"gated":        {spoil: status(401, "X-Error-Code", "GatedRepo"), want: "is open to those who have accepted its conditions on its page"},
		"418":          {spoil: status(418), want: "answers 418 I'm a teapot", not: true},
		"503":          {spoil: status(503), want: "answers 503 Service Unavailable; tried 6 times", not: true},
		"later":        {spoil: status(429, "Retry-After", "3600"), want: "answers 429 Too Many Requests; the server wants to be asked again in 1h0m0s", not: true},
		"no commit":    {spoil: status(200), want: `the hub does not say which commit "main" is: "", want one of 40 digits`},
		"foreign page": {spoil: func(f *fake) {
			f.Answer = func(w http.ResponseWriter, r *http.Request, _ string) bool {
				w.Header().Set("Link", `<http://example.com/next>; rel="next"`)
				return false
			}
			f.List = func(list []map[string]any) []map[string]any { return list[:1] }
		}, want: `the list of its files goes on at "http://example.com/next", want a URL at `},
	} {
		f, dir := newFake(t), t.TempDir()
		c.spoil(f)
		err := f.fetch(t, dir)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want … %s", name, err, c.want)
			continue
		}
		if errors.As(err, new(*ModelError)) == c.not {
			t.Errorf("%s: %v is a *ModelError: %v", name, err, !c.not)
		}
		if _, err := os.Stat(filepath.Join(dir, "model.safetensors")); err == nil {
			t.Errorf("%s: the file has its name", name)
		}
	}
}

// Bytes that lie about themselves on the way: none of them reach the name.
func TestLyingAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		lie  func(w http.ResponseWriter, r *http.Request)
		want string
	}{
		"more than listed": {func(w http.ResponseWriter, r *http.Request) { w.(http.Flusher).Flush(); w.Write(append(big, '!')) }, "has more than the 720000 bytes that are listed"},
		"less than listed": {func(w http.ResponseWriter, r *http.Request) { w.(http.Flusher).Flush(); w.Write(big[:10]) }, "after 10 of 720000 bytes"},
		"other range": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Range", "bytes 5-14/720000")
			w.WriteHeader(http.StatusPartialContent)
		}, `the server sends the bytes "bytes 5-14/720000", want those from 0 on of 720000`},
		"no range": {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusPartialContent) }, `the server sends the bytes "", want those`},
	} {
		f, dir := newFake(t), t.TempDir()
		f.Answer = func(w http.ResponseWriter, r *http.Request, path string) bool {
			if path != "model.safetensors" || r.Header.Get("Range") != "" {
				return false
			}
			c.lie(w, r)
			return true
		}
		if name == "less than listed" { // again and again
			lie := f.Answer
			f.Answer = func(w http.ResponseWriter, r *http.Request, path string) bool {
				r.Header.Del("Range")
				return lie(w, r, path)
			}
		}
		if err := f.fetch(t, dir); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want … %s", name, err, c.want)
		}
		if _, err := os.Stat(filepath.Join(dir, "model.safetensors")); err == nil {
			t.Errorf("%s: the file has its name", name)
		}
	}
}

// A directory with something else is left as it is.
func TestStrangers(t *testing.T) {
	for name, want := range map[string]string{
		"config.json":                  "config.json is there with other contents than at commit 0123456789ab of owner/tiny",
		"generation_config.json":       "generation_config.json is there, and is not of owner/tiny",
		"model.safetensors.index.json": "model.safetensors.index.json is there, and is not of owner/tiny",
	} {
		f, dir := newFake(t), t.TempDir()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(`{"model_type": "mine"}`), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := f.fetch(t, dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want … %s", name, err, want)
		}
		if entries, _ := os.ReadDir(dir); len(entries) != 1 {
			t.Errorf("%s: %d files in the directory", name, len(entries))
		}
	}
	// A link out of the directory is not followed.
	f, dir, out := newFake(t), t.TempDir(), t.TempDir()
	f.Files["modules.json"], f.Files["1_Pooling/config.json"] = []byte(`[{"path": "1_Pooling"}]`), []byte("{}")
	if err := os.Symlink(out, filepath.Join(dir, "1_Pooling")); err != nil {
		t.Logf("no links on this system: %v", err)
		return
	}
	if err := f.fetch(t, dir); err == nil {
		t.Error("a link out of the directory is followed")
	}
	if entries, _ := os.ReadDir(out); len(entries) != 0 {
		t.Errorf("%d files behind the link", len(entries))
	}
}

// Failures that pass are waited for, as long as the server says.
func TestRetries(t *testing.T) {
	f, failed := newFake(t), 0
	f.Answer = func(w http.ResponseWriter, r *http.Request, path string) bool {
		if failed++; failed > 4 {
			return false
		}
		if failed == 3 {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusTooManyRequests)
			return true
		}
		w.WriteHeader(http.StatusBadGateway)
		return true
	}
	h := f.hub(t, "")
	var waited []time.Duration
	var told int
	h.wait = func(_ context.Context, d time.Duration) error { waited = append(waited, d); return nil }
	h.Retry = func(error, time.Duration) { told++ }
	if _, err := h.Model(t.Context(), "owner/tiny", "main"); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(waited); got != "[1s 2s 7s 8s]" || told != 4 {
		t.Errorf("waited %s and told %d times", got, told)
	}
}

// A server that says nothing more is given up.
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
	h.Retry = func(err error, _ time.Duration) { why = err }
	m, err := h.Model(t.Context(), "owner/tiny", "main")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Download(t.Context(), t.TempDir(), Watch{}); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(why, errSilent) {
		t.Errorf("tried again after %v, want silence", why)
	}
}

// The token goes to the endpoint, and not where that sends people on to.
func TestToken(t *testing.T) {
	var elsewhere []string
	f := newFake(t)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		elsewhere = append(elsewhere, r.Header.Get("Authorization"))
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(string(big)))
	}))
	defer other.Close()
	var here []string
	f.Answer = func(w http.ResponseWriter, r *http.Request, path string) bool {
		here = append(here, r.Header.Get("Authorization"))
		if path == "model.safetensors" {
			http.Redirect(w, r, other.URL+"/blob", http.StatusFound)
			return true
		}
		return false
	}
	m, err := f.hub(t, "hf_secret\n").Model(t.Context(), "owner/tiny", "main")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Download(t.Context(), t.TempDir(), Watch{}); err != nil {
		t.Fatal(err)
	}
	for _, got := range here {
		if got != "Bearer hf_secret" {
			t.Errorf("the hub got the token %q", got)
		}
	}
	if len(elsewhere) != 1 || elsewhere[0] != "" {
		t.Errorf("another host got the token: %q", elsewhere)
	}
}

func TestNew(t *testing.T) {
	for _, c := range []struct{ endpoint, token, want string }{
		{"https://hub.example", "secret", ""},
		{"https://hub.example/mirror/", "", ""},
		{"http://127.0.0.1:8000", "secret", ""},
		{"http://localhost:8000", "secret", ""},
		{"http://hub.example", "", ""},
		{"http://hub.example", "secret", "the token would go to hub.example unencrypted"},
		{"https://hub.example", "sec ret", "the token has a character that no token has"},
		{"hub.example", "", `endpoint "hub.example", want a URL`},
		{"file:///etc", "", "want a URL"},
		{"https://hub.example?x=1", "", "want a URL"},
		{"https://me@hub.example", "", "want a URL"},
	} {
		_, err := New(c.endpoint, c.token, "attn")
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, token %q: error %v, want %q", c.endpoint, c.token, err, c.want)
		}
	}
	from, _ := http.NewRequest("GET", "https://hub.example/a", nil)
	to, _ := http.NewRequest("GET", "http://hub.example/a", nil)
	if checkRedirect(to, []*http.Request{from}) == nil || checkRedirect(from, []*http.Request{to}) != nil {
		t.Error("a redirect may leave https")
	}
}

func TestCheckName(t *testing.T) {
	for name, ok := range map[string]bool{
		"gpt2": true, "sentence-transformers/all-MiniLM-L6-v2": true, "a/b.c_d-e": true,
		"": false, "a/b/c": false, "../a": false, "a/..": false, "a..b": false, "-a": false, "a/": false, "/a": false, "a b": false, "a?b": false, "a.git": false,
	} {
		if err := CheckName(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}
