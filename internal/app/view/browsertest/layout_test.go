package browsertest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/view"
)

// explained is a source whose records have no queries and keys, with a reason.
type explained struct{ recordFunc }

func (explained) NoVectors(*heads.Record) string { return "This text is too long for them." }

// longRecord returns a record of 512 tokens with a text of many lines.
func longRecord() *heads.Record {
	r := &heads.Record{Source: strings.Repeat("a text that goes on and on ", 90)}
	names := numbered(512)
	for i := range 2 {
		r.Layers = append(r.Layers, layer(heads.Encoder, i, 4, names, names))
	}
	return r
}

// shortRecord returns a record of n tokens.
func shortRecord(n int) *heads.Record {
	names := numbered(n)
	return &heads.Record{Source: fmt.Sprint(n, " tokens"), Layers: []heads.Layer{layer(heads.Encoder, 0, 4, names, names), layer(heads.Encoder, 1, 4, names, names)}}
}

// box returns the left, top, right and bottom edges of an element.
func (b *tab) box(selector string) []float64 {
	b.Helper()
	return js[[]float64](b, fmt.Sprintf(`(() => { const r = document.querySelector(%q).getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; })()`, selector))
}

// width returns the width of an element once the page is complete.
func (b *tab) width(selector string) float64 {
	b.Helper()
	b.drawn()
	js[bool](b, "new Promise((done) => setTimeout(() => done(true), 300))")
	r := b.box(selector)
	return r[2] - r[0]
}

// A map fills its panel, and has the same size whichever way the user opened it.
func TestMapFillsItsCard(t *testing.T) {
	t.Parallel()
	b := open(t, 1280, 800)
	address := serve(t, view.Options{Records: []*heads.Record{longRecord(), shortRecord(13)}, Recorder: recordFunc(func(string) *heads.Record { return sample() })})
	card := func() float64 { return b.width(".panel") }
	b.visit(address + "#r=0&a=1.2")
	first := b.width(".field")
	if first < 0.6*card() {
		t.Errorf("512 tokens get %g pixels of %g", first, card())
	}
	same := func(how string) {
		t.Helper()
		if now := b.width(".field"); now != first {
			t.Errorf("%s, the map is %g wide, at first %g", how, now, first)
		}
	}
	b.click(`[data-view="lines"]`)
	b.wait(`document.querySelector(".lines path")`)
	b.click(`[data-view="map"]`)
	same("from Lines")
	b.choose(".given select", "1")
	b.wait(`document.querySelector(".panel .sub").textContent === "13 tokens"`)
	if short := b.width(".field"); short < 0.6*card() {
		t.Errorf("13 tokens get %g pixels of %g", short, card())
	}
	b.choose(".given select", "0")
	b.wait(`document.querySelector(".panel .sub").textContent !== "13 tokens"`)
	same("from a short text")

	// The map follows its panel when the window or the overview changes.
	b.do(chromedp.EmulateViewport(1480, 800))
	first = b.width(".field")
	b.visit(address + "#r=0&a=1.2")
	same("in a window that is as wide from the start")
	b.click("#larger")
	if wide := b.width(".field"); wide > card()-30 || wide < 0.6*card() {
		t.Errorf("beside larger heads the map is %g wide in %g", wide, card())
	}
}

// The field of a long text has two lines; while focused it is higher and covers the page below.
func TestLongTextCollapses(t *testing.T) {
	t.Parallel()
	b := open(t, 1280, 800)
	b.visit(serve(t, view.Options{Records: []*heads.Record{longRecord(), shortRecord(3)}, Recorder: recordFunc(func(string) *heads.Record { return sample() })}))
	high := func() float64 { r := b.box("#text-s"); return r[3] - r[1] }
	before, panel := high(), b.box(".panel")
	if before > 62 {
		t.Errorf("the text is %g pixels high", before)
	}
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("#text-s").focus()`))
	if typing := high(); typing < 120 {
		t.Errorf("while typing, the text is %g pixels high", typing)
	}
	if now := b.box(".panel"); now[1] != panel[1] {
		t.Errorf("the elements below move from %g to %g", panel[1], now[1])
	}
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("#text-s").blur()`))
	if after := high(); after != before {
		t.Errorf("afterwards the text is %g pixels high", after)
	}
}

// Labels of a map do not touch, and all labels of an axis have the same orientation.
func TestLabels(t *testing.T) {
	t.Parallel()
	text := strings.Fields("<s> ▁The ▁ani mal ▁did n't ▁cross ▁the ▁street , ▁it ▁was ▁tired . </s>")
	b := open(t, 1280, 800)
	address := serve(t, view.Options{Records: []*heads.Record{{Source: "words", Layers: []heads.Layer{layer(heads.Encoder, 0, 2, text, text)}}, shortRecord(31), longRecord()}})
	for _, width := range []int64{1280, 700, 380} {
		b.do(chromedp.EmulateViewport(width, 800))
		for record := range 3 {
			b.visit(fmt.Sprintf("%s#r=%d&theme=light", address, record))
			b.width(".field") // wait for the layout
			picture := b.download(`[data-export="svg"]`, "attention.svg")
			touching := js[[]string](b, fmt.Sprintf(`(() => {
				const drawing = document.importNode(new DOMParser().parseFromString(%q, "image/svg+xml").documentElement, true);
				document.body.append(drawing);
				const texts = [...drawing.querySelectorAll("g > g text")].map((e) => ({ text: e.textContent, turned: /rotate/.test(e.getAttribute("transform")), r: e.getBoundingClientRect() }));
				drawing.remove();
				const found = [];
				texts.forEach((a, i) => texts.slice(i + 1).forEach((b) => {
					const gap = Math.max(a.r.left - b.r.right, b.r.left - a.r.right), row = Math.max(a.r.top - b.r.bottom, b.r.top - a.r.bottom);
					// The box of a text is higher than its letters.
					if (a.turned && b.turned ? gap < -3 && row < 0 : gap < 2 && row < -5) found.push(a.text + " and " + b.text);
				}));
				return found;
			})()`, picture))
			if len(touching) > 0 {
				t.Errorf("record %d at %d: %d pairs of labels touch: %.300v", record, width, len(touching), touching)
			}
		}
	}
	b.do(chromedp.EmulateViewport(700, 800))
	b.visit(address + "#r=0&theme=light")
	if written := b.texts(); strings.Count(written, "turned") != 1 && strings.Count(written, "turned") != 1+len(text) {
		t.Errorf("some labels are turned: %s", written)
	}
}

// Tokens of a right-to-left text run from right to left.
func TestRightToLeft(t *testing.T) {
	t.Parallel()
	text := strings.Fields("[CLS] القطة تجلس على الحصيرة . [SEP]")
	b := open(t, 1280, 800)
	b.visit(serve(t, view.Options{Records: []*heads.Record{{Source: "القطة تجلس على الحصيرة.", Special: []string{"[CLS]", "[SEP]"},
		Layers: []heads.Layer{layer(heads.Encoder, 0, 2, text, text)}}, shortRecord(5)}}) + "#v=text")
	order := `(() => { const x = [...document.querySelectorAll(".flow:not([hidden]) .chip")].map((c) => c.getBoundingClientRect().left); return x.every((v, i) => !i || %s); })()`
	if !js[bool](b, fmt.Sprintf(order, "x[i - 1] > v")) {
		t.Error("Arabic tokens do not run from right to left")
	}
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector(".chip").focus()`), chromedp.KeyEvent(kb.ArrowLeft))
	b.wait(`location.hash.includes("tok=q1")`)
	b.visit(js[string](b, "location.href.split('#')[0]") + "#v=text&r=1")
	if !js[bool](b, fmt.Sprintf(order, "x[i - 1] < v")) {
		t.Error("Latin tokens do not run from left to right")
	}
}

// No control cuts off its selected option.
func TestControlsShowTheirWords(t *testing.T) {
	t.Parallel()
	b := open(t, 1280, 800)
	address := serve(t, view.Options{Records: []*heads.Record{sample()}})
	for _, width := range []int64{1280, 380} {
		b.do(chromedp.EmulateViewport(width, 800))
		b.visit(address + "#x=renorm&c=log&cmp=head&g=punctuation&go=down")
		for _, cut := range js[[]string](b, `(() => { const c = document.createElement("canvas").getContext("2d"); return [...document.querySelectorAll("select")].filter((s) => s.checkVisibility()).flatMap((s) => {
			const style = getComputedStyle(s), text = s.selectedOptions[0].textContent;
			c.font = style.font;
			const room = s.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight) - 16; // of the arrow
			return c.measureText(text).width > room ? [text + ": " + c.measureText(text).width + " of " + room] : []; }); })()`) {
			t.Errorf("%d wide: %s", width, cut)
		}
		if wide := js[int64](b, "document.documentElement.scrollWidth"); wide > width {
			t.Errorf("the page is %d wide, the window %d", wide, width)
		}
	}
}

// In the width of a blog column, the frame of an exported page shows heads, map and legend.
func TestEmbeddedInAColumn(t *testing.T) {
	t.Parallel()
	for _, r := range []*heads.Record{longRecord(), shortRecord(13), sample()} {
		page, err := view.Page(context.Background(), view.Options{Name: "embedded", Records: []*heads.Record{r}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		fragment := strings.Replace(string(view.Embed(page, "x")), ` sandbox="allow-scripts allow-downloads"`, "", 1)
		b := open(t, 1280, 900)
		b.do(chromedp.Navigate(b.save(`<!DOCTYPE html><meta charset="utf-8"><title>host</title><body style="width:680px;margin:0 auto">` + fragment)))
		inside := func(expression string) string {
			return fmt.Sprintf(`(() => { const window = document.querySelector("iframe").contentWindow, within = window.document, box = (s) => within.querySelector(s).getBoundingClientRect(); return %s; })()`, expression)
		}
		b.wait(inside(`within.body?.dataset.drawn !== undefined && within.querySelector(".legend") !== null`))
		js[bool](b, "new Promise((done) => setTimeout(() => done(true), 300))")
		for _, what := range []string{".thumb.open", ".field", ".legend"} {
			if !js[bool](b, inside(fmt.Sprintf(`box(%q).top >= 0 && box(%[1]q).bottom <= window.innerHeight && box(%[1]q).right <= window.innerWidth`, what))) {
				t.Errorf("%.20s: the frame does not show %s: %s", r.Source, what, js[string](b, inside(fmt.Sprintf(`JSON.stringify(box(%q))`, what))))
			}
		}
		if wide := js[float64](b, inside(`box(".field").width`)); wide < 340 {
			t.Errorf("%.20s: the map is %g wide", r.Source, wide)
		}
	}
}

// Printing includes the heads and the maps, in light colours, each map on one page, and no controls.
func TestPrint(t *testing.T) {
	t.Parallel()
	b := open(t, 1280, 800)
	address := serve(t, view.Options{Records: []*heads.Record{shortRecord(13), longRecord()}, Recorder: recordFunc(func(string) *heads.Record { return sample() })})
	for record, texts := range []int{28, 20} {
		b.visit(fmt.Sprintf("%s#theme=dark&r=%d", address, record))
		b.width(".field")
		js[bool](b, `(window.addEventListener("beforeprint", () => {
			const dark = (c) => { const [r, g, b] = c.startsWith("#") ? [1, 3, 5].map((i) => parseInt(c.slice(i, i + 2), 16)) : c.match(/\d+/g).map(Number); return 0.3 * r + 0.6 * g + 0.1 * b < 128; };
			const written = [...document.querySelectorAll(".printed text")];
			window.seen = { texts: written.length, invisible: written.filter((t) => !dark(t.getAttribute("fill"))).length, theme: document.documentElement.dataset.theme };
		}), true)`)
		pdf, err := chromedp.Run(b.ctx, chromedp.PrintToPDF())
		if err != nil {
			t.Fatal(err)
		}
		if pages := strings.Count(string(pdf), "/Type /Page\n"); pages < 1 || pages > 2 {
			t.Errorf("record %d takes %d pages", record, pages)
		}
		if seen := js[string](b, "window.seen.theme"); seen != "light" {
			t.Errorf("it is printed in %s colours", seen)
		}
		if n := js[int](b, "window.seen.texts"); n < texts {
			t.Errorf("record %d: %d labels are printed, want at least %d", record, n, texts)
		}
		if n := js[int](b, "window.seen.invisible"); n > 0 {
			t.Errorf("record %d: %d labels are too light for paper", record, n)
		}
		if theme := js[string](b, "document.documentElement.dataset.theme"); theme != "dark" {
			t.Errorf("after printing the page is %s", theme)
		}
	}
	b.do(chromedp.Evaluate[chromedp.Void](`window.dispatchEvent(new Event("beforeprint"))`))
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"}); err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{".ask", ".toolbar", ".gridbar", ".bar .tools", ".zoom", ".field", "footer", ".measures"} {
		if js[bool](b, fmt.Sprintf(`document.querySelector(%q).checkVisibility()`, what)) {
			t.Errorf("%s is printed", what)
		}
	}
	for _, what := range []string{".thumb", ".printed", ".legend", ".panel h3"} {
		if !js[bool](b, fmt.Sprintf(`document.querySelector(%q).checkVisibility()`, what)) {
			t.Errorf("%s is not printed", what)
		}
	}
	if r := b.box(".panel"); r[3]-r[1] > 950 || js[string](b, `getComputedStyle(document.querySelector(".panel")).breakInside`) != "avoid" {
		t.Errorf("a panel of %g pixels may be cut across pages", r[3]-r[1])
	}
}

// In forced colours the chosen view is visible; panels have names, and all text is in a landmark.
func TestAssistive(t *testing.T) {
	t.Parallel()
	b := open(t, 1280, 800)
	b.visit(serve(t, view.Options{Records: []*heads.Record{sample(), shortRecord(3)}, Recorder: recordFunc(func(string) *heads.Record { return sample() })}) + "#cmp=head")
	if names := js[string](b, `[...document.querySelectorAll(".panel")].map((p) => document.getElementById(p.getAttribute("aria-labelledby")).textContent).join("|")`); names !=
		"cross-attention, layer 1, head 0|cross-attention, layer 1, head 1|Difference, first − second" {
		t.Errorf("the panels are %q", names)
	}
	for _, text := range js[[]string](b, `(() => { const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
		for (let n; (n = walk.nextNode());) if (n.textContent.trim() && !n.parentElement.closest("header, main, footer, form[aria-label], section[aria-label], [role=status], dialog, .skip, script, noscript, [aria-hidden=true]")) found.push(n.textContent);
		return found; })()`) {
		t.Errorf("%q is outside of every landmark", text)
	}
	background := func(view string) string {
		return js[string](b, fmt.Sprintf(`getComputedStyle(document.querySelector('[data-view=%q]')).backgroundColor`, view))
	}
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "forced-colors", Value: "active"}}}); err != nil {
		t.Fatal(err)
	}
	if on, off := background("map"), background("lines"); on == off {
		t.Errorf("in forced colours the chosen view is %s, as every other", on)
	}
}

// Without queries and keys the button of the neuron view is disabled, and its tooltip says why.
func TestNeuronsSayWhyNot(t *testing.T) {
	t.Parallel()
	b := open(t, 1280, 800)
	record := shortRecord(5)
	address := serve(t, view.Options{Records: []*heads.Record{record}, Recorder: explained{func(string) *heads.Record { return record }}})
	tab := `document.querySelector('[data-view="neurons"]')`
	for _, at := range []string{"", "#s=typed"} {
		b.visit(address + at)
		if !js[bool](b, tab+`.checkVisibility() && `+tab+`.ariaDisabled === "true" && `+tab+`.title === "This text is too long for them."`) {
			t.Errorf("%q: the tab is %s", at, js[string](b, tab+".outerHTML"))
		}
	}
	b.click(`[data-view="neurons"]`)
	b.wait(`document.querySelector("#notes").textContent.includes("too long for them")`)
	if strings.Contains(b.hash(), "neurons") {
		t.Errorf("the address is %s", b.hash())
	}
	b.visit(serve(t, view.Options{Records: []*heads.Record{inspected(t, numbered(5), 3, 7)}}))
	if !js[bool](b, tab+`.ariaDisabled === "false" && `+tab+`.title === ""`) {
		t.Error("with queries and keys the tab is disabled")
	}
}
