package browsertest

import (
	"bytes"
	"context"
	"fmt"
	"image/png"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/view"
)

// The exported page works in a frame of another page, as in notebooks and blogs, and
// does not change that page.
func TestEmbedded(t *testing.T) {
	t.Parallel()
	page, err := view.Page(context.Background(), view.Options{Name: "embedded", Records: []*heads.Record{sample()}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	fragment := string(view.Embed(page, `a "title"`))
	if strings.Count(fragment, "\n") != 1 {
		t.Error("the fragment is more than one line")
	}
	b := open(t, 1280, 1000)
	host := func(fragment string) {
		b.Helper()
		b.do(chromedp.Navigate("about:blank"), chromedp.Navigate(b.save(`<!DOCTYPE html><meta charset="utf-8"><title>host</title><body style="background:#c00"><p>host</p>`+fragment)))
	}
	// Without the sandbox, scripts of the test can read the content of the frame.
	host(strings.Replace(fragment, ` sandbox="allow-scripts allow-downloads"`, "", 1))
	inside := func(expression string) string {
		return fmt.Sprintf(`(() => { const document = window.document.querySelector("iframe").contentDocument; return %s; })()`, expression)
	}
	b.wait(inside(`document.body?.dataset.drawn !== undefined && document.querySelectorAll(".thumb:not(.summary)").length === 20`))
	for _, c := range []struct{ click, want string }{
		{`.thumb[aria-label="decoder, layer 1, head 2"]`, `document.querySelector(".panel h3").textContent === "decoder, layer 1, head 2"`},
		{`[data-view="lines"]`, `document.querySelector(".lines path") !== null`},
		{`[data-state="w"]`, `document.querySelectorAll(".lines .token").length === 10`},
		{`#theme`, `document.documentElement.dataset.theme === "dark"`},
		{`#skip`, `document.activeElement.id === "panels"`},
	} {
		js[bool](b, inside(fmt.Sprintf(`(document.querySelector(%q).click(), true)`, c.click)))
		b.wait(inside(c.want))
	}
	if title := js[string](b, "document.title"); title != "host" {
		t.Errorf("the title of the page around it is %q", title)
	}

	// With the sandbox: a click changes the content of the frame, and the host does not appear in it.
	host(fragment)
	screen := func() (inFrame int, bytes_ []byte) {
		data, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}
		picture, err := png.Decode(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		red := 0
		for y := 100; y < 700; y++ {
			for x := 100; x < 1200; x++ {
				if r, g, _, _ := picture.At(x, y).RGBA(); r>>8 > 0xb0 && g>>8 < 0x10 {
					red++
				}
			}
		}
		return red, data
	}
	js[bool](b, "new Promise((done) => setTimeout(() => done(true), 700))")
	red, before := screen()
	b.do(chromedp.MouseClickXY(200, 250))
	js[bool](b, "new Promise((done) => setTimeout(() => done(true), 700))")
	after, picture := screen()
	b.shoot("embedded")
	if red > 0 || after > 0 || bytes.Equal(before, picture) {
		t.Errorf("after a click in the frame %d pixels are of the page around it, before %d; something has changed: %v", after, red, !bytes.Equal(before, picture))
	}
}
