package view

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attn-go/attn/heads"
)

// A record in a file gives the same answers as in memory, although its weights are
// never all in memory. Errors in the weights are reported layer by layer.
func TestFilesAnswerAsRecords(t *testing.T) {
	r := sample()
	r.Layers[0].Weights[0] = 5
	path := filepath.Join(t.TempDir(), "r.safetensors")
	if err := r.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	var opened Options
	if err := opened.Open(path); err != nil {
		t.Fatal(err)
	}
	f := opened.Files[0]
	defer f.Close()
	inMemory, inFile := New(Options{Records: []*heads.Record{r}}), New(opened)
	for _, query := range []string{"thumbs?record=r0&layer=0", "head?record=r0&layer=0&head=1", "head?record=r0&layer=0&head=0&words=1&special=renorm",
		"head?record=r0&layer=0&head=0&exact=1&rows=1-2", "measures?record=r0&layer=0", "measures?record=r0&layer=0&words=1", "check?record=r0&layer=0"} {
		want, got := ask(inMemory, "GET", "/api/"+query, "", nil), ask(inFile, "GET", "/api/"+query, "", nil)
		if got.Code != 200 || !bytes.Equal(got.Body.Bytes(), want.Body.Bytes()) {
			t.Errorf("%s: status %d, %d bytes, want the %d of the record", query, got.Code, got.Body.Len(), want.Body.Len())
		}
	}
	for name, s := range map[string]*Server{"memory": inMemory, "file": inFile} {
		var begin struct{ Records []outline }
		if err := json.Unmarshal(ask(s, "GET", "/api/start", "", nil).Body.Bytes(), &begin); err != nil {
			t.Fatal(err)
		}
		if unread := name == "file"; begin.Records[0].Unread != unread || (len(begin.Records[0].Warnings) == 0) != unread {
			t.Errorf("%s: the outline is %+v", name, begin.Records[0])
		}
	}
	if w := ask(inFile, "GET", "/api/check?record=r0&layer=0", "", nil); !strings.Contains(w.Body.String(), "do not sum to 1") {
		t.Errorf("what is wrong with the weights is %s", w.Body)
	}
	f.Close()
	if w := ask(inFile, "GET", "/api/thumbs?record=r0&layer=0", "", nil); w.Code != 500 {
		t.Errorf("a file that cannot be read: status %d", w.Code)
	}
}

// A page has at most one film.
func TestOpenFilm(t *testing.T) {
	path := filepath.Join(t.TempDir(), "film.safetensors")
	var f heads.Film
	if err := f.Add(heads.Frame{Record: sample()}); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := f.Write(&b); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	var o Options
	if err := o.Open(path); err != nil || o.Film == nil || len(o.Files) > 0 {
		t.Errorf("a film: %v, with %d files", err, len(o.Files))
	}
	if err := o.Open(path); err == nil || !strings.HasSuffix(err.Error(), "is a second film, want at most one") {
		t.Errorf("a second film: %v", err)
	}
	if err := o.Open(path + "x"); err == nil {
		t.Error("a missing file is opened")
	}
}
