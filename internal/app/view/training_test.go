package view

import (
	"errors"
	"net/http"
	"strings"
	"testing"
)

func TestTraining(t *testing.T) {
	var width float64
	var fails error
	s := NewTraining("runs/dates", func(w float64) (any, error) {
		width = w
		return map[string]string{"status": "training"}, fails
	}, func(step int) (any, error) { return map[string]int{"step": step}, fails })
	for path, want := range map[string]string{
		"/": "attn follow", "/page/main.js": "api/training", "/page/style.css": "svg", "/page/charts.css": "prefers-color-scheme: dark",
	} {
		if w := ask(s, "GET", path, "", nil); w.Code != 200 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: status %d and %.100q, want %q", path, w.Code, w.Body, want)
		}
	}
	if w := ask(s, "GET", "/api/training?width=700", "", nil); w.Code != 200 || width != 700 || !strings.Contains(w.Body.String(), `{"name":"runs/dates","run":{"status":"training"}}`) {
		t.Errorf("status %d, width %g: %s", w.Code, width, w.Body)
	}
	for _, width := range []string{"", "299", "1601", "NaN", "x"} {
		if w := ask(s, "GET", "/api/training?width="+width, "", nil); w.Code != 400 {
			t.Errorf("width %q: status %d, want 400", width, w.Code)
		}
	}
	for path, want := range map[string]string{"?step=7": `{"step":7}`, "": "error", "?step=-1": "error", "?step=x": "error"} {
		w := ask(s, "GET", "/api/frame"+path, "", nil)
		if ok := want != "error"; (w.Code == 200) != ok || !ok && w.Code != 400 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("frame %s: status %d: %s", path, w.Code, w.Body)
		}
	}
	fails = errors.New("the disk is gone")
	if w := ask(s, "GET", "/api/training?width=700", "", nil); w.Code != 500 || !strings.Contains(w.Body.String(), "the disk is gone") {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
	stranger := func(r *http.Request) { r.Header.Del("Cookie") }
	for _, path := range []string{"/", "/page/main.js", "/api/training?width=700", "/api/frame?step=7"} {
		if w := ask(s, "GET", path, "", stranger); w.Code != 403 {
			t.Errorf("%s without the token: status %d, want 403", path, w.Code)
		}
	}
	if w := ask(s, "POST", "/api/training?width=700", "{}", nil); w.Code == 200 {
		t.Error("the page can be written to")
	}
}
