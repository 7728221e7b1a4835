package browsertest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

var lessonNames = strings.Fields("regression scores reverse shapes dates masks minilm linear induction")

// still makes a tab prefer reduced motion.
func still(w *watched) {
	w.Helper()
	if _, err := chromedp.Call(w.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: "reduce"}}}); err != nil {
		w.Fatal(err)
	}
}

// Each control of a lesson has a name for a screen reader, and the Tab key reaches it. On a narrow screen a page does
// not scroll sideways. With reduced motion nothing is animated.
func TestSiteAccess(t *testing.T) {
	url := site(t)
	for _, name := range append([]string{"index", "search", "docs/index"}, lessonNames...) {
		t.Run(strings.ReplaceAll(name, "/", "-"), func(t *testing.T) {
			w := watch(t, 380, 800)
			still(w)
			w.do(chromedp.Navigate(url + name + ".html"))
			w.wait(`document.readyState === "complete"`)
			w.wait(`document.body.dataset.lesson === undefined || document.body.dataset.drawn !== undefined`)

			tree, err := chromedp.Call(w.ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
			if err != nil {
				t.Fatal(err)
			}
			roles, named := strings.Fields("button slider textbox searchbox spinbutton combobox checkbox radio link application img image table math"), 0
			for _, n := range tree.Nodes {
				if n.Ignored || n.Role == nil || !slices.Contains(roles, strings.Trim(string(n.Role.Value), `"`)) {
					continue
				}
				switch {
				case n.Name != nil && strings.Trim(string(n.Name.Value), `" `) != "":
					named++
				case !slices.Contains([]string{"math", "table"}, strings.Trim(string(n.Role.Value), `"`)):
					t.Errorf("a %s has no name: node %d", n.Role.Value, n.BackendDOMNodeID)
				}
			}
			if named < 5 {
				t.Errorf("%d controls have a name: the test shows nothing", named)
			}

			// What the Tab key should reach: one of the radio buttons of a name.
			count := js[int](w.tab, `(() => {
				const seen = new Set();
				window.missing = [...document.querySelectorAll("a[href], button, input, select, iframe, [tabindex]")].filter((e) => {
					if (e.disabled || e.tabIndex < 0 || !e.checkVisibility() || e.getClientRects().length === 0) return false;
					if (e.type !== "radio") return true;
					return e.checked;
				});
				document.activeElement?.blur();
				return window.missing.length;
			})()`)
			for range 2*count + 8 { // a page that is drawn anew meanwhile takes the focus back to its beginning
				w.do(chromedp.KeyEvent(kb.Tab))
				if js[int](w.tab, `(window.missing = window.missing.filter((e) => e !== document.activeElement)).length`) == 0 {
					break
				}
				if name == "minilm" && js[bool](w.tab, `(() => { // the frame may get the focus late
					window.missing = window.missing.filter((e) => e !== document.activeElement);
					return document.activeElement.tagName === "IFRAME";
				})()`) {
					break // the keys of the page in the frame are tested with attn view's
				}
			}
			left := js[[]string](w.tab, `window.missing.filter((e) => e.isConnected && (document.body.dataset.lesson !== "minilm" || !e.matches("iframe ~ *, #own *, #exercise *, nav.turn *, footer *, .text pre, a")))
				.map((e) => e.outerHTML.slice(0, 120))`)
			if len(left) > 0 {
				t.Errorf("the Tab key does not reach %q", left)
			}

			if wide := js[int](w.tab, "document.documentElement.scrollWidth"); wide > 380 {
				t.Errorf("the page is %d pixels wide", wide)
			}
			moving := js[[]string](w.tab, `[...document.getAnimations().map((a) => a.effect.target.tagName),
				...[...document.querySelectorAll("*")].filter((e) => getComputedStyle(e).transitionDuration.split(", ").some((d) => parseFloat(d) > 0)).map((e) => e.className)]`)
			if len(moving) > 0 {
				t.Errorf("with reduced motion these still move: %q", moving)
			}
		})
	}
}

// What a screen reader says has the numbers of the screen: the cells of maps, and the summaries of charts.
func TestSiteSpoken(t *testing.T) {
	url := site(t)
	w := watch(t, 1280, 900)
	for _, name := range lessonNames {
		if name == "shapes" || name == "minilm" { // without such maps
			continue
		}
		w.lesson(url + name + ".html")
		if name == "dates" { // which says how many dates are right, once it has counted them
			w.wait(`/^\d+ \(/.test(document.getElementById("exact").textContent) && document.getElementById("spoken") !== null`)
		}
		maps := js[int](w.tab, `document.querySelectorAll(".heat .field").length`)
		for i := range maps {
			if !js[bool](w.tab, fmt.Sprintf(`(() => { const f = document.querySelectorAll(".heat .field")[%d]; f.focus(); return f.checkVisibility() && document.activeElement === f; })()`, i)) {
				continue
			}
			w.do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowDown))
			w.wait(fmt.Sprintf(`(() => {
				const tip = document.querySelectorAll(".heat .field")[%d].querySelector(".tip"), said = document.getElementById("spoken")?.textContent ?? "";
				return !tip.hidden && said !== "" && said === tip.textContent;
			})()`, i))
		}
		if maps == 0 {
			t.Errorf("%s has no map", name)
		}
	}
	// The estimate of lesson 1 is in the summary of its chart, in the numbers below it, and in the tick of the slider.
	w.lesson(url + "regression.html#x=1.5")
	estimate := w.text("#curve-read dd")
	if got := js[string](w.tab, `document.querySelector("#curve svg").getAttribute("aria-label")`); !strings.Contains(got, "At 1.50 it is "+estimate+",") {
		t.Errorf("the chart is spoken as %q, the screen has %s", got, estimate)
	}
	w.set("x", 2.0)
	w.wait(`document.getElementById("spoken")?.textContent === "At 2.00 the estimate is " + document.querySelector("#curve-read dd").textContent + "."`)
	w.lesson(url + "scores.html#e=64")
	if got := js[string](w.tab, `document.getElementById("size").getAttribute("aria-valuetext")`); got != "E "+w.text("#size-out") {
		t.Errorf("E is spoken as %q", got)
	}
}

// Brackets around a fraction are as high as the fraction.
func TestSiteBrackets(t *testing.T) {
	w := watch(t, 1280, 900)
	w.lesson(site(t) + "shapes.html")
	if bad := js[[]string](w.tab, `[...document.querySelectorAll('math mo[fence="true"]')].filter((mo) => {
		const inside = mo.parentElement.querySelector(":scope > mrow");
		return !mo.parentElement.classList.contains("fenced") && mo.getBoundingClientRect().height < 0.75 * inside.getBoundingClientRect().height;
	}).map((mo) => mo.parentElement.textContent)`); len(bad) > 0 {
		t.Errorf("brackets are small: %q", bad)
	}
	if n := js[int](w.tab, `document.querySelectorAll('math mo[fence="true"]').length`); n == 0 {
		t.Error("the lesson has no brackets: the test shows nothing")
	}
}
