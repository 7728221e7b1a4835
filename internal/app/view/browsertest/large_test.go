package browsertest

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/view"
)

// For a record in a file, the head appears before the thumbnails, which load layer by
// layer. Then the page reports errors in the weights.
func TestRecordInFile(t *testing.T) {
	t.Parallel()
	r := &heads.Record{Source: "a large model"}
	names := numbered(23)
	for i := range 12 {
		r.Layers = append(r.Layers, layer(heads.Encoder, i, 12, names, names))
	}
	r.Layers[2].Weights[0] = 7
	path := filepath.Join(t.TempDir(), "r.safetensors")
	if err := r.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	f, err := heads.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := view.New(view.Options{Files: []*heads.File{f}})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/thumbs" {
			time.Sleep(300 * time.Millisecond) // as for many tokens
		}
		s.ServeHTTP(w, r)
	}))
	defer server.Close()
	b := open(t, 1280, 1000)
	b.visit(s.Address(strings.TrimPrefix(server.URL, "http://")) + "#m=1")
	undrawn := `[...document.querySelectorAll(".thumb canvas")].filter((c) => c.width === 1).length`
	if n := js[int](b, undrawn); n < 48 {
		t.Errorf("the head comes when but %d thumbnails are missing", n)
	}
	b.wait(undrawn + " === 0")
	b.wait(`document.querySelector("#notes .note")?.textContent.includes("encoder.2: 1 of 276 rows do not sum to 1")`)
	b.wait(`document.querySelectorAll("tbody tr").length === 144 && !document.querySelector("#measures").textContent.includes("Measuring")`)
	if beyond := js[int](b, "document.documentElement.scrollWidth - document.documentElement.clientWidth"); beyond > 0 {
		t.Errorf("%d pixels of the page are beyond the window", beyond)
	}
}
