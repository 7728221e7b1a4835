package hub

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attn-go/attn/internal/input"
)

// Invalid responses and the resulting errors.
func TestRefuses(t *testing.T) {
	file := func(change func(e map[string]any)) func(*fake) {
		return func(f *fake) {
			f.List = func(list []map[string]any) []map[string]any {
				change(list[2])
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
		not   bool // whether the error is not an *input.Error
	}{
		"wrong hash": {spoil: file(func(e map[string]any) { e["lfs"].(map[string]any)["sha256"] = strings.Repeat("ab", 32) }),
			want: "model.safetensors has SHA-256 "},
		"wrong blob": {spoil: func(f *fake) {
			f.List = func(list []map[string]any) []map[string]any {
				list[1]["blobId"] = strings.Repeat("cd", 20)
				return list
			}
		}, want: "config.json has git's hash "},
		"longer":         {spoil: file(func(e map[string]any) { e["lfs"].(map[string]any)["size"] = 10 }), want: "model.safetensors has 720000 bytes on the server, want 10, as listed"},
		"shorter":        {spoil: file(func(e map[string]any) { e["lfs"].(map[string]any)["size"] = 1 << 21 }), want: "model.safetensors has 720000 bytes on the server, want 2097152, as listed"},
		"negative":       {spoil: file(func(e map[string]any) { e["lfs"].(map[string]any)["size"] = -1 }), want: `lists the file "model.safetensors" with -1 bytes`},
		"more than disk": {spoil: file(func(e map[string]any) { e["lfs"].(map[string]any)["size"] = int64(1) << 45 }), want: "GB are needed and ", not: true},
		"sizes that run over": {spoil: file(func(e map[string]any) { e["lfs"].(map[string]any)["size"] = int64(1)<<45 + 1 }),
			want: `lists the file "model.safetensors" with 35184372088833 bytes, want 0 to 35184372088832`},
		"terminal":  {spoil: file(func(e map[string]any) { e["rfilename"] = "\x1b]0;x\a.safetensors" }), want: `want paths within the directory`},
		"no hash":   {spoil: file(func(e map[string]any) { e["lfs"].(map[string]any)["sha256"] = "abc" }), want: `lists the file "model.safetensors" without a hash`},
		"above":     {spoil: file(func(e map[string]any) { e["rfilename"] = "../model.safetensors" }), want: `lists the file "../model.safetensors", want paths within the directory`},
		"inside":    {spoil: file(func(e map[string]any) { e["rfilename"] = "a/../../model.safetensors" }), want: `want paths within the directory`},
		"absolute":  {spoil: file(func(e map[string]any) { e["rfilename"] = "/etc/model.safetensors" }), want: `want paths within the directory`},
		"backslash": {spoil: file(func(e map[string]any) { e["rfilename"] = `..\model.safetensors` }), want: `want paths within the directory`},
		"drive":     {spoil: file(func(e map[string]any) { e["rfilename"] = `c:model.safetensors` }), want: `want paths within the directory`},
		"twice":     {spoil: file(func(e map[string]any) { e["rfilename"] = "config.json" }), want: `file "config.json" is listed twice`},
		"TensorFlow": {spoil: func(f *fake) {
			delete(f.Files, "model.safetensors")
			delete(f.Files, "pytorch_model.bin")
			f.Files["tf_model.h5"] = big
		}, want: "has its weights in tf_model.h5, which attn does not read, and not in model.safetensors"},
		"no weights": {spoil: func(f *fake) { delete(f.Files, "model.safetensors"); delete(f.Files, "pytorch_model.bin") },
			want: "has no model.safetensors, model.safetensors.index.json or pytorch_model.bin"},
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
		"route above": {spoil: func(f *fake) {
			f.Files["modules.json"], f.Files["router_config.json"] = []byte(`[{"path": ""}]`), []byte(`{"types": {"../x": "X"}}`)
		}, want: `router_config.json names the folder "../x", want one within the directory`},
		"modules":     {spoil: func(f *fake) { f.Files["modules.json"] = []byte(`{}`) }, want: `modules.json: has an object where an array is wanted`},
		"404":         {spoil: status(404), want: "answers 404 Not Found: there is no such model or revision"},
		"no revision": {spoil: status(404, "X-Error-Code", "RevisionNotFound"), want: "owner/tiny: has no such revision"},
		"401":         {spoil: status(401), want: "answers 401 Unauthorized: there is no such model, or it needs a token in HF_TOKEN"},
		"403":         {spoil: status(403), want: "answers 403 Forbidden: want a token in HF_TOKEN that gives access to it"},
		"gated":       {spoil: status(401, "X-Error-Code", "GatedRepo"), want: "is gated: accept its conditions on its page"},
		"418":         {spoil: status(418), want: "answers 418 I'm a teapot", not: true},
		"503":         {spoil: status(503), want: "answers 503 Service Unavailable; tried 6 times", not: true},
		"later":       {spoil: status(429, "Retry-After", "3600"), want: "answers 429 Too Many Requests; the server asks for a pause of 1h0m0s", not: true},
		"no list":     {spoil: status(200), want: "the list of its files: "},
		"no commit": {spoil: func(f *fake) {
			f.Answer = func(w http.ResponseWriter, _ *http.Request, _ string) bool {
				w.Write([]byte(`{"siblings": []}`))
				return true
			}
		}, want: `revision "main" has the commit "", want 40 hexadecimal digits`},
		"no hashes": {spoil: file(func(e map[string]any) { delete(e, "blobId"); delete(e, "lfs") }), want: `lists the file "model.safetensors" without a hash`},
		"many files": {spoil: func(f *fake) {
			f.List = func([]map[string]any) []map[string]any { return make([]map[string]any, mostFiles+1) }
		}, want: "has 100001 files, want at most 100000"},
		"long list": {spoil: func(f *fake) {
			f.Answer = func(w http.ResponseWriter, r *http.Request, _ string) bool {
				w.Write([]byte(strings.Repeat(" ", mostList) + "{}"))
				return true
			}
		}, want: fmt.Sprintf("blobs=true is longer than %d bytes", mostList)},
		"words of the server": {spoil: func(f *fake) {
			f.Answer = func(w http.ResponseWriter, r *http.Request, _ string) bool {
				c, b, err := w.(http.Hijacker).Hijack()
				if err == nil {
					b.WriteString("HTTP/1.1 404 \x1b[31mred\r\nContent-Length: 0\r\n\r\n")
					b.Flush()
					c.Close()
				}
				return true
			}
		}, want: "answers 404 Not Found: there is no such model or revision"},
	} {
		f, dir := newFake(t), t.TempDir()
		c.spoil(f)
		err := f.fetch(t, dir)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.ContainsAny(err.Error(), "\n\x1b") {
			t.Errorf("%s: error %v, want … %s", name, err, c.want)
			continue
		}
		if errors.As(err, new(*input.Error)) == c.not {
			t.Errorf("%s: %v is an *input.Error: %v", name, err, !c.not)
		}
		if _, err := os.Stat(filepath.Join(dir, "model.safetensors")); err == nil {
			t.Errorf("%s: the file has its name", name)
		}
	}
}

// No file with wrong bytes gets its final name.
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
		}, `the server sends the bytes "bytes 5-14/720000", want the bytes from 0 of 720000`},
		"other size": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Range", "bytes 0-719999/720001")
			w.WriteHeader(http.StatusPartialContent)
		}, `the server sends the bytes "bytes 0-719999/720001", want the bytes from 0 of 720000`},
		"no range": {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusPartialContent) }, `the server sends the bytes "", want the bytes`},
	} {
		f, dir := newFake(t), t.TempDir()
		f.Answer = func(w http.ResponseWriter, r *http.Request, path string) bool {
			if path != "model.safetensors" || r.Header.Get("Range") != "" {
				return false
			}
			c.lie(w, r)
			return true
		}
		if name == "less than listed" { // each time
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

// The index, from which other files are chosen, is checked too.
func TestLyingIndex(t *testing.T) {
	f := newFake(t)
	delete(f.Files, "model.safetensors")
	const index = "model.safetensors.index.json"
	f.Files[index] = []byte(`{"weight_map": {"a": "m-1.safetensors"}}`)
	f.Files["m-1.safetensors"], f.Files["m-2.safetensors"] = big, big[:7]
	f.Answer = func(w http.ResponseWriter, r *http.Request, path string) bool {
		if path != index {
			return false
		}
		w.Write([]byte(`{"weight_map": {"a": "m-2.safetensors"}}`))
		return true
	}
	_, err := f.hub(t, "").Model(t.Context(), "owner/tiny", "main")
	if want := index + " has git's hash "; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want … %s", err, want)
	}
}

// Every digit of a hash is compared.
func TestSum(t *testing.T) {
	for _, right := range []File{
		{Path: "a", Size: 3, SHA256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
		{Path: "a", Size: 3, Blob: "f2ba8f84ab5c1bce84a7b441cb1959cfc7093b7f"}, // from git hash-object
	} {
		for i := range 40 {
			f := right
			turn := func(s string) string {
				if s == "" || i == 0 {
					return s
				}
				return s[:i] + string("0123456789abcdef"[(strings.IndexByte("0123456789abcdef", s[i])+1)%16]) + s[i+1:]
			}
			f.SHA256, f.Blob = turn(f.SHA256), turn(f.Blob)
			s := newSum(f)
			s.Write([]byte("abc"))
			if err := s.check(); (err == nil) != (i == 0) {
				t.Errorf("%+v: error %v", f, err)
			}
		}
	}
}
