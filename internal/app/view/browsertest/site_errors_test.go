package browsertest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
)

// answers returns the address of the site, of which a file is answered by a function of its content.
func answers(t *testing.T, path string, answer func(w http.ResponseWriter, file []byte)) string {
	t.Helper()
	findBrowser(t)
	dir, err := theSite()
	if err != nil {
		t.Fatal(err)
	}
	files := http.FileServer(http.Dir(dir))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != path {
			files.ServeHTTP(w, r)
			return
		}
		file, err := os.ReadFile(dir + path)
		if err != nil {
			t.Error(err)
		}
		if strings.HasSuffix(path, ".js") {
			w.Header().Set("Content-Type", "text/javascript")
		}
		answer(w, file)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/"
}

func missing(w http.ResponseWriter, _ []byte) { w.WriteHeader(http.StatusNotFound) }

func half(w http.ResponseWriter, file []byte) { w.Write(file[:len(file)/2]) }

func zeros(w http.ResponseWriter, file []byte) { w.Write(make([]byte, len(file))) }

// interrupted closes the connection in the middle of a file.
func interrupted(w http.ResponseWriter, file []byte) {
	w.Header().Set("Content-Length", fmt.Sprint(len(file)))
	w.Write(file[:len(file)/2])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// html answers with a page, as servers do that know no status 404.
func html(w http.ResponseWriter, _ []byte) {
	w.Header().Set("Content-Type", "text/html")
	fmt.Fprint(w, "<!DOCTYPE html><title>Page not found</title><p>Go back to the start of the site.")
}

// after answers with a script that is longer by some lines.
func after(lines string) func(http.ResponseWriter, []byte) {
	return func(w http.ResponseWriter, file []byte) { w.Write(append(bytes.Clone(file), lines...)) }
}

// forgive ignores what the browser reported so far.
func (b *tab) forgive() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.problems = nil
}

// A file of a lesson that is missing, cut short or another page is named on the page, in its words, once, with an offer
// to start again.
func TestSiteMissingFiles(t *testing.T) {
	for _, c := range []struct {
		page, path, want string
		answer           func(http.ResponseWriter, []byte)
	}{
		{"regression", "lesson.wasm.gz", "The program of this lesson cannot run: lesson.wasm.gz: 404 Not Found.", missing},
		{"regression", "lesson.wasm.gz", "The program of this lesson cannot run: the download of lesson.wasm.gz was interrupted.", interrupted},
		{"regression", "lesson.wasm.gz", "The program of this lesson cannot run: lesson.wasm.gz: the file is damaged or cut short.", zeros},
		{"dates", "translator.wasm.gz", "The program of this lesson cannot run: translator.wasm.gz: the file is damaged or cut short.", html},
		{"masks", "worker.js", "The program of this lesson cannot run: worker.js is missing or damaged.", missing},
		{"masks", "worker.js", "The program of this lesson cannot run: worker.js is missing or damaged.", html},
		{"masks", "worker.js", "The program of this lesson cannot run: worker.js is missing or damaged.", half},
		{"scores", "wasm_exec.js", "The program of this lesson cannot run: wasm_exec.js is missing or damaged.", half},
		{"scores", "worker.js", "The program of this lesson cannot run: this browser cannot decompress programs: it has no DecompressionStream.", after("delete self.DecompressionStream;")},
		{"regression", "page.js", "page.js, or a file that it needs, is missing or damaged: this page does not work.", missing},
		{"regression", "drag.js", "regression.js, or a file that it needs, is missing or damaged: this page does not work.", html},
		{"scores", "chart.js", "chart.js is damaged: this page does not work.", half},
		{"minilm", "minilm-heads.html", "The heads cannot be shown: assets/minilm-heads.html is missing or damaged.", missing},
		{"minilm", "minilm-heads.html", "The heads cannot be shown: assets/minilm-heads.html is missing or damaged.", half},
	} {
		url := answers(t, "/assets/"+c.path, c.answer)
		b := open(t, 800, 600)
		b.do(chromedp.Navigate(url + c.page + ".html"))
		b.wait(`document.querySelector("#notes .bad button")?.textContent === "Start again"`)
		if got := js[string](b, `[...document.querySelectorAll("#notes .note")].map((n) => n.textContent).join("|")`); got != c.want+" Start again" {
			t.Errorf("%s: the page says %q, want %q", c.path, got, c.want)
		}
		if strings.HasSuffix(c.path, ".js") {
			b.forgive() // the browser reports the script as well
		}
		b.check()
	}
}

// Some servers declare a file in .gz as an encoding, whatever its type: then the browser decompresses it, or leaves that
// to the worker. Others decompress it themselves. The lesson works with all of them.
func TestSiteEncodedProgram(t *testing.T) {
	const name = "lesson.wasm.gz"
	for what, answer := range map[string]func(http.ResponseWriter, []byte){
		"an encoding of WebAssembly": func(w http.ResponseWriter, file []byte) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Type", "application/wasm")
			w.Write(file)
		},
		"an encoding of gzip": func(w http.ResponseWriter, file []byte) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Type", "application/gzip")
			w.Write(file)
		},
		"not compressed": func(w http.ResponseWriter, file []byte) {
			r, err := gzip.NewReader(bytes.NewReader(file))
			if err != nil {
				t.Error(err)
				return
			}
			w.Header().Set("Content-Type", "application/wasm")
			io.Copy(w, r)
		},
	} {
		t.Run(what, func(t *testing.T) {
			b := open(t, 800, 600)
			b.do(chromedp.Navigate(answers(t, "/assets/"+name, answer) + "scores.html"))
			b.wait(`document.body.dataset.drawn !== undefined || document.querySelector("#notes .bad")`)
			if got := b.text("#notes .bad"); got != "" {
				t.Errorf("the page says %q", got)
			}
		})
	}
}

// Without the vector kernels, or in a browser without vectors, lesson 3 runs portable Go and says so in one line.
func TestSitePortable(t *testing.T) {
	for _, c := range []struct {
		path, want string
		answer     func(http.ResponseWriter, []byte)
	}{
		{"kernels.wasm.gz", "kernels.wasm.gz: 404 Not Found", missing}, {"kernels.wasm.gz", "kernels.wasm.gz: the file is damaged or cut short", zeros},
		{"kernels.wasm.gz", "the download of kernels.wasm.gz was interrupted", interrupted}, {"kernels.js", "kernels.js is missing or damaged", missing},
		{"worker.js", "this browser has no vectors for WebAssembly", after("WebAssembly.validate = () => false;")},
	} {
		b := open(t, 800, 600)
		b.do(chromedp.Navigate(answers(t, "/assets/"+c.path, c.answer) + "reverse.html"))
		b.wait(`document.body.dataset.drawn !== undefined`)
		js[bool](b, `[...document.querySelectorAll("button")].find((b) => b.textContent === "One step").click(), true`)
		b.wait(`document.querySelector("#train dd").textContent === "1 of 1,250"`)
		want := "The program runs without vectors (" + c.want + "): it is several times slower, and its results may differ from those in the text."
		if got := js[string](b, `[...document.querySelectorAll("#notes .note")].map((n) => n.textContent).join("|")`); got != want {
			t.Errorf("%s: the page says %q, want %q", c.path, got, want)
		}
	}
}

// A worker that ends while it trains, with or without an event, leaves no button that waits for it: the page says what
// happened, and starts again.
func TestSiteDeadWorker(t *testing.T) {
	for want, end := range map[string]string{
		"it has not answered for 30 seconds, and may have ended.":         "self.close()",
		"it has stopped at an error; the memory of this tab may be full.": "throw new Error('a trap')",
		"it has ended; the memory of this tab may be full.":               "program.exit(2)",
	} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			var served atomic.Int64
			url := answers(t, "/assets/worker.js", func(w http.ResponseWriter, file []byte) {
				if served.Add(1) > 1 {
					w.Write(file)
					return
				}
				// Go is known here, to end it.
				text := strings.Replace(string(file), "const go = new Go()", "const go = self.program = new Go()", 1) +
					`;self.addEventListener("message", ({ data }) => data.call === "train.run" && setTimeout(() => {` + strings.Replace(end, "program.exit(2)", "program._resolveExitPromise()", 1) + `; }, 1500));`
				fmt.Fprint(w, text)
			})
			b := open(t, 800, 600)
			b.visit(url + "reverse.html")
			b.click("#train button")
			b.wait(`document.querySelector("#train button").textContent === "Pause"`)
			b.wait(`document.querySelector("#notes .bad")`)
			if got := b.text("#notes .bad"); got != "The program of this lesson cannot run: "+want+" Start again" {
				t.Errorf("the page says %q, want %q", got, want)
			}
			b.wait(`document.querySelector("#train button").textContent === "Continue" && document.getElementById("train").ariaBusy === "false"`)
			b.forgive()
			b.click("#notes button")
			b.wait(`document.body.dataset.drawn !== undefined && document.querySelector("#notes .bad") === null`)
			b.wait(`/^\d+ of 1,250$/.test(document.querySelector("#train dd").textContent)`)
		})
	}
}

// A message that is no call is answered, and ends nothing.
func TestSiteMessages(t *testing.T) {
	b := open(t, 800, 600)
	b.do(chromedp.Navigate(site(t) + "index.html"))
	got := js[string](b, `new Promise((done) => {
		const worker = new Worker("assets/worker.js", { name: "lesson" }), list = [];
		const odd = [null, 5, "text", [], {}, { call: "masks.cache" }, { id: "7", call: "masks.cache" }, { id: 1.5, call: "masks.cache" }, { id: NaN, call: "cancel" },
			{ id: 2 }, { id: 3, call: {} }, { id: 4, call: "masks.cache", args: { steps: 1n } }, { id: 5, call: "masks.cache", args: "x" }, { id: 6, call: "none" }, { id: 7, call: "cancel", args: "x" }, { id: 2 ** 60, call: "cancel" }];
		worker.onerror = () => done("the worker has failed");
		worker.onmessage = ({ data }) => {
			list.push(data);
			if (data.ready) for (const m of [...odd, { id: 9, call: "masks.cache", args: { steps: 3, seed: 1 } }]) worker.postMessage(m); // again, now that Go runs
			if (data.failed) done(data.failed);
			if (data.result) done(list.filter((m) => m.done).length + " answers, same " + data.result.same);
		};
		for (const m of odd) worker.postMessage(m);
	})`)
	if want := "33 answers, same true"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// On phones, no table, formula or line of a lesson is cut.
func TestSiteNarrow(t *testing.T) {
	url := site(t)
	w := watch(t, 390, 844)
	for _, page := range strings.Fields("regression scores scores#e=1024&show=scores scores#show=scores&at=4,4,4,4,-4,-4,-4,4,4,-4,0,4,-4,0 " +
		"scores#e=1024&vectors=2 scores#e=512&vectors=3 scores#e=64&vectors=4 reverse dates masks masks#window=1&documents=1&prefix=1&position=alibi minilm") {
		name, hash, _ := strings.Cut(page, "#")
		w.lesson(url + name + ".html#" + hash)
		for _, width := range []int64{360, 390} {
			w.do(chromedp.EmulateViewport(width, 844))
			js[bool](w.tab, "new Promise((done) => setTimeout(() => done(true), 300))") // figures are drawn again
			cut := js[[]string](w.tab, `[document.documentElement, ...document.querySelectorAll("body *")].filter((e) => {
				const { overflowX } = getComputedStyle(e);
				return e.getClientRects().length > 0 && !e.closest(".unseen, .skip") && e.scrollWidth > e.clientWidth + 1 && (overflowX !== "visible" || e === document.documentElement);
			}).map((e) => e.tagName + "." + e.className + ": " + e.scrollWidth + " of " + e.clientWidth)`)
			for _, c := range cut {
				t.Errorf("%s at %d pixels cuts %s", page, width, c)
			}
		}
	}
}
