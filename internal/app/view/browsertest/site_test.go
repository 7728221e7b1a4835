package browsertest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// theSite is built once, or is the directory SITE.
var theSite = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv("SITE"); dir != "" {
		return dir, nil
	}
	dir, err := os.MkdirTemp("", "attn-site")
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "run", "./site", "--out", dir)
	build.Dir = filepath.Join("..", "..", "..", "..")
	if text, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, text)
	}
	return dir, nil
})

// site serves the site without any help for it, and returns its address.
func site(t *testing.T) string {
	t.Helper()
	findBrowser(t)
	dir, err := theSite()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(server.Close)
	return server.URL + "/"
}

// watched is a tab that records the addresses that it requests.
type watched struct {
	*tab
	mu    sync.Mutex
	asked []string
}

// watch opens a tab whose requests are recorded.
func watch(t *testing.T, width, height int) *watched {
	t.Helper()
	w := &watched{tab: open(t, width, height)}
	if err := chromedp.Listen(w.ctx, func(event any) {
		if e, ok := event.(*network.EventRequestWillBeSent); ok {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.asked = append(w.asked, e.Request.URL)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(w.ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	return w
}

// requests returns the addresses that were requested since the last call, without those that
// contain their data.
func (w *watched) requests() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := slices.DeleteFunc(w.asked, func(url string) bool { return strings.HasPrefix(url, "data:") })
	w.asked = nil
	return list
}

// lesson opens a page and waits for its first figure.
func (w *watched) lesson(url string) {
	w.Helper()
	w.do(chromedp.Navigate("about:blank"), chromedp.Navigate(url))
	w.wait(`document.body?.dataset.drawn !== undefined`)
}

// set moves a slider or sets a box, as a user does.
func (b *tab) set(id string, value any) {
	b.Helper()
	js[bool](b, fmt.Sprintf(`(() => {
		const e = document.getElementById(%q), v = %#v;
		if (typeof v === "boolean") e.checked = v; else e.value = v;
		e.dispatchEvent(new Event("input", { bubbles: true }));
		e.dispatchEvent(new Event("change", { bubbles: true }));
		return true;
	})()`, id, value))
}

// Every page loads under its policy, without an error, without a request to another site, and
// without one after it is loaded. The browser's errors fail the test in open.
func TestSitePages(t *testing.T) {
	url := site(t)
	w := watch(t, 1280, 900)
	pages := "index regression scores reverse shapes dates masks minilm linear induction search docs/index docs/view DESIGN"
	for page := range strings.FieldsSeq(pages) {
		w.do(chromedp.Navigate("about:blank"), chromedp.Navigate(url+page+".html"))
		w.wait(`document.readyState === "complete"`)
		w.wait(`document.body.dataset.lesson === undefined || document.body.dataset.drawn !== undefined`)
		for _, asked := range w.requests() {
			if !strings.HasPrefix(asked, url) && asked != "about:blank" {
				t.Errorf("%s requests %s", page, asked)
			}
		}
		policy := js[string](w.tab, `document.querySelector('meta[http-equiv="Content-Security-Policy"]').content`)
		if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe-inline") {
			t.Errorf("%s has the policy %q", page, policy)
		}
		if problem := w.text("#notes .bad"); problem != "" {
			t.Errorf("%s says: %s", page, problem)
		}
		if w.text("h1") == "" {
			t.Errorf("%s has no title", page)
		}
	}
}

// From a folder, where Chromium runs no modules, a page says so, and shows text and still pictures.
func TestSiteFolder(t *testing.T) {
	findBrowser(t)
	dir, err := theSite()
	if err != nil {
		t.Fatal(err)
	}
	b := open(t, 1280, 900)
	b.do(chromedp.Navigate("file://" + filepath.Join(dir, "regression.html")))
	b.wait(`document.querySelector("#notes .note")?.textContent.includes("python3 -m http.server")`)
	if got := js[string](b, `getComputedStyle(document.querySelector(".live")).backgroundColor`); got != "rgb(255, 255, 255)" {
		t.Errorf("the style is missing: cards are %s", got)
	}
	b.mu.Lock()
	b.problems = nil // Chromium complains about each module
	b.mu.Unlock()
}

// A search finds sections, and its link leads to one.
func TestSiteSearch(t *testing.T) {
	w := watch(t, 380, 800)
	url := site(t)
	w.do(chromedp.Navigate(url + "search.html"))
	w.wait(`document.activeElement?.id === "words"`)
	w.do(chromedp.KeyEvent("kv cache"))
	w.wait(`document.querySelectorAll("#found li").length > 3 && location.hash === "#q=kv+cache"`)
	w.click("#found a")
	w.wait(`document.querySelector("h1") !== null && !location.pathname.includes("search")`)
	w.do(chromedp.Navigate(url + "search.html#q=zzzz"))
	w.wait(`document.getElementById("count").textContent.startsWith("Nothing found")`)

	// Dashes and spaces are the same, and a word with a dash is also found without it.
	found := func(words string) (sections []string) {
		w.do(chromedp.Navigate(url + "search.html#q=" + words))
		w.wait(`document.getElementById("words").value === decodeURIComponent("` + words + `")`)
		w.wait(`document.querySelectorAll("#found li").length > 3`)
		if marks := js[int](w.tab, `document.querySelectorAll("#found li:first-child mark").length`); marks == 0 {
			t.Errorf("%s: the first section has no word marked", words)
		}
		return js[[]string](w.tab, `[...document.querySelectorAll("#found a")].map((a) => a.textContent)`)
	}
	for _, same := range [][2]string{{"cross-attention", "cross%20attention"}, {"multi-head", "multi%20head"}, {"key%E2%80%93value", "key%20value"}} {
		if dash, space := found(same[0]), found(same[1]); !slices.Equal(dash, space) {
			t.Errorf("%s finds %q, %s finds %q", same[0], dash, same[1], space)
		}
	}
	// Words next to each other count more than a word in a title: the lesson comes before pages about attention heads.
	if titles := found("cross%20attention"); !slices.Contains(titles[:min(5, len(titles))], "Encoder and decoder") {
		t.Errorf("cross attention finds %q, want the lesson on encoder and decoder among the first", titles)
	}
	if titles := found("multihead"); !slices.ContainsFunc(titles, func(s string) bool { return strings.Contains(s, "multi-head") }) {
		t.Errorf("multihead finds %q, want a section with a dash in its title", titles)
	}
}

// TestSiteShots saves screenshots of the pages to the directory SHOTS, for people to check. PAGES
// selects pages by name.
func TestSiteShots(t *testing.T) {
	if os.Getenv("SHOTS") == "" {
		t.Skip("set SHOTS to a directory to have pictures")
	}
	url := site(t)
	pages := strings.Fields(os.Getenv("PAGES"))
	if len(pages) == 0 {
		pages = strings.Fields("index regression scores reverse shapes dates masks minilm linear induction search docs/index docs/heads")
	}
	for _, theme := range []string{"light", "dark"} {
		for _, width := range []int{380, 800, 1440} {
			b := open(t, width, 900)
			if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}}); err != nil {
				t.Fatal(err)
			}
			for _, page := range pages {
				name, hash, _ := strings.Cut(page, "#")
				b.do(chromedp.Navigate("about:blank"), chromedp.Navigate(url+name+".html#"+hash))
				b.wait(`document.body?.dataset.lesson === undefined || document.body.dataset.drawn !== undefined`)
				js[bool](b, "new Promise((done) => setTimeout(() => done(true), 600))")
				// A picture of the whole page has no frame that is out of view.
				picture := fmt.Sprintf("%s-%s-%d", strings.ReplaceAll(name, "/", "-"), theme, width)
				b.shoot(picture)
				if js[bool](b, `document.querySelector("iframe") !== null`) {
					js[bool](b, `new Promise((done) => {
						document.querySelector("iframe").scrollIntoView();
						setTimeout(() => done(true), 600);
					})`)
					screen, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
					if err == nil {
						err = os.WriteFile(filepath.Join(os.Getenv("SHOTS"), picture+"-frame.png"), screen, 0o644)
					}
					if err != nil {
						t.Error(err)
					}
				}
				if wide := js[int](b, "document.documentElement.scrollWidth"); wide > width {
					t.Errorf("%s at %d is %d pixels wide", page, width, wide)
				}
			}
		}
	}
}

// On phones, lines of code that are wrapped continue further right than they begin, and a selection of them is still
// the code as it is written.
func TestSiteWrappedCode(t *testing.T) {
	w := watch(t, 380, 800)
	w.lesson(site(t) + "scores.html")
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "lessons.md"))
	if err != nil {
		t.Fatal(err)
	}
	type line struct{ First, Next float64 } // the left edges of the first row and of those after it
	type block struct {
		Selected string
		Lines    []line
	}
	blocks := js[[]block](w.tab, `[...document.querySelectorAll(".text pre")].filter((pre) => pre.checkVisibility()).map((pre) => {
		getSelection().selectAllChildren(pre);
		const edge = (line) => {
			const range = document.createRange(), text = line.firstChild, rows = [];
			for (let i = 0; i < text.length; i++) {
				range.setStart(text, i);
				range.setEnd(text, i + 1);
				const { left, top, width } = range.getBoundingClientRect();
				if (text.data[i].trim() && width && !(rows.at(-1)?.top >= top - 4)) rows.push({ left, top });
			}
			return { First: rows[0]?.left ?? 0, Next: Math.min(...rows.slice(1).map((r) => r.left), 1e9) };
		};
		return { Selected: String(getSelection()), Lines: [...pre.querySelectorAll(".line")].map(edge) };
	})`)
	wrapped, indented := 0, 0
	for _, b := range blocks {
		selected := strings.TrimRight(b.Selected, "\n")
		commands := "\n    " + strings.ReplaceAll(selected, "\n", "\n    ") + "\n" // an indented block
		if !strings.Contains(string(text), "\n```go\n"+selected+"\n```\n") && !strings.Contains(string(text), commands) {
			t.Errorf("a selection is not a block of docs/lessons.md:\n%s", b.Selected)
		}
		for _, l := range b.Lines {
			if l.Next == 1e9 {
				continue
			}
			wrapped++
			if l.First > b.Lines[0].First {
				indented++
			}
			if l.Next < l.First+8 || l.Next > l.First+24 {
				t.Errorf("a line begins at %g and continues at %g", l.First, l.Next)
			}
		}
	}
	if wrapped < 5 || indented == 0 {
		t.Errorf("%d lines are wrapped, %d of them indented: the test shows nothing", wrapped, indented)
	}
}
