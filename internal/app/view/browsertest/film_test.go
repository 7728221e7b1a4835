package browsertest

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/view"
	"github.com/attn-go/attn/train"
)

// The page scrubs the recording of a run: by pointer, by keys, and by playing it.
func TestFilm(t *testing.T) {
	t.Parallel()
	dir := trained(t)
	film, err := train.ReadFilm(dir)
	if err != nil {
		t.Fatal(err)
	}
	address, end := startView(t, "--model", dir)
	defer end()
	b := open(t, 1440, 900)
	b.visit(address)
	last := film.Frames[len(film.Frames)-1].Step
	now := func() string { return b.text("#film output") }
	// Without a text, the page shows the last step.
	if want := fmt.Sprintf("step %d of %d, loss ", last, last); !strings.HasPrefix(now(), want) {
		t.Errorf("the page begins with %q, want %s", now(), want)
	}
	// measures waits for the measures of the open head, which arrive after the map, and returns them.
	old := ""
	measures := func() string {
		b.Helper()
		b.wait(fmt.Sprintf(`![%q, "", undefined].includes(document.querySelector(".facts")?.textContent)`, old))
		old = b.text(".facts")
		return old
	}
	final := measures()
	slide := func(at int) {
		b.Helper()
		js[any](b, fmt.Sprintf(`(() => { const e = document.querySelector("#film input"); e.value = %d; e.dispatchEvent(new Event("input", { bubbles: true })); })(), null`, at))
		b.drawn()
	}
	js[any](b, `(window.kept = document.querySelector(".thumb")), null`)
	slide(0)
	if got, want := now(), fmt.Sprintf("step 0 of %d", last); got != want || js[string](b, `document.querySelector("#film input").getAttribute("aria-valuetext")`) != want {
		t.Errorf("the first frame is %q, want %s", got, want)
	}
	if !strings.Contains(b.hash(), "f=0") {
		t.Errorf("the address is %s", b.hash())
	}
	measures() // other than those of the last step
	if !js[bool](b, `window.kept.isConnected`) {
		t.Error("the overview is built again for another step")
	}
	// The weights are those of the file.
	record := film.Frames[0].Record
	want := record.Layers[len(record.Layers)-1].Head(0)
	got := js[[]float32](b, fmt.Sprintf(`fetch("api/head?record=f0&layer=%d&head=0&exact=1").then((r) => r.arrayBuffer()).then((a) => [...new Float32Array(a.slice(32))])`, len(record.Layers)-1))
	if len(got) != len(want) || got[3] != want[3] {
		t.Errorf("%d weights %v, want %d, %v", len(got), got[:4], len(want), want[:4])
	}
	b.shoot("film-first")
	// Keys.
	b.do(chromedp.Focus(chromedp.CSS("#film input")), chromedp.KeyEvent(kb.ArrowRight))
	b.wait(`document.querySelector("#film output").textContent.startsWith("step 1 of")`)
	b.drawn()
	// A link restores the step, and all views show it.
	b.visit(js[string](b, "location.href"))
	if !strings.HasPrefix(now(), "step 1 of") {
		t.Errorf("the link shows %q", now())
	}
	for _, view := range []string{"lines", "text", "map"} {
		b.click(`[data-view="` + view + `"]`)
		b.drawn()
	}
	// Playing ends at the last step, and moving the slider stops it.
	b.click("#film button")
	b.wait(`document.querySelector("#film output").textContent.startsWith("step 4 of")`)
	slide(0)
	if b.text("#film button") != "Play" {
		t.Error("moving the slider does not stop playing")
	}
	b.click("#film button")
	b.wait(fmt.Sprintf(`document.querySelector("#film output").textContent.startsWith("step %d of") && document.querySelector("#film button").textContent === "Play"`, last))
	// A typed text, and back with a frame; Escape.
	js[any](b, `(document.getElementById("text-s").value = "5 march 2019"), document.querySelector("#ask button.main").click(), null`)
	b.wait(`document.querySelector("#film output").textContent === "" && document.querySelector(".sub").textContent.startsWith("5 march 2019")`)
	slide(1)
	if sub := b.text(".panel .sub"); !strings.HasPrefix(sub, record.Source) {
		t.Errorf("the frame shows %q", sub)
	}
	js[any](b, `document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true })), null`)
	b.wait(`document.querySelector(".sub").textContent.startsWith("5 march 2019")`)
	// The offline page has the recording.
	shows := func(facts string) {
		b.Helper()
		b.wait(fmt.Sprintf(`document.querySelector(".facts")?.textContent === %q`, facts))
	}
	slide(len(film.Frames) - 1)
	shows(final)
	old = final
	slide(1)
	facts := measures()
	page := b.download(`[data-export="html"]`, "page.html")
	b.visit(b.save(page))
	if shows(facts); !strings.HasPrefix(now(), "step 1 of") {
		t.Errorf("the offline page shows %q", now())
	}
	for _, view := range []string{"lines", "text", "map"} {
		b.click(`[data-view="` + view + `"]`)
		b.drawn()
		slide(len(film.Frames) - 1)
		shows(final)
		slide(0)
		old = final
		if measures(); !strings.HasPrefix(now(), "step 0 of") {
			t.Errorf("step 0 of the offline page shows %q", now())
		}
		b.choose(`[data-state="x"]`, "hide")
		b.drawn()
		b.choose(`[data-state="x"]`, "")
		b.drawn()
		if note := b.text("#notes .note"); note != "" {
			t.Errorf("the offline page says %q", note)
		}
	}
	b.click("#film button")
	b.wait(fmt.Sprintf(`document.querySelector("#film output").textContent.startsWith("step %d of") && document.querySelector("#film button").textContent === "Play"`, last))
	b.drawn()
	b.shoot("film-offline")
	// So is the text that was typed before the step was chosen.
	b.wait(`!document.querySelector("#film button:last-of-type").hidden`)
	b.click("#film button:last-of-type")
	b.wait(`document.querySelector("#film output").textContent === "" && document.querySelector(".sub").textContent.startsWith("5 march 2019")`)
	b.wait(`document.querySelectorAll(".thumb canvas").length > 0 && document.querySelector(".facts")?.textContent`)
	b.drawn()
	if note := b.text("#notes .note"); note != "" {
		t.Errorf("the text of the offline page says %q", note)
	}
	b.shoot("film-offline-text")
	slide(0)
	js[any](b, `document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true })), null`)
	b.wait(`document.querySelector(".sub").textContent.startsWith("5 march 2019")`)
	// Narrow, and in dark colours.
	b.do(chromedp.EmulateViewport(380, 740))
	b.visit(address + "#theme=dark&f=4")
	if wide := js[bool](b, `document.documentElement.scrollWidth > innerWidth`); wide {
		t.Error("the page is wider than the window")
	}
	b.shoot("film-narrow")
}

// The recording alone, without its model, has the slider too.
func TestFilmOfFile(t *testing.T) {
	t.Parallel()
	address, end := startView(t, "--weights", filepath.Join(trained(t), train.FilmFile))
	defer end()
	b := open(t, 1280, 800)
	b.visit(address)
	if now := b.text("#film output"); !strings.HasPrefix(now, "step ") {
		t.Errorf("the page begins with %q", now)
	}
	facts := `document.querySelector(".facts")?.textContent`
	b.wait(facts)
	final := b.text(".facts")
	b.visit(address + "#f=0")
	b.wait(fmt.Sprintf(`![%q, "", undefined].includes(%s)`, final, facts))
	if now := b.text("#film output"); !strings.HasPrefix(now, "step 0 of ") {
		t.Errorf("step 0 is %q", now)
	}
	if !js[bool](b, `document.getElementById("ask").hidden && document.querySelector("#notes .note") === null`) {
		t.Errorf("the page without a model has a form, or the note %q", b.text("#notes .note"))
	}
}

// An offline page without room for the recording contains one step, and says so.
func TestFilmTooLarge(t *testing.T) {
	t.Parallel()
	film, words := &heads.Film{}, numbered(128)
	for step := range 90 {
		l := layer(heads.Encoder, 0, 8, words, words)
		l.Weights[0] = float32(step)
		if err := film.Add(heads.Frame{Step: step, Record: &heads.Record{Source: "abc", Layers: []heads.Layer{l}}}); err != nil {
			t.Fatal(err)
		}
	}
	b := open(t, 1280, 800)
	b.visit(serve(t, view.Options{Name: "large", Film: film}) + "#f=4")
	b.wait(`document.querySelector(".facts")?.textContent`)
	facts := b.text(".facts")
	b.visit(b.save(b.download(`[data-export="html"]`, "page.html")))
	const want = "step 4 of 89, loss 0.0000The recording is too large for this page, which contains only this step."
	check := func() {
		b.Helper()
		b.wait(fmt.Sprintf(`document.querySelector(".facts")?.textContent === %q`, facts))
		if got := b.text("#film output") + b.text("#film .quiet"); got != want {
			t.Errorf("the offline page says %q, want %q", got, want)
		}
		if !js[bool](b, `document.querySelector("#film input").hidden && document.querySelector("#film button").hidden`) {
			t.Error("there is a slider")
		}
	}
	check()
	js[any](b, `document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true })), null`)
	b.drawn()
	check()
	// So does the page that is written without a browser.
	page, err := view.Page(t.Context(), view.Options{Name: "large", Film: film}, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.visit(b.save(string(page)))
	if got := b.text("#film output") + b.text("#film .quiet"); got != strings.Replace(want, "step 4", "step 89", 1) {
		t.Errorf("the written page says %q", got)
	}
}

// A model without a recording has no slider.
func TestWithoutFilm(t *testing.T) {
	t.Parallel()
	address := serve(t, view.Options{Name: "one", Records: []*heads.Record{{Layers: []heads.Layer{layer(heads.Encoder, 0, 2, numbered(4), numbered(4))}}}})
	b := open(t, 1280, 800)
	b.visit(address)
	if !js[bool](b, `document.getElementById("film").hidden`) {
		t.Error("there is a slider")
	}
}
