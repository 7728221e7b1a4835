package browsertest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/view"
	"github.com/attn-go/attn/internal/strictjson"
)

// The overview coloured and sorted by a measure.
func TestOverviewByMeasure(t *testing.T) {
	t.Parallel()
	r := sample()
	b := open(t, 1280, 900)
	address := serve(t, view.Options{Records: []*heads.Record{r}, Scores: []view.Scores{{Name: "importance: gradient", Values: map[string][]strictjson.Number{"cross.1": {4, -1, 3, 2}}}}})
	b.visit(address + "#theme=light&g=score0&go=down")
	b.wait(`document.querySelector("#grid-key").textContent === "importance: gradient −14"`)
	if names := js[string](b, `[...document.querySelectorAll(".order .thumb")].map((c) => c.dataset.name.at(-1)).join("")`); names != "0231" {
		t.Errorf("by importance the heads are in the order %s, want 0231", names)
	}
	b.visit(address + "#theme=light")
	b.choose("#grid-measure", "confidence")
	b.wait(`document.querySelectorAll(".thumb:not(.summary) .value").length === 20 && [...document.querySelectorAll(".thumb:not(.summary)")].every((c) => c.style.background)`)
	want := map[string]float64{}
	lo, hi, first := math.Inf(1), math.Inf(-1), ""
	for i := range r.Layers {
		l := &r.Layers[i]
		for h := range l.Heads {
			x := l.Measure(h, r.Special).Confidence
			name := fmt.Sprintf("%s, layer %d, head %d", strings.Replace(l.Kind.String(), "cross", "cross-attention", 1), l.Index, h)
			want[name] = x
			lo, hi = min(lo, x), max(hi, x)
			if l.Kind == heads.Cross && (first == "" || x > want[first]) {
				first = name
			}
		}
	}
	for name, x := range want {
		if text := b.text(fmt.Sprintf(`.thumb[data-name=%q] .value`, name)); text != fmt.Sprintf("%.2f", x) {
			t.Errorf("%s has the value %q, want %.2f", name, text, x)
		}
	}
	if key := b.text("#grid-key"); key != fmt.Sprintf("confidence %.3f%.3f", lo, hi) {
		t.Errorf("the legend is %q, want %.3f to %.3f", key, lo, hi)
	}

	// Sorted: a click opens a head, and the arrow keys follow the order.
	b.choose("#grid-order", "down")
	b.wait(`document.querySelectorAll(".order .thumb").length === 20`)
	names := js[[]string](b, `[...document.querySelectorAll(".order")].at(-1).querySelectorAll(".thumb").values().map((c) => c.dataset.name).toArray()`)
	if !slices.IsSortedFunc(names, func(a, b string) int {
		if want[a] >= want[b] {
			return -1
		}
		return 1
	}) || names[0] != first {
		t.Errorf("the order is %v, want %s first", names, first)
	}
	b.shoot("order")
	b.click(fmt.Sprintf(`.thumb[data-name=%q]`, names[1]))
	b.wait(fmt.Sprintf(`document.querySelector(".thumb.open").dataset.name === %q`, names[1]))
	b.do(chromedp.KeyEvent(kb.ArrowRight))
	b.wait(fmt.Sprintf(`document.querySelector(".thumb.open").dataset.name === %q && document.activeElement.dataset.name === %q`, names[2], names[2]))
	b.choose("#grid-order", "up")
	b.wait(fmt.Sprintf(`[...document.querySelectorAll(".order")].at(-1).querySelector(".thumb:last-child").dataset.name === %q`, first))

	// Divergence is measured from the open head.
	b.visit(address + "#a=0.1&g=divergence")
	b.wait(`document.querySelector('.thumb[data-name="encoder, layer 1, head 2"] .value').textContent`)
	for _, c := range [][2]int{{0, 1}, {0, 2}, {3, 2}} {
		l := &r.Layers[c[0]]
		d := heads.Divergence(r.Layers[0].Head(1), l.Head(c[1]), len(l.Queries))
		if text := b.text(fmt.Sprintf(`.thumb[data-name="encoder, layer %d, head %d"]`, l.Index, c[1])); text != fmt.Sprintf("%.2f", d) && (d >= 0.005 || text != "<0.01") && (d != 0 || text != "0") {
			t.Errorf("layer %d, head %d differs by %q, want %.2f", c[0], c[1], text, d)
		}
	}
	if text := b.text(`.thumb[data-name="cross-attention, layer 0, head 0"] .value`); text != "–" {
		t.Errorf("a head with other tokens differs by %q", text)
	}
	b.visit(address) // back to thumbnails
	b.wait(`[...document.querySelectorAll(".thumb canvas")].every((c) => c.width > 1 && c.checkVisibility({ visibilityProperty: true }))`)
}

// Hovering shows a larger picture, and a button enlarges all thumbnails.
func TestOverviewSize(t *testing.T) {
	t.Parallel()
	b := open(t, 1280, 800)
	b.visit(serve(t, view.Options{Records: []*heads.Record{patterns(12, 12, 128)}}) + "#theme=light")
	b.wait("[...document.querySelectorAll('.thumb canvas')].every((c) => c.width > 1)")
	at := js[[]float64](b, `(() => { const r = document.querySelector('[data-name="encoder, layer 3, head 4"]').getBoundingClientRect(); return [r.left + 5, r.top + 5]; })()`)
	b.do(chromedp.MouseEvent("mouseMoved", at[0], at[1]))
	b.wait(`!document.querySelector(".preview").hidden && document.querySelector(".preview b").textContent === "encoder, layer 3, head 4"`)
	b.wait(`document.querySelector(".preview canvas").getBoundingClientRect().width === 260`)
	if outside := js[bool](b, `(() => { const r = document.querySelector(".preview").getBoundingClientRect(); return r.left < 0 || r.top < 0 || r.right > innerWidth || r.bottom > innerHeight; })()`); outside {
		t.Error("the preview is not on the screen")
	}
	if over := js[bool](b, `document.querySelector(".preview").getBoundingClientRect().right > document.querySelector(".detail").getBoundingClientRect().left`); over {
		t.Error("the preview covers the controls or the open head")
	}
	b.shoot("preview")
	b.do(chromedp.KeyEvent(kb.Escape))
	b.wait(`document.querySelector(".preview").hidden`)

	width := func() float64 {
		b.drawn()
		return js[float64](b, `document.querySelector('[data-name="encoder, layer 3, head 4"]').getBoundingClientRect().width`)
	}
	last := width()
	for range 3 {
		b.click("#larger")
		if now := width(); now < 1.4*last {
			t.Errorf("larger makes %g pixels of %g", now, last)
		} else {
			last = now
		}
		if wide := js[int](b, "document.documentElement.scrollWidth"); wide > 1280 {
			t.Errorf("the page is %d pixels wide", wide)
		}
		b.shoot(fmt.Sprintf("size-%.0f", last))
	}
	if !js[bool](b, `document.querySelector("#larger").disabled`) {
		t.Error("heads can be larger than the largest")
	}
	b.click("#smaller")
	if now := width(); now >= last {
		t.Errorf("smaller makes %g pixels of %g", now, last)
	}
}

// Heads that share a key/value head have a bracket above them, and their titles name it.
func TestSharedKeys(t *testing.T) {
	t.Parallel()
	r := sample()
	for i := range r.Layers {
		if l := &r.Layers[i]; l.Kind == heads.Decoder {
			l.KeyHeads = make([]int, l.Heads)
			for h := range l.KeyHeads {
				l.KeyHeads[h] = h / 2
			}
		}
	}
	b := open(t, 1280, 900)
	b.visit(serve(t, view.Options{Records: []*heads.Record{r}}) + "#theme=light")
	b.drawn()
	if got := js[string](b, `[...document.querySelectorAll(".shared")].map((e) => e.textContent).join()`); got != "kv 0,1" {
		t.Errorf("there are brackets %q, want those of two key/value heads", got)
	}
	// The first bracket is as wide as two heads, the second as one.
	if off := js[float64](b, `(() => {
		const box = (e) => e.getBoundingClientRect();
		const shared = [...document.querySelectorAll(".shared")].map(box), thumbs = [0, 1, 2].map((h) => box(document.querySelector(`+"`[data-name=\"decoder, layer 0, head ${h}\"]`"+`)));
		return Math.max(...shared.flatMap((s, g) => [Math.abs(s.left - thumbs[2 * g].left), Math.abs(s.right - thumbs[g + 1].right)]));
	})()`); off > 1 {
		t.Errorf("a bracket is %v pixels off its heads", off)
	}
	b.click(`[data-name="decoder, layer 0, head 2"]`)
	b.wait(`document.querySelector(".panel h3").textContent === "decoder, layer 0, head 2, key/value head 1"`)
	b.shoot("shared-keys")
}

// Means and the rollout open like heads, in an exported page too.
func TestSummaries(t *testing.T) {
	t.Parallel()
	r := sample()
	b := open(t, 1280, 900)
	b.visit(serve(t, view.Options{Records: []*heads.Record{r}}) + "#a=0.0")
	b.wait("[...document.querySelectorAll('.thumb canvas')].every((c) => c.width > 1)")
	check := func(b *tab, click, title string, want []float32) {
		b.Helper()
		b.click(click)
		b.wait(fmt.Sprintf(`document.querySelector(".panel h3").textContent === %q`, title))
		b.drawn()
		// The weight of the first cell.
		b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector(".field").focus()`), chromedp.KeyEvent(kb.ArrowRight))
		b.wait(fmt.Sprintf(`document.querySelector(".tip b").textContent === "%.4f"`, want[0]))
		b.do(chromedp.KeyEvent(kb.Escape))
	}
	rolled, err := heads.Rollout([]heads.Layer{r.Layers[0], r.Layers[3]})
	if err != nil {
		t.Fatal(err)
	}
	all := make([]float32, len(rolled))
	one, two := r.Layers[0].Mean(), r.Layers[3].Mean()
	for i := range all {
		all[i] = (one[i] + two[i]) / 2
	}
	check(b, `[data-name="encoder, layer 1, mean of its heads"]`, "encoder, layer 1, mean of 3 heads", two)
	if facts := b.text(".facts"); !strings.Contains(facts, "entropy") {
		t.Errorf("the measures of a mean are %q", facts)
	}
	check(b, `[data-name="encoder, layer 1, rollout up to this layer"]`, "encoder, rollout of layers 0 to 1", rolled)
	b.shoot("rollout")
	check(b, `[data-name="encoder, layer 1, mean of all layers"]`, "encoder, mean of 2 layers", all)
	if n := js[int](b, `document.querySelectorAll('[data-name^="cross"].summary').length`); n != 3 {
		t.Errorf("cross-attention has %d summaries, want two means of heads and one of layers", n)
	}
	page := b.save(b.download(`[data-export="html"]`, "attention.html"))
	b.visit(page)
	b.click(`[data-name="encoder, layer 1, rollout up to this layer"]`)
	b.wait(`document.querySelector(".panel h3").textContent === "encoder, rollout of layers 0 to 1" && document.querySelector(".field") && document.querySelector(".panel .note").hidden`)

	// The panel of a difference shows the divergence of the two heads.
	b.visit(serve(t, view.Options{Records: []*heads.Record{twoHeads()}}) + "#cmp=head&a=0.0&b=0.1")
	l := twoHeads().Layers[0]
	b.wait(fmt.Sprintf(`[...document.querySelectorAll(".difference .facts div")].some((d) => d.textContent === "divergence%.2f")`, heads.Divergence(l.Head(0), l.Head(1), 3)))
}

// Several heads in the lines view.
func TestLinesOfSeveralHeads(t *testing.T) {
	t.Parallel()
	b := open(t, 1280, 900)
	b.visit(serve(t, view.Options{Records: []*heads.Record{sample()}}) + "#a=2.1&v=lines&theme=light")
	colours := func() []string {
		return js[[]string](b, `[...new Set([...document.querySelectorAll(".lines path")].map((p) => p.getAttribute("stroke")))]`)
	}
	if got := colours(); len(got) != 1 || got[0] != "var(--accent)" {
		t.Errorf("a single head has the colours %v", got)
	}
	b.click(`.several button[aria-label="head 3"]`)
	b.wait(`location.hash.includes("hs=3")`)
	b.drawn()
	if got := colours(); len(got) != 2 || slices.Contains(got, "var(--accent)") {
		t.Errorf("two heads have the colours %v", got)
	}
	// The lines are the strongest of both heads, and their titles name the head.
	l := sample().Layers[2]
	var weights []float64
	for _, h := range []int{1, 3} {
		for _, w := range l.Head(h) {
			weights = append(weights, float64(w))
		}
	}
	slices.Sort(weights)
	titles := js[[]string](b, `[...document.querySelectorAll(".lines path title")].map((t) => t.textContent)`)
	if len(titles) != 40 || !strings.HasSuffix(titles[39], fmt.Sprintf("  %.3f", weights[len(weights)-1])) || !strings.HasPrefix(titles[39], "head ") {
		t.Errorf("the strongest of %d lines is %q, want %.3f", len(titles), titles[len(titles)-1], weights[len(weights)-1])
	}
	if legend := b.text(".legend"); !strings.HasPrefix(legend, "The 40 strongest weights in 2 heads: ") {
		t.Errorf("the legend is %q", legend)
	}
	// From the keyboard: all heads, each in another colour.
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector('.several [tabindex="0"]').focus()`), chromedp.KeyEvent(kb.ArrowLeft), chromedp.KeyEvent(kb.Enter))
	b.wait(`document.querySelectorAll('.several [aria-pressed="true"]').length === 4`)
	b.do(chromedp.Evaluate[chromedp.Void](`(() => { const r = document.querySelector(".slide input"); r.value = 400; r.dispatchEvent(new Event("input")); })()`))
	b.wait(`new Set([...document.querySelectorAll(".lines path")].map((p) => p.getAttribute("stroke"))).size === 4`)
	if !js[bool](b, `document.activeElement.matches(".several button")`) {
		t.Error("the focus has gone")
	}
	b.shoot("several")
	picture := b.download(`[data-export="svg"]`, "attention.svg")
	for h := range 4 {
		if !strings.Contains(picture, fmt.Sprintf(">head %d<", h)) {
			t.Errorf("the picture does not tell the colour of head %d", h)
		}
	}
	// Removing the open head opens the next one; missing heads in the address are ignored.
	b.click(`.several button[aria-label="head 1"]`)
	b.wait(`document.querySelector(".panel h3").textContent === "cross-attention, layer 0, head 0" && location.hash.includes("hs=2-3")`)
	b.do(chromedp.Evaluate[chromedp.Void](`location.hash = "#a=2.1&v=lines&hs=7-99"`))
	b.wait(`new Set([...document.querySelectorAll(".lines path")].map((p) => p.getAttribute("stroke"))).size === 1`)
}
