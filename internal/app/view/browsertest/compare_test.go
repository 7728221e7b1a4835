package browsertest

import (
	"fmt"
	"math"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/view"
)

// twoHeads returns a record in which head 0 has weights up to 0.55, head 1 up to 0.95,
// and both have 0.25 in their first cell.
func twoHeads() *heads.Record {
	queries, keys := numbered(3), numbered(5)
	return &heads.Record{Source: "two heads", Target: "of one layer", Layers: []heads.Layer{{Name: "cross.0", Kind: heads.Cross, Heads: 2, Queries: queries, Keys: keys, Weights: []float32{
		0.25, 0.25, 0.25, 0.15, 0.10,
		0.55, 0.25, 0.10, 0.05, 0.05,
		0.20, 0.20, 0.20, 0.20, 0.20,

		0.25, 0.05, 0.25, 0.20, 0.25,
		0.01, 0.01, 0.95, 0.02, 0.01,
		0.20, 0.20, 0.20, 0.20, 0.20,
	}}}}
}

// corner returns an expression for the colour of the first cell of the n-th map on the screen.
func corner(n int) string {
	return fmt.Sprintf(`(() => { const c = document.querySelectorAll(".field canvas:not(.over)")[%d], d = devicePixelRatio;
		const [x, y] = c.parentElement.dataset.origin.split(",").map(Number);
		return [...c.getContext("2d").getImageData((x + 6) * d, (y + 6) * d, 1, 1).data].join(); })()`, n)
}

func TestCompare(t *testing.T) {
	t.Parallel()
	b := open(t, 1280, 900)
	address := serve(t, view.Options{Records: []*heads.Record{twoHeads()}})
	b.visit(address + "#cmp=head&a=0.0&b=0.1&theme=light&c=own")
	b.wait(`document.querySelectorAll(".field").length === 3`)

	// A weight has the same colour in both maps, and both legends show the same scale.
	if one, two := js[string](b, corner(0)), js[string](b, corner(1)); one != two {
		t.Errorf("0.25 has the colours %s and %s", one, two)
	}
	for i := range 2 {
		if text := js[string](b, fmt.Sprintf(`document.querySelectorAll(".legend")[%d].textContent`, i)); text != "00.950, the same for both" {
			t.Errorf("legend %d says %q", i, text)
		}
	}
	// A single head has its own scale, which ends at its largest weight.
	b.visit(address + "#theme=light")
	if text := b.text(".legend"); text != "00.550" {
		t.Errorf("the legend of a single head says %q", text)
	}

	// In the difference, 0 has the colour of the panel, and the two signs differ.
	b.visit(address + "#cmp=head&a=0.0&b=0.1&theme=light")
	b.wait(`document.querySelectorAll(".field").length === 3`)
	if white := js[string](b, corner(2)); white != "255,255,255,255" {
		t.Errorf("no difference has the colour %s", white)
	}
	if text := js[string](b, `document.querySelectorAll(".legend")[2].textContent`); text != "−0.8500.850" {
		t.Errorf("the legend of the difference says %q", text)
	}
	// Rows 0 and 1: (0 + .2 + 0 + .05 + .15)/2 and (.54 + .24 + .85 + .03 + .04)/2.
	want := fmt.Sprintf("%.2f", (0.2+0.85)/3)
	if text := b.text(".difference .facts dd"); math.Abs(0.35-(0.2+0.85)/3) > 1e-9 || text != want {
		t.Errorf("total variation is %s, want %s", text, want)
	}

	// The cell under the pointer is marked in all three maps, with exact values.
	box := js[[]float64](b, `(() => { const f = document.querySelector(".field"), r = f.getBoundingClientRect(), [x, y] = f.dataset.origin.split(",").map(Number); return [r.left + x, r.top + y, Number(f.dataset.cell)]; })()`)
	b.do(chromedp.MouseEvent("mouseMoved", box[0]+2.5*box[2], box[1]+1.5*box[2]))
	b.wait(`[...document.querySelectorAll(".tip b")].map((e) => e.textContent).join() === "0.1000,0.9500,−0.8500"`)
	b.shoot("difference")
	b.do(chromedp.MouseEvent("mouseMoved", 5, 5))
	b.wait(`[...document.querySelectorAll(".tip")].every((e) => e.hidden)`)
	// The selected token is marked too, in every view.
	b.visit(address + "#cmp=head&a=0.0&b=0.1&v=lines&tok=q1")
	if n := js[int](b, `document.querySelectorAll(".lines .picked").length`); n != 2 {
		t.Errorf("the chosen token is marked %d times, want 2", n)
	}
	b.visit(address + "#cmp=head&a=0.0&b=0.1&v=text")
	b.do(chromedp.ScrollIntoView(chromedp.CSS(".flow")))
	chip := js[[]float64](b, `(() => { const r = document.querySelectorAll(".chip")[1].getBoundingClientRect(); return [r.left + 4, r.top + 4]; })()`)
	b.do(chromedp.MouseEvent("mouseMoved", chip[0], chip[1]))
	b.wait(`document.querySelectorAll(".chip.picked").length === 2`)
}

// A model and its pruned copy.
func TestCompareModels(t *testing.T) {
	t.Parallel()
	pruned := func(source string) *heads.Record {
		r := twoHeads()
		l := &r.Layers[0]
		l.Heads, l.Chosen, l.Weights = 1, []int{1}, append([]float32{}, l.Head(1)...)
		l.Weights[0], l.Weights[1] = 0.05, 0.25
		return r
	}
	b := open(t, 1280, 900)
	b.visit(serve(t, view.Options{Name: "whole", Recorder: recordFunc(func(string) *heads.Record { return twoHeads() }), Records: []*heads.Record{twoHeads()},
		Others: []view.Model{{Name: "pruned", Recorder: recordFunc(pruned)}}}))
	b.choose(`[data-state="cmp"]`, "model")
	b.wait(`document.querySelectorAll(".panel h3").length === 2 && document.querySelectorAll(".panel h3")[1].textContent === "The other model does not have this head"`)
	b.click(`.thumb[aria-label="cross-attention, layer 0, head 1"]`)
	b.wait(`document.querySelectorAll(".field").length === 3`)
	b.drawn()
	if text := js[string](b, `[...document.querySelectorAll(".panel h3, .panel .sub")].map((e) => e.textContent).filter(Boolean).join("|")`); text !=
		"cross-attention, layer 0, head 1|whole: two heads → of one layer|cross-attention, layer 0, head 1|pruned: two heads → of one layer|Difference, first − second" {
		t.Errorf("the panels are %s", text)
	}
	if text := js[string](b, `document.querySelectorAll(".legend")[2].textContent`); text != "−0.2000.200" {
		t.Errorf("the legend of the difference says %q", text)
	}
	link := b.hash()
	page := b.download(`[data-export="html"]`, "attention.html")
	b.check()
	b.visit(b.save(page) + link)
	b.wait(`document.querySelectorAll(".field").length === 3`)
}
