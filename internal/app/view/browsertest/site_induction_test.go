package browsertest

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// Lesson 9 trains two layers, whose heads are silenced, patched and pruned. Each language is drawn, on a phone and on a
// screen, and, with SHOTS, in light and dark.
func TestSiteInduction(t *testing.T) {
	url := site(t)
	w := watch(t, 1280, 900)
	w.lesson(url + "induction.html")
	w.click("#train")
	w.wait(`document.getElementById("train-read").textContent.includes("400 of 400") && document.getElementById("train").textContent === "Train again"`)
	w.wait(`!document.getElementById("silence-read").textContent.includes("NaN") && location.hash.includes("step=400")`)
	w.click("#off button:nth-child(3)")
	w.wait(`location.hash.includes("off=0.2") && document.getElementById("silence-read").textContent.includes("increase+2.")`)
	w.click("#patched button:nth-child(3)")
	w.wait(`location.hash.includes("patch=0.2") && /heads of A9\d\.\d%/.test(document.getElementById("patch-read").textContent)`)
	w.set("keep-0", "2")
	w.set("keep-1", "2")
	w.click("#cut")
	w.wait(`document.getElementById("keep-read").textContent.includes("after 100 steps0.")`)
	if got := w.text("#keep-read"); !strings.Contains(got, "21,888 → 8,064") {
		t.Errorf("pruned: %s", got)
	}
	w.requests()
	themes := []string{"light"}
	if os.Getenv("SHOTS") != "" {
		themes = append(themes, "dark")
	}
	for _, theme := range themes {
		for _, width := range []int{1280, 390} {
			for _, language := range []string{"", "zh/", "ja/"} {
				b := open(t, width, 900)
				if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
					Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}}); err != nil {
					t.Fatal(err)
				}
				hash := "#step=20"
				if os.Getenv("SHOTS") != "" {
					hash = "#step=400&head=1.2&off=1.0,1.1&patch=0.2&keep=2-2"
				}
				(&watched{tab: b}).lesson(url + language + "induction.html" + hash)
				js[bool](b, "new Promise((done) => setTimeout(() => done(true), 600))")
				b.shoot(fmt.Sprintf("induction-%s-%s-%d", strings.TrimSuffix(language, "/"), theme, width))
				if wide := js[int](b, "document.documentElement.scrollWidth"); wide > width {
					t.Errorf("%sinduction at %d is %d pixels wide", language, width, wide)
				}
			}
		}
	}
}
