package browsertest

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/view"
)

// switcher is a model whose output is 0.75 as it is. Each head that is off takes away a tenth, each that is patched adds a
// hundredth, and each key that is masked adds a thousandth.
type switcher struct{ recordFunc }

// named is one whose records have their texts.
var named = switcher{func(text string) *heads.Record {
	r := sample()
	r.Source = text
	return r
}}

func (switcher) Output(_ context.Context, r *heads.Record, c view.Changes) (view.Output, error) {
	after := 0.75
	for _, list := range c.Off {
		after -= 0.1 * float64(len(list))
	}
	for _, list := range c.Patched {
		after += 0.01 * float64(len(list))
	}
	for _, list := range c.Masked {
		after += 0.001 * float64(len(list))
	}
	if c.Other != nil && c.Other.Source == "longer" {
		return view.Output{}, errors.New("the first text has 5 tokens and the second 6")
	}
	return view.Output{What: "probability of next word", Rows: []view.OutputRow{{Label: "<b>", Before: 0.75, After: after}}}, nil
}

func (switcher) Effects(_ context.Context, r *heads.Record) (map[string][]float64, error) {
	all := map[string][]float64{}
	for i, l := range r.Layers {
		for h := range l.Heads {
			all[l.Name] = append(all[l.Name], float64(h)-float64(i))
		}
	}
	return all, nil
}

func (switcher) Predictions(context.Context, *heads.Record) (view.Predictions, error) {
	at := func(label string, p float64) []view.Prediction {
		return []view.Prediction{{Label: label, Probability: p}, {Label: "\n", Probability: 0.01}}
	}
	layers := [][][]view.Prediction{{at("x", 0.1), at(" ", 0.2)}, {at("</td>", 0.9), at("z", 0.6)}}
	return view.Predictions{Tokens: []string{"a", "</td>"}, Layers: layers}, nil
}

// Heads are switched off, coloured by their effects, and each layer predicts.
func TestCauses(t *testing.T) {
	t.Parallel()
	b := open(t, 1280, 900)
	address := serve(t, view.Options{Name: "m", Recorder: switcher{func(string) *heads.Record { return sample() }}, Records: []*heads.Record{sample()}})
	b.visit(address + "#a=1.2") // the text of the command line
	b.wait(`document.querySelector("#output td")?.textContent === "0.750" && !document.getElementById("off").parentNode.hidden`)
	b.visit(address + "#s=typed&a=1.2")
	b.wait(`document.querySelector("#output td")?.textContent === "0.750"`)
	if n := js[int](b, `document.querySelectorAll("#output td").length`); n != 1 {
		t.Errorf("with all heads the output has %d numbers, want one", n)
	}
	b.click("#off")
	b.wait(`location.hash.includes("off=1.2") && document.querySelector("#output td.down")?.textContent === "0.650"`)
	b.click(".made button")
	b.wait(`!location.hash.includes("off=") && document.querySelectorAll("#output td").length === 1`)
	b.choose("#grid-measure", "effect")
	b.wait(`document.querySelectorAll(".thumb[data-value*='effect']").length > 10`)

	if js[bool](b, `document.querySelector("table .token") !== null`) {
		t.Error("predictions are asked for before they are opened")
	}
	b.click("#measures details:last-child summary")
	b.wait(`document.querySelectorAll("#measures td.token").length === 4`)
	if got := js[string](b, `[...document.querySelectorAll("#measures details:last-child tr")].map((row) => row.innerText.replace(/\s+/g, " ").trim()).join("|")`); got != `a </td>|output </td> z|layer 0 x " "` {
		t.Errorf("the table says %q", got)
	}
	if got := js[string](b, `document.querySelector("#measures td.token").title`); got != "</td> 0.900\n\"\\n\" 0.010" {
		t.Errorf("the next predictions are %q", got)
	}
	if !strings.Contains(b.hash(), "l=1") {
		t.Errorf("the address %s does not have the open table", b.hash())
	}
	b.shoot("causes")
	b.unharmed()
}

// Where two texts are compared, heads of the first have their weights of the second, beside heads that are off.
func TestPatched(t *testing.T) {
	t.Parallel()
	b := open(t, 1280, 900)
	address := serve(t, view.Options{Name: "m", Recorder: named})
	b.visit(address + "#s=one&a=1.2")
	b.wait(`document.querySelector("#output td")?.textContent === "0.750" && document.getElementById("patch").parentNode.hidden`)
	b.visit(address + "#s=one&s2=two&cmp=text&a=1.2")
	b.wait(`document.querySelector("#output td")?.textContent === "0.750" && !document.getElementById("patch").parentNode.hidden`)
	b.click("#patch")
	b.wait(`location.hash.includes("patch=1.2") && document.querySelector("#output td.up")?.textContent === "0.760"`)
	b.do(chromedp.KeyEvent("["))
	b.wait(`location.hash.includes("a=1.1") && !document.getElementById("patch").checked`)
	b.do(chromedp.KeyEvent("w"))
	b.wait(`document.getElementById("patch").checked && document.querySelector("#output td.up")?.textContent === "0.770"`)
	b.do(chromedp.KeyEvent("0"))
	b.wait(`document.querySelector("#output td.down")?.textContent === "0.670"`)
	if got := js[string](b, `document.querySelector(".made").textContent.trim()`); got != "without decoder 0.1 with the weights of the second text decoder 0.2decoder 0.1" {
		t.Errorf("the table says %q", got)
	}
	b.shoot("patched")
	b.visit(address + "#s=one&s2=longer&cmp=text&a=1.2&patch=1.2,1.1")
	b.wait(`document.querySelector("#output .quiet")?.innerText.includes("has 5 tokens and the second 6")`)
	b.click(".made button")
	b.click(".made button")
	b.wait(`!location.hash.includes("patch=") && document.querySelector("#output td")?.textContent === "0.750"`)
	b.visit(address + "#s=one&a=1.2&patch=1.2") // without a second text nothing is patched
	b.wait(`document.querySelector("#output td")?.textContent === "0.750"`)
	b.unharmed()
}

// A double click on a token masks it in all layers, in every view; so do a key and a box for the selected token.
func TestMasked(t *testing.T) {
	t.Parallel()
	b := open(t, 1280, 900)
	address := serve(t, view.Options{Name: "m", Recorder: named})
	after := func(want string) {
		b.Helper()
		b.wait(`document.querySelector("#output td + td")?.textContent === "` + want + `"`)
	}
	plain := func() {
		b.Helper()
		b.wait(`document.querySelectorAll("#output td").length === 1`)
	}
	b.visit(address + "#s=one&a=1.2&v=text") // the decoder's text, in two layers
	plain()
	twice := func(selector string) {
		b.Helper()
		b.do(chromedp.DoubleClick(chromedp.CSS(selector)))
	}
	twice(".flow .chip:nth-child(3)")
	after("0.752")
	if got := js[string](b, `[...document.querySelectorAll(".chip.struck, .made .mask")].map((x) => x.textContent).join()+location.hash.replace(/.*&mask/, "&mask")`); got != "ei,ei&mask=1.2" {
		t.Errorf("masked: %q", got)
	}
	b.shoot("masked")
	twice(".flow .chip:nth-child(3)")
	plain()

	b.visit(address + "#s=one&a=2.1&v=lines&mask=0.0") // cross-attention: queries of the target, keys of the source
	after("0.754")
	twice(".lines text.token:nth-of-type(4)") // after the two titles: the second query
	after("0.756")
	if got := js[int](b, `document.querySelectorAll(".lines [text-decoration]").length`); got != 2 {
		t.Errorf("%d tokens are crossed out, want two", got)
	}
	if !strings.Contains(b.hash(), "mask=0.0%2C1.1") {
		t.Errorf("the address is %s", b.hash())
	}
	b.click(".made button")
	after("0.752")

	b.visit(address + "#s=one&a=1.2&tok=k1")
	plain()
	b.do(chromedp.KeyEvent("m"))
	after("0.752")
	b.wait(`document.getElementById("mask").checked`)
	b.click("#mask")
	plain()
	origin := js[[]float64](b, `(() => { const f = document.querySelector(".field"), box = f.getBoundingClientRect(); return [box.left + Number(f.dataset.origin.split(",")[0]) - 12, box.top + Number(f.dataset.origin.split(",")[1]) + 3.5 * Number(f.dataset.cell)]; })()`)
	b.do(chromedp.MouseClickXY(origin[0], origin[1]), chromedp.MouseClickXY(origin[0], origin[1], chromedp.ClickCount(2)))
	after("0.752")
	if !strings.Contains(b.hash(), "mask=1.3") {
		t.Errorf("the address is %s", b.hash())
	}
	b.shoot("masked-map")
	b.visit(address + "#s=one&a=1.2&v=text&w=1&mask=1.1") // a word is masked when all of its pieces are
	after("0.752")
	if n := js[int](b, `document.querySelectorAll(".chip.struck").length`); n != 0 {
		t.Errorf("%d words are crossed out for a piece", n)
	}
	twice(".flow .chip:nth-child(2)")
	after("0.754")
	b.do(chromedp.SetValue(chromedp.CSS("#text-s"), "another"), chromedp.Click(chromedp.CSS("#ask button.main")))
	b.wait(`!location.hash.includes("mask=") && location.hash.includes("s=another")`)
	plain()
	b.unharmed()
}

// pruner is a switcher that writes its model once.
type pruner struct {
	switcher
	done *atomic.Bool
}

func (pruner) PrunesTo() string { return "small" }

func (p pruner) Prune(_ context.Context, _ *heads.Record, off map[string][]int) (view.Pruned, error) {
	if p.done.Swap(true) {
		return view.Pruned{}, errors.New("small already exists")
	}
	return view.Pruned{Dir: "small", Command: "attn prune --keep <i>small", Sizes: []view.OutputRow{{Label: "heads", Before: 20, After: float64(20 - len(off))}},
		Output: view.Output{What: "probability of next word", Rows: []view.OutputRow{{Label: "x", Before: 0.5, After: 0.25}}}}, nil
}

// The heads that are off are removed by one button, which then shows what was written.
func TestPrune(t *testing.T) {
	t.Parallel()
	b := open(t, 1280, 900)
	record := switcher{func(string) *heads.Record { return sample() }}
	address := serve(t, view.Options{Name: "m", Recorder: pruner{record, new(atomic.Bool)}, Records: []*heads.Record{sample()}})
	b.visit(address + "#a=1.2")
	b.wait(`document.querySelectorAll("#output td").length === 1`)
	if js[bool](b, `document.querySelector(".pruner") !== null`) {
		t.Error("without a head to remove there is a button")
	}
	b.click("#off")
	b.wait(`document.querySelector(".pruner button")`)
	b.click(".pruner button")
	b.wait(`document.querySelector(".pruner code")?.textContent === "attn prune --keep <i>small"`)
	if got := js[string](b, `[...document.querySelectorAll(".pruner td")].map((x) => x.textContent).join()`); got != "20,19,0.500,0.250" {
		t.Errorf("the report says %s", got)
	}
	b.shoot("pruned")
	b.do(chromedp.KeyEvent("["))
	b.wait(`location.hash.includes("a=1.1")`)
	if !js[bool](b, `document.querySelector(".pruner code") !== null`) {
		t.Error("the report is gone with another open head")
	}
	b.do(chromedp.KeyEvent("0")) // another set
	b.wait(`document.querySelector(".pruner button")?.disabled === false`)
	b.click(".pruner button")
	b.wait(`document.querySelector(".pruner .bad")?.textContent === "small already exists"`)
	b.unharmed()
}
