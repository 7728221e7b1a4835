package browsertest

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	lib "github.com/attn-go/attn"
	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/view"
	"github.com/attn-go/attn/mask"
	"github.com/attn-go/attn/tensor"
)

// inspected returns a record of two decoder layers with value norms, queries and keys.
func inspected(t *testing.T, tokens []string, n, size int) *heads.Record {
	t.Helper()
	rng := rand.New(rand.NewPCG(5, 8))
	x := tensor.Randn(rng, 1, len(tokens), n*size)
	r := heads.NewRecorder(heads.RecorderOptions{ValueNorms: true, Vectors: true})
	for i := range 2 {
		m, err := lib.NewMultiHead(lib.MultiHeadConfig{Width: n * size, Heads: n, Name: fmt.Sprintf("decoder.%d.self", i)}, rng)
		if err != nil {
			t.Fatal(err)
		}
		m.Forward(nil, x, x, x, lib.Options{Mask: mask.Causal(), Observers: []lib.Observer{r}, Inspect: r.Inspect})
	}
	record, err := r.Record(heads.Texts{Source: "a text", SourceTokens: tokens, Special: []string{"<s>"}})
	if err != nil {
		t.Fatal(err)
	}
	return record
}

// Value-weighted heads: the map, the mean, the measures and the exported file.
func TestValueWeighted(t *testing.T) {
	t.Parallel()
	r := inspected(t, []string{"<s>", "▁one", "▁t", "wo", "▁three"}, 3, 7)
	b := open(t, 1280, 800)
	address := serve(t, view.Options{Records: []*heads.Record{r, sample()}})
	b.visit(address + "#a=1.2&theme=light")
	b.click(`[data-state="vw"]`)
	b.wait(`location.hash.includes("vw=1")`)
	b.drawn()
	l := &r.Layers[1]
	want := heads.ValueWeighted(l.Head(2), l.Norms(2))
	first := func(want float32) {
		b.Helper()
		b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector(".field").focus()`), chromedp.KeyEvent(kb.ArrowLeft), chromedp.KeyEvent(kb.ArrowLeft))
		b.wait(fmt.Sprintf(`document.querySelector(".tip b").textContent === "%.4f"`, want))
		b.do(chromedp.KeyEvent(kb.Escape))
	}
	first(want[0])
	if text := b.text(".legend"); !strings.Contains(text, "weight × norm") || strings.HasPrefix(text, "01") {
		t.Errorf("the legend is %q", text)
	}
	// Measures use rows divided by their sums, so confidence is at most 1 for any norms.
	var confidence float64
	for i := range 5 {
		row := want[i*5 : (i+1)*5]
		var sum, most float32
		for _, w := range row {
			sum += w
			most = max(most, w)
		}
		confidence += float64(most/sum) / 5
	}
	b.wait(fmt.Sprintf(`[...document.querySelectorAll(".facts div")].some((d) => d.textContent === "confidence%.2f")`, confidence))
	b.click(`[data-name="decoder, layer 1, mean of its heads"]`)
	b.wait(`document.querySelector(".panel h3").textContent === "decoder, layer 1, mean of 3 heads"`)
	b.drawn()
	var mean float32
	for h := range 3 {
		mean += l.Head(h)[0] * l.Norms(h)[0] / 3
	}
	first(mean)
	b.shoot("value-weighted")
	page := b.save(b.download(`[data-export="html"]`, "attention.html"))
	b.visit(page)
	b.wait(`document.querySelector(".legend").textContent.includes("weight × norm")`)
	// A record without norms has no such control and ignores the address.
	b.visit(address + "#r=1&vw=1")
	if !js[bool](b, `document.querySelector("#valued").hidden && document.querySelector('[data-view="neurons"]').ariaDisabled === "true" && !document.querySelector(".legend").textContent.includes("norm")`) {
		t.Error("a record without norms can be value-weighted")
	}
}

// The neuron view shows the products of a query and each key, the score and the weight.
func TestNeurons(t *testing.T) {
	t.Parallel()
	r := inspected(t, []string{"<s>", "▁one", "▁t", "wo", "▁three"}, 3, 7)
	b := open(t, 1280, 800)
	address := serve(t, view.Options{Records: []*heads.Record{r}})
	b.visit(address + "#a=1.2&theme=light&tok=q3")
	b.click(`[data-view="neurons"]`)
	b.wait(`document.querySelectorAll(".neurons tbody tr").length === 5`)
	l := &r.Layers[1]
	q, k := l.Vectors(2)
	cells := func(i int) []string {
		return js[[]string](b, fmt.Sprintf(`[...document.querySelectorAll(".neurons tbody tr")[%d].children].map((c) => c.textContent)`, i))
	}
	check := func(query int) {
		b.Helper()
		for j := range 5 {
			var score float64
			for d := range 7 {
				score += float64(q[query*7+d]) * float64(k[j*7+d]) * float64(l.ScoreScale)
			}
			weight := fmt.Sprintf("%.3f", l.Head(2)[query*5+j])
			if j > query {
				weight = "masked"
			}
			number := strings.Replace(fmt.Sprintf("%.2f", score), "-", "−", 1)
			if got := cells(j); got[3] != number || got[4] != weight {
				t.Errorf("query %d, key %d: score and weight are %v, want %s and %s", query, j, got[3:], number, weight)
			}
		}
	}
	check(3)
	b.shoot("neurons")
	// The tooltip shows the values of a dimension.
	box := js[[]float64](b, `(() => { const r = document.querySelectorAll(".neurons tbody .strip")[3].getBoundingClientRect(); return [r.left + r.width * 2.5 / 7, r.top + 5]; })()`)
	b.do(chromedp.MouseEvent("mouseMoved", box[0], box[1]))
	sign := func(x float32) string { return strings.Replace(fmt.Sprintf("%.3f", x), "-", "−", 1) }
	b.wait(fmt.Sprintf(`document.querySelectorAll(".neurons tbody .strip")[3].title === "dimension 2: q %s · k %s = %s"`, sign(q[3*7+2]), sign(k[7+2]), sign(q[3*7+2]*k[7+2])))
	// Another query, an exported page, and a mean.
	b.choose(".ofquery select", "1")
	b.wait(`location.hash.includes("tok=q1") && document.querySelectorAll(".neurons tbody tr")[2].lastChild.textContent === "masked"`)
	check(1)
	picture := b.download(`[data-export="svg"]`, "attention.svg")
	if strings.Count(picture, "<image") != 11 || !strings.Contains(picture, ">masked<") {
		t.Errorf("the picture has %d strips, want 11", strings.Count(picture, "<image"))
	}
	page := b.save(b.download(`[data-export="html"]`, "attention.html"))
	b.click(`[data-name="decoder, layer 0, mean of its heads"]`)
	b.wait(`document.querySelector(".stage").textContent.includes("choose a head")`)
	b.visit(page)
	b.wait(`document.querySelectorAll(".neurons tbody tr").length === 5`)
	check(1)

	// From a file.
	path := filepath.Join(t.TempDir(), "r.safetensors")
	if err := r.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	f, err := heads.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b.visit(serve(t, view.Options{Files: []*heads.File{f}}) + "#a=1.2&v=neurons&tok=q1")
	b.wait(`document.querySelectorAll(".neurons tbody tr").length === 5`)
	check(1)
}
