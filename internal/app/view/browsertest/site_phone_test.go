package browsertest

import (
	"fmt"
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
