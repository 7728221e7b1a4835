package browsertest

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/view"
)

// letters returns n tokens of one letter each.
func letters(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = string(rune('a' + i%26))
	}
	return list
}

// texts returns the texts of the SVG export, separated by |, with "turned" after those
// that are rotated.
func (b *tab) texts() string {
	b.Helper()
	picture := b.download(`[data-export="svg"]`, "attention.svg")
	return js[string](b, fmt.Sprintf(`[...new DOMParser().parseFromString(%q, "image/svg+xml").querySelectorAll("text")].map((t) => t.textContent + ((t.getAttribute("transform") ?? "").includes("rotate") ? " turned" : "")).join("|")`, picture))
}

// The axes of the map have titles, the map fits a small screen, single letters are
// upright, and masked cells of a decoder differ from cells of weight 0.
func TestMapDetails(t *testing.T) {
	t.Parallel()
	source, target := letters(21), letters(19)
	words := []string{"<s>", "▁one", "▁t", "wo", "▁th", "re", "e", "</s>"}
	text := &heads.Record{Source: "letters", Target: "letters", Special: []string{"<s>", "</s>"}, Layers: []heads.Layer{
		layer(heads.Encoder, 0, 2, source, source), layer(heads.Decoder, 0, 2, target, target), layer(heads.Cross, 0, 2, target, source), layer(heads.Cross, 1, 2, target, source),
	}}
	pieces := &heads.Record{Source: "words", Special: text.Special, Layers: []heads.Layer{layer(heads.Encoder, 0, 1, words, words)}}
	causal := &heads.Record{Source: "a model with a decoder only", Layers: []heads.Layer{layer(heads.Decoder, 0, 1, words, words)}}
	// In its head 0, query 4 has weight 0 on key 3, which is not masked.
	for j := range 5 {
		causal.Layers[0].Weights[4*8+j] = 0.25
	}
	causal.Layers[0].Weights[4*8+3] = 0
	ends := append(letters(21), "<eos>", "▁because")
	marked := &heads.Record{Source: "letters and an end", Layers: []heads.Layer{layer(heads.Encoder, 0, 1, ends, ends)}}
	end := &heads.Record{Source: "letters and a mark", Layers: []heads.Layer{layer(heads.Encoder, 0, 1, ends[:22], ends[:22])}}
	b := open(t, 1280, 800)
	address := serve(t, view.Options{Records: []*heads.Record{text, pieces, causal, marked, end}})
	b.visit(address + "#theme=light")

	// A translator opens with cross-attention, and all of the panel is on the screen.
	if title := b.text(".panel h3"); title != "cross-attention, layer 1, head 0" {
		t.Errorf("the first head is %q", title)
	}
	for _, size := range [][2]int64{{1280, 800}, {1920, 1000}} {
		b.do(chromedp.EmulateViewport(size[0], size[1]))
		b.visit(address + "#theme=light")
		if bottom := js[float64](b, `document.querySelector(".legend").getBoundingClientRect().bottom`); bottom > float64(size[1]) {
			t.Errorf("%d × %d: the legend ends at %g", size[0], size[1], bottom)
		}
		if wrapped := js[float64](b, `document.querySelector("#toolbar").getBoundingClientRect().height`); wrapped > 50 {
			t.Errorf("%d × %d: the toolbar is %g high", size[0], size[1], wrapped)
		}
	}
	b.do(chromedp.EmulateViewport(1280, 800))
	b.visit(address + "#theme=light")
	written := b.texts()
	for _, want := range []string{"|key|", "|query turned|", "|a|", "|u|"} {
		if !strings.Contains("|"+written+"|", want) {
			t.Errorf("the map has no %s: %s", want, written)
		}
	}
	if n := strings.Count(written, "turned"); n != 1 {
		t.Errorf("%d labels are turned, want that of the axis only: %s", n, written)
	}
	// The labels of an axis are all upright or all turned, here because of a long token among letters.
	b.visit(address + "#theme=light&r=3")
	if written := b.texts(); strings.Count(written, "turned") != 1+len(ends) || !strings.Contains(written, "|<eos> turned") {
		t.Errorf("beside <eos>, some labels are turned: %s", written)
	}
	b.visit(address + "#theme=light&r=4")
	if written := b.texts(); strings.Count(written, "turned") != 1 {
		t.Errorf("for <eos> alone, labels are turned: %s", written)
	}
	// No label is missing at 200% or on a phone, and cells have at least 7 pixels.
	for _, size := range [][3]float64{{640, 400, 2}, {380, 700, 3}} {
		b.do(chromedp.EmulateViewport(int64(size[0]), int64(size[1]), chromedp.EmulateScale(size[2])))
		b.visit(address + "#theme=light")
		if n := strings.Count("|"+b.texts()+"|", "|u|"); n != 1 {
			t.Errorf("at %g × %g the letter u is there %d times", size[0], size[1], n)
		}
		if cell := js[float64](b, `Number(document.querySelector(".field").dataset.cell)`); cell < 7 {
			t.Errorf("at %g × %g a cell has %g pixels", size[0], size[1], cell)
		}
		b.shoot(fmt.Sprintf("letters-%g", size[0]))
	}
	b.do(chromedp.EmulateViewport(1280, 800))

	// Zooming in enlarges the cells.
	b.visit(address + "#theme=light&z=0-19,0-21")
	cell := func() float64 { return js[float64](b, `Number(document.querySelector(".field").dataset.cell)`) }
	before := cell()
	b.visit(address + "#theme=light&z=5-10,5-10")
	if after := cell(); after < 2*before {
		t.Errorf("zooming in makes cells of %g pixels from %g", after, before)
	}

	// Masked cells are hatched, cells of weight 0 are not.
	b.visit(address + "#r=2&theme=light")
	colours := func(i, j int) int {
		return js[int](b, fmt.Sprintf(`(() => { const f = document.querySelector(".field"), [x, y] = f.dataset.origin.split(",").map(Number), s = Number(f.dataset.cell);
			const d = f.querySelector("canvas").getContext("2d").getImageData(x + %d * s + 4, y + %d * s + 4, s - 8, s - 8).data;
			return new Set(Array.from({ length: d.length / 4 }, (_, p) => d.slice(4 * p, 4 * p + 3).join())).size; })()`, j, i))
	}
	if hidden, zero := colours(2, 5), colours(4, 3); hidden != 2 || zero != 1 {
		t.Errorf("a masked cell has %d colours, want 2; one of 0 has %d, want 1", hidden, zero)
	}
	if legend, hint := b.text(".legend"), b.text(".grid h2 small"); !strings.Contains(legend, "masked") || hint != "the text attends to itself, up to each token" {
		t.Errorf("the legend is %q, the hint %q", legend, hint)
	}
	b.shoot("masked")

	// Measures describe the visible part of the map.
	for lens, n := range map[string]float64{"": 8, "&w=1": 5, "&x=hide": 6, "&w=1&x=renorm": 3} {
		b.visit(address + "#r=1" + lens)
		want := fmt.Sprintf("uniform (ln n)%.2f", math.Log(n))
		b.wait(fmt.Sprintf(`[...document.querySelectorAll(".facts div")].some((d) => d.textContent === %q)`, want))
	}

	// The text view shows a hint until a token is selected.
	b.visit(address + "#v=text")
	if hint := b.text(".text .hint"); !strings.Contains(hint, "Point at a token") {
		t.Errorf("the hint is %q", hint)
	}
	b.visit(address + "#v=text&tok=q1")
	if !js[bool](b, `document.querySelector(".text .hint").hidden`) {
		t.Error("the hint stays")
	}
	// In self-attention, two buttons make the selected token a query or a key.
	b.visit(address + "#a=0.0&v=text&tok=q1")
	if role := b.text(`.as [aria-pressed="true"]`); role != "query" {
		t.Errorf("the selected token is a %q", role)
	}
	b.click(".as button:last-child")
	b.wait(`location.hash.includes("tok=k1") && document.querySelector('.as [aria-pressed="true"]').textContent === "key"`)
}

// Choosing a view does not move the panel, controls and texts have enough contrast, and
// the glossary explains the terms of the page.
func TestPageDetails(t *testing.T) {
	t.Parallel()
	b := open(t, 1280, 900)
	second := sample()
	second.Source = "another"
	address := serve(t, view.Options{Records: []*heads.Record{sample(), second}, Recorder: recordFunc(func(string) *heads.Record { return sample() })})
	b.visit(address + "#m=1&cmp=text")
	b.wait(`document.querySelectorAll("tbody tr").length === 20`)
	// The examples are next to the text that they replace.
	if gap := js[float64](b, `Math.abs(document.querySelector(".given select").getBoundingClientRect().top - document.querySelector("#text-s").getBoundingClientRect().top)`); gap > 3 {
		t.Errorf("the examples are %g pixels away from the first text", gap)
	}
	for _, theme := range []string{"light", "dark"} {
		b.visit(address + "#m=1&cmp=head&theme=" + theme)
		b.wait(`document.querySelectorAll("tbody tr").length === 20`)
		for _, problem := range js[[]string](b, contrasts) {
			t.Errorf("%s: %s", theme, problem)
		}
		// Panels have an upper border.
		if hidden := js[bool](b, `[...document.querySelectorAll(".panel")].some((p) => getComputedStyle(p).borderTopColor.endsWith(", 0)"))`); hidden {
			t.Errorf("%s: a panel has no upper border", theme)
		}
	}
	// Bars are below the numbers, not across them.
	if !js[bool](b, `getComputedStyle(document.querySelector("td")).backgroundSize.endsWith(" 2px")`) {
		t.Error("the bars of the table cut through its numbers")
	}

	b.visit(address)
	place := func() float64 { return js[float64](b, `document.querySelector(".panel").getBoundingClientRect().top`) }
	before := place()
	b.click(`[data-view="lines"]`)
	b.wait(`document.querySelector(".lines path")`)
	if after := place(); after != before {
		t.Errorf("choosing Lines moves the panel from %g to %g", before, after)
	}

	// The glossary opens from the keyboard too.
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("#help").focus()`), chromedp.KeyEvent(kb.Enter))
	b.wait(`document.querySelector("#glossary").open`)
	b.shoot("glossary")
	glossary := b.text("#glossary")
	for _, word := range js[[]string](b, `[...document.querySelectorAll("thead button, .facts dt, #toolbar label")].map((e) => e.firstChild.textContent.trim()).filter((w) => w && w !== "head")`) {
		if !strings.Contains(strings.ToLower(glossary), strings.ToLower(word)) && word != "Compare" {
			t.Errorf("the glossary has no %q", word)
		}
	}
	b.do(chromedp.KeyEvent(kb.Escape))
	b.wait(`!document.querySelector("#glossary").open`)
	page := js[string](b, `document.body.innerText`)
	for _, word := range []string{"Look", "look", "Shade", "Specials", "bound", "largest 0"} {
		if strings.Contains(page, word) {
			t.Errorf("the page says %q", word)
		}
	}
}

// contrasts lists controls whose border, and texts whose colour, has too little contrast
// with the background.
const contrasts = `(() => {
	const parse = (c) => (c.match(/[\d.]+/g) ?? []).map(Number);
	const light = ([r, g, b]) => { const f = (v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }; return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
	const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
	const behind = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.length === 3 || c[3] === 1) return c; } return [255, 255, 255]; };
	const found = new Set();
	const seen = (e) => e.checkVisibility() && !e.disabled && !e.closest("[disabled], [aria-disabled=true]");
	for (const e of document.querySelectorAll("header button, summary, .zoom button, .turn, select, textarea, .segments, .thumb")) {
		if (!seen(e) || e.closest(".measures")) continue;
		const r = ratio(parse(getComputedStyle(e).borderTopColor), behind(e.parentElement));
		if (r < 3) found.add(e.tagName + "." + e.className + " has a border of " + r.toFixed(2));
	}
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let n; (n = walk.nextNode());) {
		const e = n.parentElement;
		if (!n.textContent.trim() || !seen(e) || e.closest(".unseen, .skip, noscript, script, option")) continue;
		const style = getComputedStyle(e), r = ratio(parse(style.fill !== "rgb(0, 0, 0)" && e.closest("svg") ? style.fill : style.color), behind(e));
		if (r < 4.5 || style.opacity !== "1") found.add(e.tagName + "." + e.className + " has text of " + r.toFixed(2) + ", opacity " + style.opacity + ": " + n.textContent.slice(0, 20));
	}
	return [...found];
})()`
