package browsertest

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// narrow is a server of the site with a slow line: 150 ms to an answer, 3.2 Mbit/s in all, text compressed as on the web.
type narrow struct {
	url  string
	slow atomic.Bool
	line sync.Mutex
}

func serveNarrow(t *testing.T) *narrow {
	t.Helper()
	findBrowser(t)
	dir, err := theSite()
	if err != nil {
		t.Fatal(err)
	}
	n := &narrow{}
	files := http.FileServer(http.Dir(dir))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n.slow.Load() {
			time.Sleep(150 * time.Millisecond)
		}
		var body io.Writer = writerFunc(func(p []byte) (int, error) { return n.send(w, p) })
		if ext := path.Ext(r.URL.Path); ext == ".html" || ext == ".js" || ext == ".css" {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(body)
			defer z.Close()
			body = z
		}
		files.ServeHTTP(answer{w, body}, r)
	}))
	t.Cleanup(server.Close)
	n.url = server.URL + "/"
	return n
}

// send sends part of an answer over the line, which is shared.
func (n *narrow) send(w http.ResponseWriter, data []byte) (sent int, err error) {
	for part := range slices.Chunk(data, 8<<10) {
		if n.slow.Load() {
			n.line.Lock()
			time.Sleep(time.Duration(len(part)) * time.Second / (3_200_000 / 8))
			n.line.Unlock()
		}
		m, err := w.Write(part)
		if sent += m; err != nil {
			return sent, err
		}
	}
	return sent, nil
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// answer is an answer whose body takes another way.
type answer struct {
	http.ResponseWriter
	body io.Writer
}

func (a answer) Write(p []byte) (int, error) { return a.body.Write(p) }

// WriteHeader removes the size of what is not compressed yet.
func (a answer) WriteHeader(code int) {
	if a.Header().Get("Content-Encoding") != "" {
		a.Header().Del("Content-Length")
	}
	a.ResponseWriter.WriteHeader(code)
}

// opensSlowly opens a page on the slow line, and goes to its last figure at once. Nothing may move: neither when the figures
// are drawn, nor when their program has come. Until then they cannot be used, and a line says how much is loaded. If whole,
// the program comes over the slow line, too. It logs when the figures were drawn, and when they could be used.
func (n *narrow) opensSlowly(t *testing.T, w *watched, page string, whole bool) {
	t.Helper()
	n.slow.Store(true)
	defer n.slow.Store(false)
	if _, err := chromedp.Call(w.ctx, network.ClearBrowserCache, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	w.do(chromedp.Navigate("about:blank"), chromedp.Navigate(n.url+page+".html"))
	w.wait(`document.readyState !== "loading"`)
	js[bool](w.tab, `([...document.querySelectorAll(".live")].at(-1).scrollIntoView(), true)`)
	w.wait(`document.documentElement.dataset.first !== undefined`)
	if !strings.HasSuffix(page, "minilm") { // whose figures need no program
		if got := js[bool](w.tab, `document.documentElement.dataset.ready !== undefined || ([...document.querySelectorAll(".live")].every((e) => e.inert) &&
			document.querySelector("#loading").checkVisibility())`); !got {
			t.Errorf("%s: figures whose program is loading can be used, or nothing says that it loads", page)
		}
	}
	n.slow.Store(whole)
	w.wait(`document.body.dataset.drawn !== undefined`)
	js[bool](w.tab, `new Promise((done) => setTimeout(() => done(true), 400))`)
	shift := js[float64](w.tab, `shift`)
	if shift > 0.02 {
		t.Errorf("%s shifts by %.3f: %q", page, shift, js[[]string](w.tab, "moved"))
	}
	if js[bool](w.tab, `document.getElementById("loading") !== null || document.querySelector("[inert]") !== null`) {
		t.Errorf("%s: the program has come, and figures still wait", page)
	}
	if lines := js[[]string](w.tab, `lines`); whole && !slices.ContainsFunc(lines, regexp.MustCompile(`\d\.\d \D+ \d\.\d MB`).MatchString) {
		t.Errorf("%s: the line of what is loading says %q, want megabytes", page, lines)
	}
	t.Logf("%-14s %4d pixels wide: drawn after %.1f s, answers after %.1f s, shift %.3f", page, js[int](w.tab, "innerWidth"),
		js[float64](w.tab, "at.first / 1000"), js[float64](w.tab, "(at.ready ?? at.first) / 1000"), shift)
}

// watchSlow opens a tab with a processor that is four times slower, and records what moves, and when figures are there.
func watchSlow(t *testing.T, width int) *watched {
	t.Helper()
	w := watch(t, width, 844)
	if _, err := chromedp.Call(w.ctx, emulation.SetCPUThrottlingRate, emulation.SetCPUThrottlingRateParams{Rate: 4}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(w.ctx, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: `
		window.shift = 0;
		window.moved = [];
		window.at = {};
		window.lines = [];
		new PerformanceObserver((list) => {
			for (const e of list.getEntries()) shift += e.value, moved.push(...e.sources.map((s) => s.node?.id || s.node?.className || s.node?.nodeName));
		}).observe({ type: "layout-shift", buffered: true });
		new MutationObserver(() => {
			for (const name of ["first", "ready"]) if (name in document.documentElement.dataset) at[name] ??= performance.now();
		}).observe(document, { subtree: true, attributeFilter: ["data-first", "data-ready"] });
		document.addEventListener("DOMContentLoaded", () => new MutationObserver(() => {
			const line = document.getElementById("loading")?.textContent;
			if (line && line !== lines.at(-1)) lines.push(line);
		}).observe(document.body, { subtree: true, childList: true }));`}); err != nil {
		t.Fatal(err)
	}
	return w
}

// On a slow network and processor, a reader of any lesson, in any language and width, sees nothing move. It takes minutes:
// CI runs TestSiteSlowPhone.
func TestSiteSlow(t *testing.T) {
	n := serveNarrow(t)
	for i, screen := range []struct {
		width    int
		language string
	}{{390, ""}, {390, "zh/"}, {390, "ja/"}, {800, ""}, {1280, ""}, {1440, ""}} {
		w := watchSlow(t, screen.width)
		for k, name := range append([]string{"index"}, lessonNames...) {
			if i <= 2 || k%3 == i%3 { // each lesson at one of the larger widths
				n.opensSlowly(t, w, screen.language+name, i == 0 && name != "minilm")
			}
		}
	}
}

// The short form for CI, on a phone: the first lesson, with its program over the slow line, and one with many figures.
func TestSiteSlowPhone(t *testing.T) {
	n := serveNarrow(t)
	w := watchSlow(t, 390)
	n.opensSlowly(t, w, "regression", true)
	n.opensSlowly(t, w, "ja/dates", false)
}

// A finger that swipes up over a slider scrolls the page and leaves the value; one that moves along it or taps on it sets
// the value. The buttons beside it take one step. The width of lesson 4 stops at multiples of the heads.
func TestSiteSliders(t *testing.T) {
	url := site(t)
	w := watch(t, 390, 844)
	if _, err := chromedp.Call(w.ctx, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{Enabled: true}); err != nil {
		t.Fatal(err)
	}
	w.lesson(url + "shapes.html")
	touch := func(kind input.DispatchTouchEventType, points ...*input.TouchPoint) {
		t.Helper()
		if points == nil {
			points = []*input.TouchPoint{}
		}
		if _, err := chromedp.Call(w.ctx, input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: kind, TouchPoints: points}); err != nil {
			t.Fatal(err)
		}
	}
	value := func(id string) float64 {
		return js[float64](w.tab, fmt.Sprintf(`Number(document.getElementById(%q).value)`, id))
	}
	for _, id := range []string{"width", "heads", "queries"} {
		find := func() []float64 { // once the page does not scroll any more
			return js[[]float64](w.tab, fmt.Sprintf(`(async () => {
				const r = document.getElementById(%q), all = r.closest(".controls").getBoundingClientRect();
				r.scrollIntoView({ block: "center" });
				for (let at = -1; at !== scrollY;) {
					at = scrollY;
					await new Promise((done) => setTimeout(done, 200));
					r.scrollIntoView({ block: "center" });
				}
				const box = r.getBoundingClientRect();
				return [box.left, box.top + box.height / 2, box.width, all.width, r.parentElement.getBoundingClientRect().height];
			})()`, id))
		}
		place := find()
		if place[2] < 0.6*place[3] || place[4] < 40 {
			t.Errorf("the slider %s takes %.0f × %.0f pixels of %.0f", id, place[2], place[4], place[3])
		}
		before, x, y := value(id), place[0]+0.8*place[2], place[1]
		top := js[float64](w.tab, "scrollY")
		touch("touchStart", &input.TouchPoint{X: x, Y: y})
		for step := range 8 {
			touch("touchMove", &input.TouchPoint{X: x + float64(step%2), Y: y - 20*float64(step+1)})
		}
		touch("touchEnd")
		w.wait(fmt.Sprintf("scrollY > %v", top+50))
		if got := value(id); got != before {
			t.Errorf("a swipe over %s changes %v to %v", id, before, got)
		}
		y = find()[1]
		touch("touchStart", &input.TouchPoint{X: x, Y: y})
		touch("touchEnd")
		w.wait(fmt.Sprintf(`Number(document.getElementById(%q).value) > %v`, id, before))
		tapped := value(id)
		touch("touchStart", &input.TouchPoint{X: x, Y: y})
		touch("touchMove", &input.TouchPoint{X: x - 40, Y: y})
		touch("touchMove", &input.TouchPoint{X: x - 0.5*place[2], Y: y})
		touch("touchEnd")
		w.wait(fmt.Sprintf(`Number(document.getElementById(%q).value) < %v`, id, tapped))
	}
	// Each width that the slider can have is a multiple of the heads, and the page computes it.
	heads, width := value("heads"), value("width")
	js[bool](w.tab, `(document.getElementById("width").closest("label").querySelector(".step:last-of-type").click(), true)`)
	w.wait(fmt.Sprintf(`Number(document.getElementById("width").value) === %v`, width+heads))
	w.wait(`document.getElementById("refused").hidden`)
	// A preset that is impossible on purpose stays so until the reader moves a slider.
	w.choose("#preset", "4")
	w.wait(`!document.getElementById("refused").hidden && document.getElementById("width").value === "100"`)
	js[bool](w.tab, `(document.getElementById("width").closest("label").querySelector(".step:last-of-type").click(), true)`)
	w.wait(`document.getElementById("refused").hidden && document.getElementById("width").value === "102"`)
	// Each head of lesson 7, whose maps are small there, is reached by sliders.
	w.lesson(url + "minilm.html")
	js[bool](w.tab, `(document.getElementById("head").closest("label").querySelector(".step:last-of-type").click(), true)`)
	w.wait(`location.hash === "#a=0.1" && document.getElementById("heads").src.includes("a=0.1")`)
}

// The first page shows what the model writes, and its heads, before the program is loaded; then it writes the date that
// the reader types, character by character. Its pictures lead to the lessons.
func TestSiteHome(t *testing.T) {
	n := serveNarrow(t)
	for language, date := range map[string]string{"": "Tuesday, 5 March 2019", "zh/": "2019年3月5日 星期二", "ja/": "2019年3月5日(火)"} {
		w := watch(t, 390, 844)
		n.slow.Store(true)
		w.do(chromedp.Navigate(n.url + language + "index.html"))
		w.wait(`document.documentElement.dataset.first !== undefined && document.getElementById("writes").textContent === "2019-03-05"`)
		if got := js[string](w.tab, `document.getElementById("text").value`); got != date || js[bool](w.tab, `document.documentElement.dataset.ready !== undefined`) {
			t.Errorf("%sindex.html begins with %q, or only once the program is there", language, got)
		}
		n.slow.Store(false)
		w.wait(`document.body.dataset.drawn !== undefined`)
		w.set("text", "le 1er août 1987")
		w.wait(`document.getElementById("writes").textContent === "1987-08-01"`)
		if heads := js[int](w.tab, `document.querySelectorAll(".light").length`); heads != 12 {
			t.Errorf("%d heads", heads)
		}
		// A character that is pressed shows what it comes from: 8, the month, comes from août.
		js[bool](w.tab, `(document.querySelectorAll("#writes button")[6].click(), true)`)
		if got := js[string](w.tab, `(() => {
			const light = (e) => getComputedStyle(e).backgroundColor.match(/\d+/g).slice(0, 3).reduce((sum, x) => sum + Number(x), 0);
			return [...document.querySelectorAll("#reads span")].sort((a, b) => light(a) - light(b)).slice(0, 1).map((e) => e.textContent).join("");
		})()`); !strings.Contains("août", got) {
			t.Errorf("the month comes from %q, want a letter of août", got)
		}
		if cards := js[int](w.tab, `[...document.querySelectorAll(".cards a")].filter((a) => a.querySelector("img").getAttribute("src").includes(a.getAttribute("href").replace(".html", ".svg"))).length`); cards != 9 {
			t.Errorf("%d lessons have their pictures, want 9", cards)
		}
	}
}
