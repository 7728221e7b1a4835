package browsertest

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// uses has, for each lesson, what a reader does after loading it, and what then becomes true.
var uses = []struct {
	page string
	use  func(w *watched)
	then string
}{
	{"regression", func(w *watched) {
		w.set("w", 0.7)
		w.set("x", 3.25)
		w.set("noise", 1.0)
		w.click("#fresh")
		w.wait(`location.hash.includes("seed=2")`)
		w.set("trap", true)
	}, `document.getElementById("learn-read").textContent.includes("itself included")`},
	{"scores", func(w *watched) {
		w.set("what", "scores")
		w.set("valid", 4)
		w.click("#draws")
		w.set("length-0", 3)
		w.set("nan", true)
		w.set("size", 9)
		w.click("#vectors")
	}, `document.querySelector("#lengths-read").textContent.includes("NaN") && location.hash.includes("vectors=2")`},
	{"reverse", func(w *watched) {
		w.set("reverse-seed", 3)
		w.wait(`location.hash.includes("seed=3")`)
		w.set("reverse-text", "jihgf")
		w.set("reverse-until", 12)
		w.click("#train button")
	}, `document.querySelector("#train dd").textContent === "12 of 1,250" && location.hash.includes("step=12") && location.hash.includes("jihgf")`},
	{"shapes", func(w *watched) {
		w.set("preset", "2")
		w.wait(`document.getElementById("width-out").textContent === "128"`)
		w.set("heads", 4)
		w.wait(`document.getElementById("preset").value === ""`)
		w.click("#draws")
		w.click(`#axes [data-axis="H"]`)
		w.set("at-Lk", 2)
	}, `document.getElementById("strip").textContent.includes("weights[0, :, 0, 2] = ") && location.hash.includes("seed=2") && location.hash.includes("axis=H")`},
	{"dates", func(w *watched) {
		w.set("sample", "le 1er août 1987")
		js[bool](w.tab, `document.querySelectorAll("#grid input")[5].click(), document.querySelectorAll("#grid .head")[6].click(), true`)
		w.set("method", "confidence")
		w.click("#rank")
		w.wait(`document.getElementById("rank-progress").textContent.startsWith("Measured in")`)
		w.set("k", 3)
	}, `document.getElementById("parameters").textContent.includes("%") && document.getElementById("prune-progress").textContent === "" &&
		document.querySelector("#curve svg").getAttribute("aria-label").includes("3 removed") && /^\d+ \(/.test(document.getElementById("exact").textContent)`},
	{"masks", func(w *watched) {
		w.set("left", 2)
		w.set("end-0", 7)
		w.set("slope", 0.25)
		w.click("#draws")
		w.set("batch", 2)
		w.set("one", 1)
		w.click("#step")
	}, `document.getElementById("expression").textContent.includes("mask.Window(2, 0)") && location.hash.includes("steps=7") && location.hash.includes("seed=2")`},
	{"minilm", func(w *watched) { w.click(`[data-find="it"]`) }, `document.getElementById("answer").textContent.includes("0.68")`},
	{"linear", func(w *watched) {
		w.set("n", 30)
		w.set("p", 5)
		w.click("#fresh")
		w.set("size", "4")
		w.set("again", true)
	}, `document.getElementById("state-read").textContent.includes("11 × 2 = 22") && location.hash.includes("seed=2") && location.hash.includes("again=1")`},
	{"induction", func(w *watched) {
		w.set("seed", 3)
		w.wait(`location.hash.includes("seed=3") && !document.getElementById("cut").disabled`)
		w.click("#off button:nth-child(3)")
		w.click("#patched button:nth-child(6)")
		w.set("at", 16)
		js[bool](w.tab, `document.querySelectorAll("#grid .head")[4].click(), true`)
	}, `/%$/.test(document.getElementById("patch-read").textContent) && /[+−]\d/.test(document.getElementById("silence-read").textContent) &&
		location.hash.includes("off=0.2") && location.hash.includes("patch=1.1") && document.getElementById("at-out").textContent.startsWith("16: ")`},
}

// figures is everything that a page shows by its controls, without times.
const figures = `(() => {
	const text = (selector) => [...document.querySelectorAll(selector)].map((e) => e.textContent);
	const timed = new Set(["took", "pruned-time", "pruned-speed", "rank-progress", "prune-progress"]);
	return JSON.stringify([
		[...document.querySelectorAll("main input, main select")].map((e) => e.type === "checkbox" || e.type === "radio" ? e.checked : e.value),
		[...document.querySelectorAll("main dd, main output")].filter((e) => !timed.has(e.id) && !/second|computing/.test(e.previousSibling?.textContent)).map((e) => e.textContent),
		text("main table"), text("main .live p:not([role]), #answer, main .live pre, main .names"),
		[...document.querySelectorAll("main .live [aria-label]")].map((e) => e.getAttribute("aria-label")),
		[...document.querySelectorAll("main [aria-pressed]")].map((e) => e.getAttribute("aria-pressed")),
	], null, 1);
})()`

// Once a lesson is loaded, it needs no server: nothing is requested, and everything works without one.
func TestSiteWithoutServer(t *testing.T) {
	findBrowser(t)
	dir, err := theSite()
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range uses {
		t.Run(u.page, func(t *testing.T) {
			server := httptest.NewServer(http.FileServer(http.Dir(dir)))
			defer server.Close()
			w := watch(t, 1280, 900)
			w.lesson(server.URL + "/" + u.page + ".html")
			w.wait(`!document.body.dataset.program || document.documentElement.dataset.ready !== undefined`)
			if u.page == "minilm" { // the pages for the frame load after the page; this is the last
				w.wait(`performance.getEntriesByType("resource").some((e) => e.name.includes("chinese.html") && e.responseEnd > 0)`)
			}
			server.Close()
			w.requests()
			u.use(w)
			w.wait(u.then)
			if asked := w.requests(); len(asked) > 0 {
				t.Errorf("requests after loading: %v", asked)
			}
			if problem := w.text("#notes .bad"); problem != "" {
				t.Errorf("the page says: %s", problem)
			}
		})
	}
}

// The address of a lesson has its whole state: another tab shows the same figures.
func TestSiteAddress(t *testing.T) {
	url := site(t)
	for _, u := range uses {
		t.Run(u.page, func(t *testing.T) {
			first := watch(t, 1280, 900)
			first.lesson(url + u.page + ".html")
			before := js[string](first.tab, figures)
			u.use(first)
			first.wait(u.then)
			second := watch(t, 1280, 900)
			second.lesson(url + u.page + ".html" + first.hash())
			second.wait(u.then)
			var want, got []string
			for end := time.Now().Add(patience / 4); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
				want = strings.Split(js[string](first.tab, figures), "\n")
				got = strings.Split(js[string](second.tab, figures), "\n")
				if slices.Equal(want, got) {
					break
				}
			}
			if strings.Join(want, "\n") == before {
				t.Error("the controls change nothing: the test shows nothing")
			}
			if first.hash() != second.hash() {
				t.Errorf("the address becomes %s, want %s", second.hash(), first.hash())
			}
			for i := range max(len(want), len(got)) {
				if i >= len(want) || i >= len(got) || want[i] != got[i] {
					t.Fatalf("%s shows\n%s\nwant\n%s", first.hash(), strings.Join(got[min(i, len(got)):min(i+2, len(got))], "\n"),
						strings.Join(want[min(i, len(want)):min(i+2, len(want))], "\n"))
				}
			}
		})
	}
}

// A tab that the browser freezes while it trains says so afterwards, and continues.
func TestSiteFrozenTab(t *testing.T) {
	w := watch(t, 1280, 900)
	w.lesson(site(t) + "reverse.html")
	w.click("#train button")
	step := func() int {
		return js[int](w.tab, `parseInt(document.querySelector("#train dd").textContent.replace(",", ""))`)
	}
	w.wait(`parseInt(document.querySelector("#train dd").textContent) > 3`)
	freeze := func(state page.SetWebLifecycleStateState) {
		t.Helper()
		if _, err := chromedp.Call(w.ctx, page.SetWebLifecycleState, page.SetWebLifecycleStateParams{State: state}); err != nil {
			t.Fatal(err)
		}
	}
	freeze(page.SetWebLifecycleStateStateFrozen)
	time.Sleep(7 * time.Second)
	freeze(page.SetWebLifecycleStateStateActive)
	w.wait(`/^The browser let this tab sleep for \d+\.\d s\. Nothing is lost: training continued at step \d/.test(document.querySelector("#train .quiet[role=status]").textContent)`)
	at := step()
	w.wait(fmt.Sprintf(`parseInt(document.querySelector("#train dd").textContent.replace(",", "")) > %d`, at))
	w.click("#train button")
	w.wait(`document.querySelector("#train button").textContent === "Continue"`)
}

// Input that means nothing is refused in words, and the lesson still works.
func TestSiteBadInput(t *testing.T) {
	w := watch(t, 1280, 900)
	url := site(t)
	w.lesson(url + "dates.html#text=" + strings.Repeat("5", 10_000))
	w.wait(`document.getElementById("text-problem").textContent.startsWith("The text has 10,000 characters")`)
	w.set("text", "👩‍👩‍👧 5 May 2011")
	w.wait(`document.getElementById("text-problem").textContent.includes("no “👩” U+200D “👧”: the model reads <unk>") && /^\d{4}-\d\d-\d\d$/.test(document.getElementById("output").textContent)`)
	w.lesson(url + "regression.html#points=none&trap=1")
	w.wait(`document.querySelector("#curve-read dd").textContent === "none" && document.getElementById("learn").disabled`)
	for _, id := range []string{"w", "x"} {
		w.set(id, 1)
	}
	w.set("trap", false)
	js[bool](w.tab, `(() => {
		const picture = document.querySelector("#curve svg"), box = picture.getBoundingClientRect();
		picture.dispatchEvent(new MouseEvent("dblclick", { bubbles: true, clientX: box.x + 200, clientY: box.y + 100 }));
		return true;
	})()`)
	w.wait(`document.querySelectorAll("#curve .grip").length === 1 && !document.getElementById("learn").disabled`)
	if problem := w.text("#notes .bad"); problem != "" {
		t.Errorf("the page says: %s", problem)
	}
}

// A program that is cut short, has a wrong byte or does not exist is reported on the page.
func TestSiteDamagedProgram(t *testing.T) {
	findBrowser(t)
	dir, err := theSite()
	if err != nil {
		t.Fatal(err)
	}
	name := "/assets/lesson.wasm.gz"
	whole, err := os.ReadFile(dir + name)
	if err != nil {
		t.Fatal(err)
	}
	wrong := bytes.Clone(whole)
	wrong[len(wrong)/2] ^= 0x40
	unknown := bytes.Clone(whole)
	unknown[2] = 0xff
	checksum := bytes.Clone(whole)
	checksum[len(checksum)-8] ^= 1 // the CRC-32 is before the size
	for _, c := range []struct {
		name, want string
		program    []byte
	}{
		{"half of it", "damaged or cut short", whole[:len(whole)/2]},
		{"almost whole", "damaged or cut short", whole[:len(whole)-8]},
		{"header only", "damaged or cut short", whole[:10]},
		{"empty", "damaged or cut short", nil},
		{"unknown compression", "damaged or cut short", unknown},
		{"wrong byte", "damaged or cut short", wrong},
		{"zeros", "damaged or cut short", make([]byte, len(whole))},
		{"a few zeros", "damaged or cut short", make([]byte, 30)},
		{"another page", "damaged or cut short", []byte("<!DOCTYPE html><title>Page not found</title><p>Go back to the start.")},
		{"wrong checksum", "damaged or cut short", checksum},
		{"something behind it", "damaged or cut short", append(bytes.Clone(whole), 0)},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := http.FileServer(http.Dir(dir))
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == name {
					w.Write(c.program)
					return
				}
				files.ServeHTTP(w, r)
			}))
			defer server.Close()
			b := open(t, 800, 600)
			b.do(chromedp.Navigate(server.URL + "/scores.html"))
			b.wait(`document.querySelector("#notes .bad")?.textContent`)
			if got := b.text("#notes .bad"); !strings.Contains(got, c.want) {
				t.Errorf("the page says %q, want %q", got, c.want)
			}
		})
	}
}
