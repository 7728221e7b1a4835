package browsertest

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// Lessons in other languages show the same figures. Texts of figures that are not translated are in English.
func TestSiteLanguages(t *testing.T) {
	url := site(t)
	for _, language := range []string{"zh", "ja"} {
		w := watch(t, 390, 800)
		for _, name := range append([]string{"index"}, lessonNames...) {
			w.do(chromedp.Navigate("about:blank"), chromedp.Navigate(url+language+"/"+name+".html"))
			w.wait(`document.readyState === "complete"`)
			w.wait(`document.body.dataset.lesson === undefined || document.body.dataset.drawn !== undefined`)
			if got := js[string](w.tab, `document.documentElement.lang`); got != language {
				t.Errorf("%s is in %q", name, got)
			}
			// Words with a small letter after a space, or at the beginning, that are not code.
			english := js[[]string](w.tab, `(() => {
				const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
				while (walk.nextNode()) {
					const node = walk.currentNode;
					if (/\b(the|of|and|is|to|in|weights|heads|with|step)\b/.test(node.data) && !node.parentElement.closest("pre, code, math, script, noscript, textarea, #sentence, .text, h4, .numbers, [lang=en]")) found.push(node.data.trim());
				}
				return found;
			})()`)
			if len(english) > 0 {
				t.Logf("%s/%s has English text: %q", language, name, english)
			}
			if wide := js[int](w.tab, "document.documentElement.scrollWidth"); wide > 390 {
				t.Errorf("%s/%s is %d pixels wide", language, name, wide)
			}
			if problem := w.text("#notes .bad"); problem != "" {
				t.Errorf("%s/%s says: %s", language, name, problem)
			}
		}
	}
	w := watch(t, 1280, 800)
	for query, want := range map[string]string{"注意力": "zh/", "マスク": "ja/"} {
		w.do(chromedp.Navigate("about:blank"), chromedp.Navigate(url+"search.html#q="+query))
		w.wait(`document.querySelectorAll("#found a").length > 5`)
		if got := js[string](w.tab, `document.querySelector("#found a").getAttribute("href")`); !strings.HasPrefix(got, want) && !strings.HasPrefix(got, "docs/glossary.") {
			t.Errorf("%s finds %s first", query, got)
		}
	}
}

// A lesson opens in the browser's language, until the reader chooses another. The state of its figures stays.
func TestSiteChosenLanguage(t *testing.T) {
	url := site(t)
	w := watch(t, 1280, 800)
	if _, err := chromedp.Call(w.ctx, emulation.SetUserAgentOverride, emulation.SetUserAgentOverrideParams{UserAgent: "Chromium", AcceptLanguage: "zh-CN"}); err != nil {
		t.Fatal(err)
	}
	w.do(chromedp.Navigate(url + "scores.html#e=256"))
	w.wait(`location.pathname === "/zh/scores.html" && location.hash === "#e=256"`)
	w.wait(`document.body?.dataset.drawn !== undefined`)
	w.click(`.languages [lang="en"]`)
	w.wait(`location.pathname === "/scores.html" && location.hash.includes("e=256") && document.body?.dataset.drawn !== undefined`)
	w.do(chromedp.Navigate("about:blank"), chromedp.Navigate(url+"masks.html"))
	w.wait(`document.body?.dataset.drawn !== undefined`)
	if got := js[string](w.tab, `location.pathname`); got != "/masks.html" {
		t.Errorf("after English was chosen, %s opens", got)
	}
}

// Code is shown in Go or in PyTorch, with its output, and can be copied.
func TestSiteCode(t *testing.T) {
	w := watch(t, 1280, 900)
	w.lesson(site(t) + "shapes.html")
	seen := func(selector string) bool {
		return js[bool](w.tab, `document.querySelector("`+selector+`").checkVisibility()`)
	}
	if !seen(".code > pre") || seen(".code details pre") {
		t.Error("Go is not shown first")
	}
	w.click(`.code [data-code="torch"]`)
	if seen(".code > pre") || !seen(".code details pre") {
		t.Error("PyTorch is not shown")
	}
	if got := w.text(".code details pre:last-of-type"); !strings.Contains(got, "0.3333, 0.3333, 0.3333, 0.0000, 0.0000, 0.0000") {
		t.Errorf("its output is %q", got)
	}
	js[bool](w.tab, `(window.copied = "", navigator.clipboard.writeText = async (text) => { window.copied = text; }, true)`)
	w.click(`.code [data-copied]`)
	w.wait(`window.copied.includes("nn.MultiheadAttention(100, 5") && document.querySelector(".code [data-copied]").textContent === "Copied"`)
	w.wait(`document.querySelector(".code [data-copied]").textContent === "Copy"`)
	w.lesson(site(t) + "dates.html")
	if n := js[int](w.tab, `document.querySelectorAll(".code").length`); n != 3 {
		t.Errorf("%d pieces of code have two languages, want 3", n)
	}
}
