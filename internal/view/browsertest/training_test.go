package browsertest

import (
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/attn-go/attn/internal/view"
)

// The page of a training shows what it is told, again and again, without a fault.
func TestTraining(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	svg := `<svg xmlns="http://www.w3.org/2000/svg" class="chart" width="300" height="20" viewBox="0 0 300 20"><script>alert(1)</script><path class="c1" color="#000" d="M0 0h9"/></svg>`
	s := view.NewTraining("runs/<dates>", "", func(width float64) (any, error) {
		n := asked.Add(1)
		run := map[string]any{"status": "training", "over": false, "chart": "", "facts": []map[string]string{}}
		if n > 1 {
			run["chart"], run["facts"] = svg, []map[string]string{{"name": "training loss", "value": "<b>0.25</b>"}}
		}
		if n > 2 {
			run["status"], run["over"] = "done", true
		}
		return run, nil
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
	if n := js[int](b, `document.querySelectorAll("#chart svg path").length`); n != 1 {
		t.Errorf("%d paths in the chart, want 1", n)
	}
	if wide := js[bool](b, `document.documentElement.scrollWidth > innerWidth`); wide {
		t.Error("the page is wider than the window")
	}
}
