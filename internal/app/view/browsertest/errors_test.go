package browsertest

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/view"
)

// reader records texts of at most 100 bytes; others fail in the model.
type reader struct{}

func (reader) Record(_ context.Context, source, _ string) (*heads.Record, error) {
	if len(source) > 100 {
		return nil, errors.New("the text has too many tokens")
	}
	r := sample()
	r.Source = source
	return r, nil
}

func (reader) NoVectors(*heads.Record) string { return "" }

// A text that fails has its error on the screen, also below a text box that is open, and no map of an earlier text.
func TestFailedText(t *testing.T) {
	t.Parallel()
	onScreen := `(() => {
		const note = document.querySelector("#notes .note.bad")?.getBoundingClientRect();
		return note && note.top >= 0 && note.bottom <= innerHeight &&
			document.elementFromPoint(note.left + 20, note.top + note.height / 2).closest(".note.bad") !== null;
	})()`
	map_ := `document.querySelector("main").getClientRects().length > 0`
	for _, width := range []int{1280, 390} {
		b := open(t, width, 844)
		b.visit(serve(t, view.Options{Name: "one", Recorder: reader{}, MaxText: 1000}))
		enter := func(id, text string) {
			b.Helper()
			b.do(chromedp.Focus(chromedp.CSS("#"+id)), chromedp.Evaluate[chromedp.Void](`document.activeElement.select()`),
				chromedp.Evaluate[chromedp.Void](`document.execCommand("insertText", false, `+"`"+text+"`"+`)`), chromedp.KeyEvent(kb.Enter))
		}
		enter("text-s", "first")
		b.wait(`document.querySelector(".panel .sub").textContent.startsWith("first → ")`)
		for _, c := range [][2]string{
			{strings.Repeat("many words ", 90), "too many tokens"}, {strings.Repeat("more words ", 300), "want at most 1000"},
		} {
			enter("text-s", c[0])
			b.wait(`document.querySelector("#notes .note.bad")?.textContent.includes("` + c[1] + `")`)
			if !js[bool](b, `document.activeElement.classList.contains("open")`) {
				t.Error("the text box is not open: the test shows nothing")
			}
			if !js[bool](b, onScreen) {
				t.Errorf("at %d pixels, the error %q is covered", width, c[1])
			}
			if js[bool](b, map_) {
				t.Errorf("at %d pixels, a map of the first text is below the error %q", width, c[1])
			}
		}
		enter("text-s", "second")
		b.wait(`document.querySelector(".panel .sub").textContent.startsWith("second → ") && document.body.dataset.drawn !== undefined`)
		if !js[bool](b, map_+` && document.querySelector("#notes .note") === null`) {
			t.Error("after a text that fails, another one has no map, or the error remains")
		}
		// Of two texts, only the one that fails has no map.
		b.choose(`[data-state="cmp"]`, "text")
		b.wait(`document.querySelector("#text-s2")`)
		enter("text-s2", "third")
		b.wait(`document.querySelectorAll(".panel").length > 1`)
		enter("text-s2", strings.Repeat("many words ", 90))
		b.wait(`document.querySelector("#notes .note.bad")?.textContent.includes("too many tokens") && document.querySelectorAll(".panel").length === 1`)
		if sub := b.text(".panel .sub"); !strings.HasPrefix(sub, "second → ") || !js[bool](b, onScreen) {
			t.Errorf("beside a text that fails, the panel is about %q", sub)
		}
		b.wait(`document.body.dataset.drawn !== undefined`)
	}
}

// Answers that are cut short, or come from another program, are reported in words of the page.
func TestDamagedAnswers(t *testing.T) {
	t.Parallel()
	cut := func(w http.ResponseWriter) {
		w.Header().Set("Content-Length", "1000")
		w.Write([]byte(`{"layers":`))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	text := func(status int, body string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.WriteHeader(status)
			w.Write([]byte(body))
		}
	}
	for _, c := range []struct {
		name, path, want string
		answer           func(http.ResponseWriter)
	}{
		{"cut", "/api/record", "The server's answer is cut short; attn view may have ended.", cut},
		{"another page", "/api/record", "The server's answer is damaged.", text(200, "<!DOCTYPE html><title>Log in</title>")},
		{"null", "/api/record", "The server answered with status 502.", text(502, "null")},
		{"no error", "/api/record", "The server answered with status 500.", text(500, "{}")},
		{"weights", "/api/head", "The server's answer is damaged.", text(200, "ahm1\x03\x00\x00\x00\x04\x00\x00\x00")},
		{"no weights", "/api/head", "The server's answer is damaged.", text(200, strings.Repeat("\x00", 32))},
		{"start", "/api/start", "The server's answer is damaged.", text(200, "{")},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := view.New(view.Options{Name: "one", Recorder: reader{}})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == c.path {
					c.answer(w)
					return
				}
				s.ServeHTTP(w, r)
			}))
			defer server.Close()
			b := open(t, 800, 700)
			b.do(chromedp.Navigate(s.Address(strings.TrimPrefix(server.URL, "http://")) + "#s=text"))
			b.wait(`document.querySelector(".note:not([hidden])")?.textContent === ` + "`" + c.want + "`")
			if js[bool](b, `document.querySelector(".stage canvas") !== null`) {
				t.Error("there is a map")
			}
		})
	}
}

// An exported page whose data are damaged says so.
func TestDamagedExport(t *testing.T) {
	t.Parallel()
	page, err := view.Page(context.Background(), view.Options{Name: "one", Records: []*heads.Record{sample()}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{{`id="frozen">{`, `id="frozen">`}, {`id="frozen">`, `id="frozen">null`}, {`"api/start":"`, `"api/start":"!`}} {
		broken := strings.Replace(string(page), c[0], c[1], 1)
		if broken == string(page) {
			t.Fatalf("the page has no %s", c[0])
		}
		b := open(t, 800, 700)
		b.do(chromedp.Navigate(b.save(broken)))
		b.wait(`document.querySelector(".note.bad")?.textContent === "The data of this exported page are damaged: export it again."`)
	}
}

// The page of a training run names errors in the answers of the server.
func TestTrainingDamagedAnswers(t *testing.T) {
	t.Parallel()
	s := view.NewTraining("run", func(float64) (any, error) { return nil, nil }, nil)
	body, status := "<!DOCTYPE html>", 200
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/") {
			w.WriteHeader(status)
			w.Write([]byte(body))
			return
		}
		s.ServeHTTP(w, r)
	}))
	defer server.Close()
	address := s.Address(strings.TrimPrefix(server.URL, "http://"))
	for _, c := range []struct {
		status     int
		body, want string
	}{
		{200, "<!DOCTYPE html>", "the answer of attn follow is damaged"}, {502, "<html>", "the server answered with status 502"},
		{500, "null", "the server answered with status 500"},
	} {
		body, status = c.body, c.status
		b := open(t, 800, 700)
		b.do(chromedp.Navigate(address))
		b.wait(`document.getElementById("status").textContent === "` + c.want + `"`)
	}
}
