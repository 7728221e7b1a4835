package browsertest

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/attn-go/attn/internal/app/view"
)

// The page of a training run updates itself, without errors.
func TestTraining(t *testing.T) {
	t.Parallel()
	var asked, frames atomic.Int64
	svg := `<svg xmlns="http://www.w3.org/2000/svg" class="chart" width="300" height="20" viewBox="0 0 300 20"><script>alert(1)</script><path class="c1" color="#000" d="M0 0h9"/><g class="strips" fill-opacity="0">` +
		`<path data-x="7" d="M0 0h9v9z"><title>step 7: training 0.5, validation 0.25</title></path><path data-x="9" d="M9 0h9v9z"><title>step 9: training 0.25</title></path>` +
		`<path data-x="7" d="M0 9h9v9z"><title>step 7: rate 0.125</title></path></g></svg>`
	s := view.NewTraining("runs/<dates>", func(width float64) (any, error) {
		n := asked.Add(1)
		run := map[string]any{"status": "training", "over": false, "chart": "", "facts": []map[string]string{}}
		if n > 1 {
			run["chart"], run["facts"] = svg, []map[string]string{{"name": "training loss", "value": "<b>0.25</b>"}}
		}
		if n > 1 {
			run["film"] = map[string]any{"steps": []int{0, 4, 1225}, "losses": []any{nil, 2.5, 0.25}, "title": "cross-attention", "text": "a → <i>b"}
		}
		if n > 2 {
			run["status"], run["over"] = "done", true
			run["note"], run["sample"] = "Why it is lower.", map[string]string{"source": "le <i>chat", "written": "the cat", "heads": `<svg xmlns="http://www.w3.org/2000/svg"/>`, "title": "cross"}
		}
		return run, nil
	}, func(step int) (any, error) {
		frames.Add(1)
		return map[string]string{"picture": fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg"><text>%d</text></svg>`, step), "text": "largest weights <b>0.5</b>"}, nil
	})
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	b := open(t, 380, 700)
	b.do(chromedp.Navigate(s.Address(strings.TrimPrefix(server.URL, "http://"))))
	b.wait(`document.getElementById("status").textContent === "done"`)
	b.wait(`document.title === "runs/<dates>: done"`)
	if got := js[string](b, `document.getElementById("facts").textContent`); got != "training loss<b>0.25</b>" {
		t.Errorf("the facts are %q", got)
	}
	if n := js[int](b, `document.querySelectorAll("#chart svg path").length`); n != 4 {
		t.Errorf("%d paths in the chart, want 4", n)
	}
	// Hovering and the arrow keys show the values of a step in all charts.
	b.wait(`!document.querySelector("#chart title")`)
	js[any](b, `document.querySelector('.strips path').dispatchEvent(new PointerEvent("pointermove", { bubbles: true })), null`)
	if got := js[string](b, `[...document.querySelectorAll("#told div")].map((d) => d.textContent).join("|")`); got != "step 7|training 0.5|validation 0.25|rate 0.125" {
		t.Errorf("the pointer shows %q", got)
	}
	js[any](b, `document.getElementById("chart").dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" })), null`)
	if got := js[string](b, `document.getElementById("told").textContent`); got != "step 9training 0.25" {
		t.Errorf("after an arrow %q", got)
	}
	js[any](b, `document.getElementById("chart").dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" })), null`)
	if !js[bool](b, `document.getElementById("told").hidden`) {
		t.Error("Escape does not hide the values")
	}
	if got := js[string](b, `document.getElementById("sample").innerText`); !strings.Contains(got, "le <i>chat → the cat") || js[int](b, `document.querySelectorAll("#heads svg").length`) != 1 {
		t.Errorf("the sample is %q", got)
	}
	// The recording: the last frame first, then others by slider, keys and playing.
	frame := func(name, number string) {
		b.Helper()
		b.wait(`document.getElementById("now").textContent === "` + name + `" && document.getElementById("frame").textContent === "` + number + `"`)
	}
	frame("step 1,225, loss 0.2500", "1225")
	if got := js[string](b, `document.getElementById("film").innerText`); !strings.Contains(got, "a → <i>b") || !strings.Contains(got, "largest weights <b>0.5</b>") {
		t.Errorf("the recording is %q", got)
	}
	js[any](b, `(() => { const e = document.getElementById("step"); e.value = 0; e.dispatchEvent(new Event("input")); })(), null`)
	frame("step 0", "0")
	b.do(chromedp.Focus(chromedp.CSS("#step")), chromedp.KeyEvent(kb.ArrowRight))
	frame("step 4, loss 2.5000", "4")
	if got := js[string](b, `document.getElementById("step").getAttribute("aria-valuetext")`); got != "step 4, loss 2.5000" {
		t.Errorf("the slider says %q", got)
	}
	b.click("#play")
	frame("step 1,225, loss 0.2500", "1225")
	b.wait(`document.getElementById("play").textContent === "Play"`)
	if n := frames.Load(); n != 3 {
		t.Errorf("%d frames were requested, want 3", n)
	}
	if got := js[string](b, `document.getElementById("note").textContent`); got != "Why it is lower." {
		t.Errorf("the note is %q", got)
	}
	if wide := js[bool](b, `document.documentElement.scrollWidth > innerWidth`); wide {
		t.Error("the page is wider than the window")
	}
}
