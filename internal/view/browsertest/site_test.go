package browsertest

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
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
	build.Dir = filepath.Join("..", "..", "..")
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
	pages := "index regression scores reverse dates masks minilm search docs/index docs/view DESIGN"
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

// Lesson 1 shows the numbers of the formula, learns, and has its state in the address.
func TestSiteRegression(t *testing.T) {
	w := watch(t, 1280, 900)
	url := site(t)
	w.lesson(url + "regression.html#points=1,2,3,4&w=2&x=1.5")
	w.requests()
	near, far := math.Exp(-0.5), math.Exp(-4.5) // distances 0.5 and 1.5, times 2, squared, halved
	if want := fmt.Sprintf("%.2f", (near*2+far*4)/(near+far)); w.text("#curve-read dd") != want {
		t.Errorf("the estimate is %s, want %s", w.text("#curve-read dd"), want)
	}
	label := js[string](w.tab, `document.querySelector("#curve .grip").getAttribute("aria-label")`)
	if label != "observation 1 of 2: x 1.00, y 2.00, weight 0.982" {
		t.Errorf("the first observation is spoken as %q", label)
	}
	w.set("x", 3.0)
	w.wait(`location.hash.includes("x=3")`)
	js[bool](w.tab, `document.querySelector("#curve .grip").focus(), true`)
	w.do(chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowUp))
	w.wait(`location.hash.includes("points=1.05,2.05,")`)
	w.do(chromedp.KeyEvent(kb.Delete))
	w.wait(`document.querySelectorAll("#curve .grip").length === 1`)
	w.click("#learn") // a single observation has no others
	w.wait(`document.querySelector("#notes .bad")?.textContent.includes("add a second one")`)
	if !js[bool](w.tab, `(() => { const r = document.querySelector("#notes .bad").getBoundingClientRect(); return r.top >= 0 && r.bottom <= innerHeight; })()`) {
		t.Error("the message is not on the screen")
	}
	w.wait(`[...document.querySelectorAll("#learn-read dd")][2].textContent === "–"`)
	w.do(chromedp.KeyEvent("\t"))
	w.click("#clear")
	w.wait(`document.querySelector("#curve-read dd").textContent === "none" && document.getElementById("curve-read").textContent.includes("New observations")`)
	if !js[bool](w.tab, `document.querySelector("#weights .field").hidden`) {
		t.Error("without observations there is a map of weights")
	}
	w.click("#fresh")
	w.wait(`document.querySelectorAll("#curve .grip").length === 50`)
	w.click("#learn")
	w.wait(`document.querySelector("#learn").textContent === "Learn" && location.hash.includes("w=")`)
	if got := w.text("#learn-read dd"); got != "300" {
		t.Errorf("learning ended after step %s", got)
	}
	if asked := w.requests(); len(asked) > 0 {
		t.Errorf("requests after loading: %v", asked)
	}
	for _, bad := range []string{"points=none", "points=x,y&w=NaN&x=1e9", "w=-5&seed=1e99", "%%%"} {
		w.lesson(url + "regression.html#" + bad)
		if problem := w.text("#notes .bad"); problem != "" {
			t.Errorf("%s: %s", bad, problem)
		}
	}
}

// Lesson 2 shows weights that sum to 1, and padding has none.
func TestSiteScores(t *testing.T) {
	w := watch(t, 1280, 900)
	w.lesson(site(t) + "scores.html#at=1,1,1,0,0,1,-1,0,0,-1,2,2,1,1&valid=5")
	cells := js[[]string](w.tab,
		`[...document.querySelectorAll("#compare tbody tr:first-child td")].map((c) => c.textContent)`)
	sum := 2*math.E + 2/math.E + math.Exp(4) // dot products 1, 1, −1, −1, 4
	for i, score := range []float64{1, 1, -1, -1, 4} {
		if want := fmt.Sprintf("%.2f", math.Exp(score)/sum); cells[i] != want {
			t.Errorf("key %d has the weight %s, want %s", i, cells[i], want)
		}
	}
	if cells[5] != "–" {
		t.Errorf("padding has the weight %s", cells[5])
	}
	before := w.text("#lengths-read")
	w.set("nan", true)
	w.wait(`document.querySelector("#lengths-read").textContent.includes("NaN")`)
	if after := w.text("#lengths-read"); !strings.HasPrefix(after, strings.TrimSuffix(before, ".")) {
		t.Errorf("NaN in padding changes the output: %q, then %q", before, after)
	}
	w.set("size", 10)
	w.wait(`location.hash.includes("e=1024")`)
	if len(w.requests()) == 0 {
		t.Error("no request is recorded")
	}
}

// Lesson 5 shows the expression of a mask, and a cache that gives the same bits.
func TestSiteMasks(t *testing.T) {
	w := watch(t, 380, 800)
	w.lesson(site(t) + "masks.html#window=1&documents=1&position=alibi")
	for id, want := range map[string]string{
		"expression": "attn.And(mask.Causal(), mask.Window(3, 0), mask.Documents([]int{5, 12}))",
		"visible":    "36 of 144 pairs are visible.", "cache-read": "the same bits", "layouts-read": "the bits are the same",
	} {
		if got := w.text("#" + id); !strings.Contains(got, want) {
			t.Errorf("%s is %q, want %q", id, got, want)
		}
	}
	js[bool](w.tab, `document.querySelector("#map .field").focus(), true`)
	w.do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowRight))
	w.wait(`document.getElementById("spoken")?.textContent === "query 0, key 1: masked"`)
	w.click("#step")
	w.wait(`location.hash.includes("steps=7")`)
	// The prefix mask contains the causal one: the page says so, and its expression has one of them.
	w.set("tokens", 2)
	w.wait(`document.getElementById("expression").textContent.includes("attn.And(mask.Prefix(2), mask.Window(3, 0)")`)
	if !js[bool](w.tab, `document.getElementById("causal").disabled && document.getElementById("causal-note").checkVisibility()`) {
		t.Error("with the prefix mask the causal one can still be chosen")
	}
	// A map without a visible cell has a scale, too.
	w.lesson(site(t) + "masks.html#valid=1&length=0")
	if got := w.text("#map .legend"); got != "0.001.00masked" {
		t.Errorf("the scale of a map without visible cells is %q", got)
	}
}

// Lesson 6 opens the heads that its text names, and the exported page shows the same numbers.
func TestSiteModel(t *testing.T) {
	w := watch(t, 1280, 900)
	url := site(t)
	for hash, want := range map[string]string{"a=0.2": "previous1.00", "a=4.5": "first0.90", "a=3.11": "last0.12"} {
		w.do(chromedp.Navigate("about:blank"), chromedp.Navigate(url+"assets/minilm-heads.html#"+hash))
		w.drawn()
		w.wait(`document.querySelector(".facts") !== null`)
		if got := w.text(".facts"); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", hash, got, want)
		}
	}
	w.lesson(url + "minilm.html")
	w.click(`[data-find="sink"]`)
	w.wait(`location.hash === "#find=sink" && document.getElementById("heads").src.includes("a=4.5")`)
	if got := w.text("#answer"); !strings.Contains(got, "0.90") {
		t.Errorf("the answer is %q", got)
	}
}

// What is chosen in the frame of lesson 6 is in the address of the page, and a link opens it.
func TestSiteFrameState(t *testing.T) {
	url := site(t) + "minilm.html"
	w := watch(t, 1280, 900)
	// Without its sandbox, the test can look into the frame.
	const inside = `document.getElementById("heads").contentDocument`
	unlock := func() {
		t.Helper()
		js[bool](w.tab, `(() => {
			const frame = document.getElementById("heads"), open = frame.cloneNode();
			open.removeAttribute("sandbox");
			frame.replaceWith(open);
			return true;
		})()`)
		w.wait(inside + `?.body?.dataset.drawn !== undefined`)
	}
	shows := func(hash, title, view, token string) {
		t.Helper()
		w.wait(fmt.Sprintf(`location.hash === %q`, hash))
		w.wait(fmt.Sprintf(`%[1]s.querySelector(".panel h3").textContent.toLowerCase() === %[2]q && %[1]s.querySelector('[data-view="%[3]s"]').ariaChecked === "true"`, inside, title, view))
		if token != "" {
			w.wait(fmt.Sprintf(`new URLSearchParams(%s.location.hash.slice(1)).get("tok") === %q`, inside, token))
		}
	}
	press := func(selector string) {
		t.Helper()
		js[bool](w.tab, fmt.Sprintf(`(%s.querySelector(%q).click(), true)`, inside, selector))
	}
	w.lesson(url + "#find=it&a=2.3&v=lines&tok=q4")
	unlock()
	shows("#find=it&a=2.3&v=lines&tok=q4", "encoder, layer 2, head 3", "lines", "q4")
	rect := js[[]float64](w.tab, `(() => {
		const r = `+inside+`.querySelector('[data-view="text"]').getBoundingClientRect();
		return [r.x + r.width / 2, r.y + r.height / 2];
	})()`)
	press(`.thumb[aria-label="encoder, layer 5, head 7"]`)
	shows("#find=it&a=5.7&v=lines&tok=q4", "encoder, layer 5, head 7", "lines", "")
	w.click("#theme") // keeps what is chosen
	w.wait(inside + `.documentElement.dataset.theme === "light"`)
	shows("#find=it&a=5.7&v=lines&tok=q4", "encoder, layer 5, head 7", "lines", "")
	w.click(`[data-find="sink"]`)
	shows("#find=sink", "encoder, layer 4, head 5", "map", "")
	press(`[data-view="text"]`)
	shows("#find=sink&a=4.5&v=text&c=one", "encoder, layer 4, head 5", "text", "")
	press(`[data-view="map"]`) // what the pattern begins with is its name
	shows("#find=sink", "encoder, layer 4, head 5", "map", "")

	// In its sandbox the frame reports the same, and messages of other windows are ignored.
	w.lesson(url + "#a=2.3")
	w.do(chromedp.ScrollIntoView(chromedp.CSS("#heads")))
	js[bool](w.tab, `(window.postMessage({ attn: "a=1.1" }, "*"), true)`)
	at := js[[]float64](w.tab, `(() => {
		const r = document.getElementById("heads").getBoundingClientRect();
		return [r.x + 1, r.y + 1];
	})()`)
	for end := time.Now().Add(patience); js[string](w.tab, "location.hash") == "#a=2.3" && time.Now().Before(end); {
		w.do(chromedp.MouseClickXY(at[0]+rect[0], at[1]+rect[1])) // again until the page in the frame is ready
		js[bool](w.tab, "new Promise((done) => setTimeout(() => done(true), 200))")
	}
	if hash := w.hash(); hash != "#a=2.3&v=text" {
		t.Errorf("after a click in the sandbox the address ends in %q", hash)
	}
}

// The frame of lesson 6 draws all heads before anybody scrolls to it: a page may be printed unread. Without its
// sandbox, the test can look into the frame.
func TestSiteFrame(t *testing.T) {
	url := site(t)
	for _, width := range []int{380, 640, 800, 1440} {
		w := watch(t, width, 500)
		w.lesson(url + "minilm.html")
		js[bool](w.tab, `(() => {
			const frame = document.getElementById("heads"), open = frame.cloneNode();
			open.removeAttribute("sandbox");
			frame.replaceWith(open);
			return true;
		})()`)
		w.wait(`document.getElementById("heads").contentDocument?.body?.dataset.drawn !== undefined`)
		w.wait(`document.getElementById("heads").contentDocument.querySelectorAll(".thumb canvas").length === 6 * 14 + 1`)
		w.wait(`[...document.getElementById("heads").contentDocument.querySelectorAll(".thumb canvas")].every((c) => c.width > 4)`)
		if below := js[bool](w.tab, `document.getElementById("heads").getBoundingClientRect().top > innerHeight + 200`); !below {
			t.Errorf("at %d pixels the frame is in view: the test shows nothing", width)
		}
		if wide := js[int](w.tab, `document.getElementById("heads").contentDocument.documentElement.scrollWidth`); wide > width {
			t.Errorf("at %d pixels the page in the frame is %d wide", width, wide)
		}
		if hidden := js[int](w.tab, `(() => {
			const list = document.getElementById("heads").contentDocument.getElementById("overview");
			return list.scrollWidth - list.clientWidth;
		})()`); hidden > 0 {
			t.Errorf("at %d pixels the list of heads hides %d pixels of its columns", width, hidden)
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
	if titles := found("multihead"); !slices.ContainsFunc(titles, func(s string) bool { return strings.Contains(s, "Multi-head") }) {
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
		pages = strings.Fields("index regression scores reverse dates masks minilm search docs/index docs/heads")
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
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "lessons.md"))
	if err != nil {
		t.Fatal(err)
	}
	type line struct{ First, Next float64 } // the left edges of the first row and of those after it
	type block struct {
		Selected string
		Lines    []line
	}
	blocks := js[[]block](w.tab, `[...document.querySelectorAll(".text pre")].map((pre) => {
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
		if !strings.Contains(string(text), "\n```go\n"+strings.TrimRight(b.Selected, "\n")+"\n```\n") {
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
