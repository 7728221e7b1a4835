package browsertest

import (
	"encoding/base64"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/view"
)

// evil are tokens that would have an effect if they became markup.
var evil = []string{"<s>", "▁<b>bold</b>", "</script>", "<img src=x onerror=document.title='hit'>", "▁\"quoted'", "\u202eturned", "▁good", "ly", "</s>"}

// sample returns a record with all kinds of layers; in cross-attention 6 queries attend to 9 keys.
func sample() *heads.Record {
	target := []string{"▁eins", "▁zw", "ei", "▁drei", ".", "</s>"}
	r := &heads.Record{Source: "</script><script>document.title='hit'</script>", Target: "eins zwei drei.", Special: []string{"<s>", "</s>"}}
	for i := range 2 {
		r.Layers = append(r.Layers, layer(heads.Encoder, i, 3, evil, evil), layer(heads.Decoder, i, 3, target, target), layer(heads.Cross, i, 4, target, evil))
	}
	return r
}

// unharmed checks that no token has become markup.
func (b *tab) unharmed() {
	b.Helper()
	if title := js[string](b, "document.title"); strings.Contains(title, "hit") {
		b.Errorf("a token was run: the title is %q", title)
	}
	if n := js[int](b, "document.querySelectorAll('main img, main script, main b:not(.tip b)').length"); n > 0 {
		b.Errorf("%d elements came from tokens", n)
	}
}

func TestUsing(t *testing.T) {
	t.Parallel()
	b := open(t, 1280, 900)
	address := serve(t, view.Options{Name: "sample <i>", Records: []*heads.Record{sample()}})
	b.visit(address)
	if n := js[int](b, "document.querySelectorAll('.thumb:not(.summary)').length"); n != 20 {
		t.Fatalf("%d thumbnails, want 20", n)
	}
	b.wait("[...document.querySelectorAll('.thumb canvas')].every((c) => c.width > 1)")

	// A click opens a head.
	b.click(`.thumb[aria-label="cross-attention, layer 1, head 2"]`)
	b.wait(`document.querySelector(".panel h3").textContent === "cross-attention, layer 1, head 2"`)
	if h := b.hash(); h != "#a=5.2" {
		t.Errorf("the address ends in %q", h)
	}
	b.unharmed()
	b.drawn()

	// Hovering shows the exact weight.
	r := sample()
	b.do(chromedp.ScrollIntoView(chromedp.CSS(".field")))
	box := js[[]float64](b, `(() => { const r = document.querySelector(".field").getBoundingClientRect(); return [r.right, r.bottom]; })()`)
	b.do(chromedp.MouseEvent("mouseMoved", box[0]-12, box[1]-12))
	want := fmt.Sprintf("%.4f", r.Layers[5].Head(2)[6*9-1])
	b.wait(fmt.Sprintf(`document.querySelector(".tip b")?.textContent === %q`, want))
	if text := b.text(".tip"); !strings.Contains(text, "∎ → </s>") {
		t.Errorf("the tip says %q", text)
	}

	// A click on a row selects its token in all views.
	b.do(chromedp.MouseClickXY(box[0]-12, box[1]-12))
	b.wait(`location.hash.includes("tok=q5")`)
	b.click(`[data-view="lines"]`)
	b.wait(`document.querySelector(".lines .picked")?.textContent === "∎"`)
	if n := js[int](b, `document.querySelectorAll(".lines path").length`); n != 9 {
		t.Errorf("%d lines from the token, want 9", n)
	}
	b.do(chromedp.Evaluate[chromedp.Void](`(() => { const r = document.querySelector(".slide input"); r.value = 4; r.dispatchEvent(new Event("input")); })()`))
	b.wait(`document.querySelectorAll(".lines path").length === 4`)
	b.unharmed()
	b.click(`[data-view="text"]`)
	b.wait(`document.querySelectorAll(".chip").length === 15`)
	if n := js[int](b, `[...document.querySelectorAll(".chip")].filter((c) => c.style.background).length`); n != 9 {
		t.Errorf("%d tokens are shaded, want 9", n)
	}
	if text := b.text(".chip:nth-child(3)"); text != "ei" {
		t.Errorf("the third token is %q", text)
	}
	b.unharmed()

	// Hide special tokens and merge words.
	b.choose(`[data-state="x"]`, "renorm")
	b.wait(`document.querySelectorAll(".chip").length === 12`)
	b.click(`[data-state="w"]`)
	b.wait(`document.querySelectorAll(".chip").length < 12`)
	if words := js[string](b, `[...document.querySelectorAll(".flow")].map((f) => [...f.children].map((c) => c.textContent).join("|")).join("\n")`); !strings.Contains(words, "eins|zwei|drei|.") || !strings.Contains(words, "goodly") || !strings.Contains(words, "U+202E") {
		t.Errorf("words are %q", words)
	}

	// The table sorts, first in descending order; a click on a row opens its head.
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector(".measures summary").click()`))
	b.wait(`document.querySelectorAll("tbody tr").length === 20`)
	sorted := `(() => { const x = [...document.querySelectorAll("tbody tr")].map((r) => parseFloat(r.children[1].textContent)); return x.every((v, i) => !i || %s); })()`
	b.click(`thead th:nth-child(2) button`)
	b.wait(fmt.Sprintf(sorted, "x[i-1] >= v"))
	b.click(`thead th:nth-child(2) button`)
	b.wait(`document.querySelector("thead th:nth-child(2)").ariaSort === "ascending"`)
	b.wait(fmt.Sprintf(sorted, "x[i-1] <= v"))
	if dash := js[bool](b, `[...document.querySelectorAll("td")].some((c) => c.textContent === "–")`); !dash {
		t.Error("cross-attention has a distance")
	}
	b.click(`tbody tr:nth-child(1) button`)
	b.wait(`document.querySelectorAll("tr.open").length === 1`)
	b.drawn()

	// A link restores the screen in another browser.
	want = b.hash()
	first := js[string](b, `document.querySelector("main").innerText + document.querySelector("tbody").innerText`)
	again := open(t, 1280, 900)
	again.visit(address + want)
	again.wait(`document.querySelectorAll("tbody tr").length === 20`)
	if second := js[string](again, `document.querySelector("main").innerText + document.querySelector("tbody").innerText`); second != first {
		t.Errorf("%s restores\n%s\nwant\n%s", want, second, first)
	}
	if again.hash() != want {
		t.Errorf("the address has become %q", again.hash())
	}

	// An address can be edited.
	b.do(chromedp.Evaluate[chromedp.Void](`location.hash = "#a=3.1&v=lines"`))
	b.wait(`document.querySelector(".panel h3").textContent === "encoder, layer 1, head 1" && document.querySelector(".lines")`)
	// The browser's button goes back.
	b.do(chromedp.NavigateBack())
	b.wait(`location.hash === ` + fmt.Sprintf("%q", want) + ` && document.querySelectorAll(".chip").length > 0`)
	// Invalid parts of an address are ignored.
	b.visit(address + "#a=x&v=<b>&tok=q9999&z=9-1,3-2&n=-4&o=%3Cscript&theme=pink&r=77")
	b.wait(`document.querySelector(".panel h3").textContent === "cross-attention, layer 1, head 0"`)
	b.visit(address + "#a=99.99")
	b.wait(`document.querySelector(".panel h3").textContent.includes("no layer 99")`)
	b.unharmed()
}

// A pruned model has layers with different numbers of heads, and some layers may be
// missing from the record.
func TestLayersOfDifferentHeads(t *testing.T) {
	t.Parallel()
	tokens := numbered(5)
	r := &heads.Record{Source: "t0 t1 t2 t3 t4", Layers: []heads.Layer{
		layer(heads.Encoder, 0, 1, tokens, tokens), layer(heads.Encoder, 2, 4, tokens, tokens), layer(heads.Encoder, 3, 2, tokens, tokens),
	}}
	b := open(t, 1280, 900)
	address := serve(t, view.Options{Name: "pruned", Records: []*heads.Record{r}})
	b.visit(address)
	b.wait("[...document.querySelectorAll('.thumb canvas')].every((c) => c.width > 1)")
	rows := js[[][]string](b, `[...document.querySelectorAll('.row:not(.top)')].map((r) => [r.querySelector('.layer').textContent, ...[...r.querySelectorAll('.thumb:not(.summary)')].map((c) => c.title)])`)
	if got, want := fmt.Sprint(rows), "[[0 encoder.0, head 0] [2 encoder.2, head 0 encoder.2, head 1 encoder.2, head 2 encoder.2, head 3] [3 encoder.3, head 0 encoder.3, head 1]]"; got != want {
		t.Errorf("the overview has %s, want %s", got, want)
	}
	// Heads are aligned: every row has the number of columns of the longest.
	if n := js[int](b, `new Set([...document.querySelectorAll('.row:not(.top) .thumb:nth-of-type(1)')].map((c) => Math.round(c.getBoundingClientRect().width))).size`); n != 1 {
		t.Errorf("the thumbnails of the first heads have %d widths, want one", n)
	}

	// The arrow keys continue past the end of a layer.
	b.click(`.thumb[aria-label="encoder, layer 2, head 3"]`)
	b.wait(`document.querySelector(".panel h3").textContent === "encoder, layer 2, head 3"`)
	b.do(chromedp.KeyEvent(kb.ArrowDown))
	b.wait(`document.querySelector(".panel h3").textContent === "encoder, layer 3, head 1"`)
	b.do(chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowUp), chromedp.KeyEvent(kb.ArrowUp))
	b.wait(`document.querySelector(".panel h3").textContent === "encoder, layer 0, head 0"`)

	// The only head of a layer is compared with a head of the next layer.
	b.choose(`[data-state="cmp"]`, "head")
	b.wait(`document.querySelectorAll(".panel h3")[1]?.textContent === "encoder, layer 2, head 0"`)

	// An address may be from the model before pruning.
	b.visit(address + "#a=2.3&m=1")
	b.wait(`document.querySelector(".panel h3").textContent === "There is no head 3 in encoder, layer 3"`)
	b.wait(`document.querySelectorAll("#measures tbody tr").length === 7`)
}

func TestKeyboard(t *testing.T) {
	t.Parallel()
	for _, late := range []time.Duration{0, 200 * time.Millisecond} {
		t.Run(late.String(), func(t *testing.T) { keyboard(t, late) })
	}
}

func keyboard(t *testing.T, late time.Duration) {
	b := open(t, 1280, 900)
	b.visit(serveSlowly(t, view.Options{Records: []*heads.Record{sample()}}, late) + "#a=0.0")
	b.wait("[...document.querySelectorAll('.thumb canvas')].every((c) => c.width > 1)")
	tab := func(until string) {
		t.Helper()
		for range 40 {
			b.do(chromedp.KeyEvent(kb.Tab))
			if js[bool](b, "document.activeElement.matches(`"+until+"`)") {
				if js[string](b, "getComputedStyle(document.activeElement).outlineStyle") == "none" {
					t.Errorf("the focus on %s is not seen", until)
				}
				return
			}
		}
		t.Fatalf("Tab does not reach %s", until)
	}
	tab(".thumb")
	if label := js[string](b, "document.activeElement.ariaLabel"); label != "encoder, layer 0, head 0" {
		t.Errorf("Tab goes to %q", label)
	}
	b.do(chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowDown))
	b.wait(`document.querySelector(".panel h3").textContent === "decoder, layer 0, head 1"`)
	if label := js[string](b, "document.activeElement.ariaLabel"); label != "decoder, layer 0, head 1" {
		t.Errorf("the arrows go to %q", label)
	}
	tab(`[data-view="map"]`)
	tab(".field")
	b.do(chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowDown))
	// Screen readers get the exact weight that the screen shows, not the rounded one of the map.
	b.wait(fmt.Sprintf(`document.querySelector("#notes .unseen").textContent === "▁zw attends to ▁eins with weight %.4f"`, sample().Layers[1].Head(1)[6]))
	if shown := b.text(".tip b"); !strings.HasSuffix(b.text("#notes .unseen"), " "+shown) {
		t.Errorf("%q is spoken, and the screen shows %s", b.text("#notes .unseen"), shown)
	}
	b.do(chromedp.KeyEvent(kb.Enter))
	b.wait(`location.hash.includes("tok=q1")`)
	// The current cell stays the same in the next head.
	r := sample()
	b.wait(fmt.Sprintf(`document.querySelector(".tip b").textContent === "%.4f"`, r.Layers[1].Head(1)[6]))
	b.do(chromedp.KeyEvent("]"))
	b.wait(`document.querySelector(".panel h3").textContent === "decoder, layer 0, head 2"`)
	b.wait(fmt.Sprintf(`document.querySelector(".tip b").textContent === "%.4f"`, r.Layers[1].Head(2)[6]))
	b.do(chromedp.KeyEvent(kb.Escape))
	b.wait(`document.querySelector(".tip").hidden`)
	b.do(chromedp.KeyEvent(kb.Escape))
	b.wait(`!location.hash.includes("tok")`)
	for _, problem := range js[[]string](b, `[...document.querySelectorAll("button, select, input, textarea, [tabindex='0']")]
		.filter((e) => !e.textContent.trim() && !e.ariaLabel && !e.labels?.length && !e.getAttribute("aria-labelledby")).map((e) => e.outerHTML.slice(0, 80))`) {
		t.Errorf("has no name: %s", problem)
	}
}

func TestExports(t *testing.T) {
	t.Parallel()
	b := open(t, 1280, 900)
	address := serve(t, view.Options{Name: "</script>", Records: []*heads.Record{sample()}})
	b.visit(address + "#a=2.1&tok=q1&m=1&theme=light")
	b.wait(`document.querySelectorAll("tbody tr").length === 20`)
	for v, want := range map[string]string{"map": "<rect", "lines": "<path", "text": "rx=\"3\""} {
		b.click(fmt.Sprintf(`[data-view=%q]`, v))
		b.wait(fmt.Sprintf(`document.querySelector('[data-view=%q]').ariaChecked === "true"`, v))
		picture := b.download(`[data-export="svg"]`, "attention.svg")
		for _, part := range []string{want, "Cross-attention, layer 0, head 1", "&lt;/script&gt;"} {
			if !strings.Contains(picture, part) {
				t.Errorf("%s: the picture has no %s", v, part)
			}
		}
		if strings.Contains(picture, "<script") || strings.Contains(picture, "<img") || strings.Contains(picture, "var(") {
			t.Errorf("%s: the picture has what it should not", v)
		}
		// The browser can decode the picture.
		if w := js[int](b, `new Promise((done) => { const i = new Image(); i.onload = () => done(i.width); i.onerror = () => done(-1); i.src = "data:image/svg+xml;base64,`+
			base64.StdEncoding.EncodeToString([]byte(picture))+`"; })`); w < 200 {
			t.Errorf("%s: the picture is %d wide", v, w)
		}
		png := b.download(`[data-export="png"]`, "attention.png")
		if dir := os.Getenv("SHOTS"); dir != "" {
			os.WriteFile(filepath.Join(dir, "attention-"+v+".png"), []byte(png), 0o644)
		}
		if !strings.HasPrefix(png, "\x89PNG\r\n") || len(png) < 3000 {
			t.Errorf("%s: a PNG of %d bytes", v, len(png))
		}
	}
	html := b.download(`[data-export="html"]`, "attention.html")
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, []byte(html), 0o644); err != nil {
		t.Fatal(err)
	}
	first := js[string](b, `document.querySelector("main").innerText + document.querySelector("tbody").innerText`)
	c := open(t, 1280, 900)
	c.visit("file://" + path)
	c.wait(`document.querySelectorAll("tbody tr").length === 20`)
	if second := js[string](c, `document.querySelector("main").innerText + document.querySelector("tbody").innerText`); second != first {
		t.Errorf("the exported page says\n%s\nwant\n%s", second, first)
	}
	c.shoot("exported")
	c.unharmed()
	// The exported page works: it contains all heads of a small record in every lens.
	c.click(`[data-view="map"]`)
	c.click(`.thumb[aria-label="decoder, layer 1, head 2"]`)
	c.wait(`document.querySelector(".panel h3").textContent === "decoder, layer 1, head 2" && document.querySelector(".field")`)
	c.choose(`[data-state="x"]`, "hide")
	c.wait(`document.querySelector(".field")?.ariaLabel.includes("5 queries")`)
	c.unharmed()
}

func TestTrouble(t *testing.T) {
	t.Parallel()
	nan := sample()
	for i := range nan.Layers[2].Weights {
		if i%7 == 0 {
			nan.Layers[2].Weights[i] = float32(math.NaN())
		}
	}
	nan.Layers[0].Weights[0] = 5
	empty := &heads.Record{Source: "nothing", Layers: []heads.Layer{{Name: "e", Heads: 2}, layer(heads.Cross, 0, 1, []string{"a"}, []string{"b"})}}
	special := &heads.Record{Special: []string{"x"}, Layers: []heads.Layer{layer(heads.Encoder, 0, 1, []string{"x"}, []string{"x"})}}
	none := &heads.Record{}
	long := numbered(5000)
	large := &heads.Record{Source: "5,000 tokens", Layers: []heads.Layer{{Name: "long", Heads: 1, Queries: long, Keys: long, Weights: make([]float32, 5000*5000)}}}
	for i := range 5000 {
		large.Layers[0].Weights[i*5000+(i*3)%5000] = 1
	}
	b := open(t, 1280, 900)
	address := serve(t, view.Options{Records: []*heads.Record{nan, empty, special, none, large}})
	b.visit(address + "#a=2.0")
	b.wait(`document.querySelector("#notes .note")?.textContent.includes("cross.0: ")`)
	if note := b.text("#notes .note"); !strings.Contains(note, "not finite") || !strings.Contains(note, "encoder.0: 1 of 27 rows do not sum to 1") {
		t.Errorf("the warning is %q", note)
	}
	b.wait(`document.querySelector(".legend").textContent.includes("not a number")`)
	b.shoot("nan")
	for _, v := range []string{"lines", "text"} {
		b.visit(address + "#a=2.0&tok=q0&m=1&v=" + v)
		b.wait(`document.querySelectorAll("tbody tr").length === 20`)
	}
	b.visit(address + "#r=1&a=0.0")
	b.wait(`document.querySelector(".stage").textContent === "There are no tokens."`)
	b.click(`.thumb[aria-label="cross-attention, layer 0, head 0"]`)
	b.wait(`document.querySelector(".field")`)
	b.visit(address + "#r=2&x=hide")
	b.wait(`document.querySelector(".stage").textContent.includes("only special tokens")`)
	b.visit(address + "#r=3")
	b.wait(`document.querySelector("#grid").textContent.includes("no layers")`)
	b.visit(address + "#r=4")
	b.wait(`document.querySelector(".panel .note").textContent.includes("largest of 3 × 3 weights")`)
	b.shoot("5000")
	b.visit(address + "#r=4&z=1000-1040,3000-3060")
	b.wait(`document.querySelector(".panel .note").hidden && document.querySelector(".field")?.ariaLabel.includes("40 queries attend to 60 keys")`)
	b.wait("[...document.querySelectorAll('.thumb canvas')].every((c) => c.width > 1)")
	b.shoot("5000-zoomed")
	for range 8 {
		b.click(`[aria-label="Zoom out"]`)
	}
	b.click(`.zoom button:last-child`)
	b.wait(`!location.hash.includes("z=")`)
	for _, v := range []string{"lines", "text"} {
		b.visit(address + "#r=4&v=" + v)
		b.wait(`document.querySelector(".panel .note").textContent.includes("largest of 3 × 3")`)
	}
	b.unharmed()
}

func TestSizes(t *testing.T) {
	t.Parallel()
	r := &heads.Record{Source: "12 × 12 × 512"}
	tokens := numbered(512)
	one := layer(heads.Encoder, 0, 12, tokens, tokens)
	for i := range 12 {
		one.Index = i
		r.Layers = append(r.Layers, one)
	}
	tokens = numbered(2048)
	single := &heads.Record{Source: "2,048 tokens", Layers: []heads.Layer{layer(heads.Decoder, 0, 1, tokens, tokens)}}
	b := open(t, 1280, 900)
	address := serve(t, view.Options{Records: []*heads.Record{r, single}})
	b.visit(address)
	b.wait("[...document.querySelectorAll('.thumb canvas')].every((c) => c.width > 1)")
	t.Logf("12 × 12 × 512 has drawn after %.0f ms", js[float64](b, "performance.now()"))
	b.shoot("512")
	b.visit(address + "#r=1")
	b.wait(`document.querySelector(".field")?.ariaLabel.includes("2048 queries attend to 2048 keys")`)
	b.wait("[...document.querySelectorAll('.thumb canvas')].every((c) => c.width > 1)")
	if note := js[bool](b, `document.querySelector(".panel .note").hidden`); !note {
		t.Error("2,048 tokens are not drawn one by one")
	}
	b.shoot("2048")
	for _, want := range []string{"z=512-1536,512-1536", "z=768-1280,768-1280"} {
		b.click(`[aria-label="Zoom in"]`)
		b.wait(fmt.Sprintf(`decodeURIComponent(location.hash).includes(%q)`, want))
	}
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector(".field").focus()`), chromedp.KeyEvent("0"))
	b.wait(`!location.hash.includes("z=")`)
}

func TestNarrow(t *testing.T) {
	t.Parallel()
	b := open(t, 360, 740)
	address := serve(t, view.Options{Name: strings.Repeat("long", 30), Records: []*heads.Record{sample(), sample()}})
	for _, hash := range []string{"a=2.1&m=1", "v=lines&a=4.1", "v=text&tok=q1", "cmp=head", "cmp=text&v=lines"} {
		b.visit(address + "#" + hash)
		if wide := js[int](b, "document.documentElement.scrollWidth"); wide > 360 {
			t.Errorf("%s: the page is %d pixels wide", hash, wide)
		}
		if n := js[int](b, `document.querySelectorAll(".panel").length`); (n > 1) != strings.Contains(hash, "cmp") {
			t.Errorf("%s: %d panels", hash, n)
		}
	}
}

func TestTheme(t *testing.T) {
	t.Parallel()
	b := open(t, 1280, 900)
	system := func(scheme string) {
		t.Helper()
		if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}); err != nil {
			t.Fatal(err)
		}
	}
	// The corner of a causal head has weight 0: light in the light theme, dark in the dark one.
	corner := `(() => { const c = document.querySelector(".thumb[aria-label^=decoder] canvas"); return c.getContext("2d").getImageData(c.width - 1, 0, 1, 1).data[0]; })()`
	system("light")
	b.visit(serve(t, view.Options{Records: []*heads.Record{sample()}}))
	b.wait(`document.documentElement.dataset.theme === "light" && ` + corner + " > 180")
	system("dark")
	b.wait(`document.documentElement.dataset.theme === "dark" && ` + corner + " < 90")
	b.click("#theme") // dark, regardless of the system
	b.click("#theme") // light
	b.wait(`document.documentElement.dataset.theme === "light" && ` + corner + ` > 180 && location.hash === "#theme=light"`)
	b.click("#theme")
	b.wait(`document.documentElement.dataset.theme === "dark" && location.hash === ""`)
}
