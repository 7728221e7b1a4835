package browsertest

import (
	"fmt"
	"strings"
	"testing"
)

// Lesson 8 adds observations to a state that does not grow, and trains four layers, of which the delta rule replaces what
// letters that come again have left. Each language is drawn, on a phone and on a screen.
func TestSiteLinear(t *testing.T) {
	url := site(t)
	w := watch(t, 1280, 900)
	w.lesson(url + "linear.html#n=30&p=5")
	read := func() string { return w.text("#state-read") }
	for range 2 {
		if !strings.Contains(read(), "11 × 2 = 22") {
			t.Errorf("a state of 11 features: %s", read())
		}
		w.click("#add")
		w.wait(`location.hash.includes("n=31") && document.getElementById("state-read").textContent.includes("31 × 2 = 62")`)
		w.set("n", 30)
		w.wait(`document.getElementById("state-read").textContent.includes("30 × 2 = 60")`)
	}
	w.set("again", true)
	w.wait(`location.hash.includes("again=1")`)
	w.click("#train")
	w.wait(`document.getElementById("recall-read").textContent.includes("20 of 400")`)
	w.click("#train")
	w.wait(`document.getElementById("train").textContent === "Train"`)
	w.requests()
	for _, width := range []int{1280, 390} {
		for _, language := range []string{"", "zh/", "ja/"} {
			b := open(t, width, 900)
			w := &watched{tab: b}
			w.lesson(url + language + "linear.html#again=1")
			name := js[string](b, `document.getElementById("train").textContent`)
			b.click("#train")
			if language == "" && width == 1280 {
				b.wait(`document.getElementById("recall-read").textContent.includes("400 of 400")`)
				if got := b.text("#recall-read"); !strings.Contains(got, "gated delta100% of 8 pairs, 100% of 16") {
					t.Errorf("the layers recall %s", got)
				}
			} else {
				b.wait(`!document.getElementById("matrices").hidden`)
				b.click("#train")
			}
			b.wait(fmt.Sprintf(`document.getElementById("train").textContent === %q`, name))
			b.shoot(fmt.Sprintf("linear-%s-%d", strings.TrimSuffix(language, "/"), width))
			if wide := js[int](b, "document.documentElement.scrollWidth"); wide > width {
				t.Errorf("%slinear at %d is %d pixels wide", language, width, wide)
			}
		}
	}
}
