package browsertest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// Nothing that is on the screen moves while a page loads.
func TestSiteShifts(t *testing.T) {
	url := site(t)
	for _, width := range []int{390, 800, 1440} {
		w := watch(t, width, 800)
		for _, name := range append([]string{"index", "docs/index"}, lessonNames...) {
			w.do(chromedp.Navigate("about:blank"), chromedp.Navigate(url+name+".html"))
			w.wait(`document.readyState === "complete"`)
			w.wait(`document.body.dataset.lesson === undefined || document.body.dataset.drawn !== undefined`)
			js[bool](w.tab, `(window.shift = 0, new PerformanceObserver((list) => { for (const e of list.getEntries()) shift += e.value; })
				.observe({ type: "layout-shift", buffered: true }), true)`)
			if shift := js[float64](w.tab, `new Promise((done) => setTimeout(() => done(shift), 100))`); shift >= 0.05 {
				t.Errorf("%s, %d pixels wide, shifts by %.3f", name, width, shift)
			}
		}
	}
	// A page that shifts would be seen.
	w := watch(t, 390, 800)
	w.lesson(url + "masks.html")
	js[bool](w.tab, `(window.shift = 0, new PerformanceObserver((list) => { for (const e of list.getEntries()) shift += e.value; })
		.observe({ type: "layout-shift" }), document.querySelector("h1").style.marginTop = "300px", true)`)
	w.wait(`shift > 0.05`)
}

// A tap on a cell of a map shows its row, column and weight, and they stay.
func TestSiteTap(t *testing.T) {
	w := watch(t, 390, 800)
	if _, err := chromedp.Call(w.ctx, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{Enabled: true}); err != nil {
		t.Fatal(err)
	}
	w.lesson(site(t) + "masks.html")
	tap := func(selector string, right, down float64) {
		t.Helper()
		at := js[[]float64](w.tab, fmt.Sprintf(`(() => { const e = document.querySelector(%q); e.scrollIntoView({ block: "center" }); const r = e.getBoundingClientRect(); return [r.left + %v * r.width, r.top + %v * r.height]; })()`, selector, right, down))
		for _, p := range []input.DispatchTouchEventParams{
			{Type: "touchStart", TouchPoints: []*input.TouchPoint{{X: at[0], Y: at[1]}}}, {Type: "touchEnd", TouchPoints: []*input.TouchPoint{}},
		} {
			if _, err := chromedp.Call(w.ctx, input.DispatchTouchEvent, p); err != nil {
				t.Fatal(err)
			}
		}
	}
	tap("#map .field", 0.98, 0.98) // the last cell
	w.wait(`document.querySelector("#map .tip").checkVisibility()`)
	if got := w.text("#map .tip"); !strings.HasPrefix(got, "query 11, key 11: ") {
		t.Errorf("the last cell says %q", got)
	}
	if got := js[bool](w.tab, `new Promise((done) => setTimeout(() => done(document.querySelector("#map .tip").checkVisibility()), 300))`); !got {
		t.Error("what a tap shows does not stay")
	}
	tap("#builder-title", 0.1, 0.5)
	w.wait(`!document.querySelector("#map .tip").checkVisibility()`)
}

// On a phone, what is pressed is as large as a finger. Ten characters of a date share a row of the first page, and the
// observations of lesson 1 are close to each other; the maps in the frame of lesson 7 have sliders beside them.
func TestSiteFingers(t *testing.T) {
	url := site(t)
	w := watch(t, 390, 844)
	if _, err := chromedp.Call(w.ctx, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{Enabled: true}); err != nil {
		t.Fatal(err)
	}
	for _, language := range []string{"", "ja/"} {
		for _, name := range append([]string{"index"}, lessonNames...) {
			w.lesson(url + language + name + ".html")
			all := js[[]string](w.tab, `[...document.querySelectorAll("button, select, input, nav a, summary, #plane .grip, .light")]
				.filter((e) => e.checkVisibility() && e.type !== "range" && e.type !== "file").map((e) => {
					const label = /checkbox|radio/.test(e.type) ? e.labels[0] : e, box = label.getBoundingClientRect();
					return (box.height < 39.5 || box.width < (e.closest("#writes") ? 26 : 39.5) ? "small" : "") + " " + Math.round(box.width) + " × " + Math.round(box.height) + " " + (e.id || e.textContent);
				})`)
			if len(all) < 15 {
				t.Errorf("%s%s has %d controls: the test shows nothing", language, name, len(all))
			}
			if small := slices.DeleteFunc(all, func(s string) bool { return !strings.HasPrefix(s, "small") }); len(small) > 0 {
				t.Errorf("%s%s: %q", language, name, small)
			}
			if wide := js[int](w.tab, "document.documentElement.scrollWidth"); wide > 390 {
				t.Errorf("%s%s is %d pixels wide", language, name, wide)
			}
		}
	}
}

// While a model trains, its map and the button that pauses it are on one screen, also on a phone.
func TestSiteFormingMap(t *testing.T) {
	url := site(t)
	for _, width := range []int{390, 1280} {
		w := watch(t, width, 800)
		w.lesson(url + "reverse.html#step=3")
		js[bool](w.tab, `(document.querySelector("#train .controls").scrollIntoView(), true)`)
		if got := js[float64](w.tab, `document.querySelector("#train .field").getBoundingClientRect().bottom`); got > 800 {
			t.Errorf("%d pixels wide, the map ends %.0f pixels below the button, want 800", width, got)
		}
	}
}

// Without scripts a page has its text, code and still pictures, and says what is missing. No figure waits for a script.
func TestSiteWithoutScripts(t *testing.T) {
	url := site(t)
	b := open(t, 390, 844)
	if _, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		t.Fatal(err)
	}
	for _, name := range append([]string{"index"}, lessonNames...) {
		b.do(chromedp.Navigate(url + "zh/" + name + ".html"))
		if pictures := js[int](b, `[...document.querySelectorAll("main img")].filter((e) => e.checkVisibility()).length`); pictures == 0 && name != "shapes" { // which prints its arrays
			t.Errorf("%s has no picture", name)
		}
		if !js[bool](b, `document.querySelector("body > noscript").checkVisibility() && document.querySelector("pre").checkVisibility()`) {
			t.Errorf("%s has no code, or does not say what is missing", name)
		}
		if left := js[[]string](b, `[...document.querySelectorAll(".live, .tabs, button, input, iframe")].filter((e) => e.checkVisibility() && !e.querySelector("noscript") && e.id !== "theme").map((e) => e.outerHTML.slice(0, 80))`); len(left) > 0 {
			t.Errorf("%s has what does not work without a script: %q", name, left)
		}
		if wide := js[int](b, "document.documentElement.scrollWidth"); wide > 390 {
			t.Errorf("%s is %d pixels wide", name, wide)
		}
	}
}
