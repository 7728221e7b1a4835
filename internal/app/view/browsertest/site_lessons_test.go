package browsertest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Lesson 1 shows the numbers of the formula, learns, and has its state in the address.
func TestSiteRegression(t *testing.T) {
	w := watch(t, 1280, 900)
	url := site(t)
	w.lesson(url + "regression.html#points=1,2,3,4&w=2&x=1.5")
	w.requests()
	near, far := math.Exp(-0.5), math.Exp(-4.5) // distances 0.5 and 1.5, times 2, squared, halved
	if want := fmt.Sprintf("%.2f", (near*2+far*4)/(near+far)); w.text("#curve-read dd") != want {
		t.Errorf("the estimate is %s, want %s", w.text("#curve-read dd"), want)
	}
	label := js[string](w.tab, `document.querySelector("#curve .grip").getAttribute("aria-label")`)
	if label != "observation 1 of 2: x 1.00, y 2.00, weight 0.982" {
		t.Errorf("the first observation is spoken as %q", label)
	}
	w.set("x", 3.0)
	w.wait(`location.hash.includes("x=3")`)
	js[bool](w.tab, `document.querySelector("#curve .grip").focus(), true`)
	w.do(chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowUp))
	w.wait(`location.hash.includes("points=1.05,2.05,")`)
	w.do(chromedp.KeyEvent(kb.Delete))
	w.wait(`document.querySelectorAll("#curve .grip").length === 1`)
	w.click("#learn") // a single observation has no others
	w.wait(`document.querySelector("#notes .bad")?.textContent.includes("add a second one")`)
	if !js[bool](w.tab, `(() => { const r = document.querySelector("#notes .bad").getBoundingClientRect(); return r.top >= 0 && r.bottom <= innerHeight; })()`) {
		t.Error("the message is not on the screen")
	}
	w.wait(`[...document.querySelectorAll("#learn-read dd")][2].textContent === "–"`)
	w.do(chromedp.KeyEvent("\t"))
	w.click("#clear")
	w.wait(`document.querySelector("#curve-read dd").textContent === "none" && document.getElementById("curve-read").textContent.includes("New observations")`)
	if !js[bool](w.tab, `document.querySelector("#weights .field").hidden`) {
		t.Error("without observations there is a map of weights")
	}
	w.click("#fresh")
	w.wait(`document.querySelectorAll("#curve .grip").length === 50`)
	w.click("#learn")
	w.wait(`document.querySelector("#learn").textContent === "Learn" && location.hash.includes("w=")`)
	if got := w.text("#learn-read dd"); got != "300" {
		t.Errorf("learning ended after step %s", got)
	}
	if asked := w.requests(); len(asked) > 0 {
		t.Errorf("requests after loading: %v", asked)
	}
	for _, bad := range []string{"points=none", "points=x,y&w=NaN&x=1e9", "w=-5&seed=1e99", "%%%"} {
		w.lesson(url + "regression.html#" + bad)
		if problem := w.text("#notes .bad"); problem != "" {
			t.Errorf("%s: %s", bad, problem)
		}
	}
}

// Lesson 2 shows weights that sum to 1, and padding has none.
func TestSiteScores(t *testing.T) {
	w := watch(t, 1280, 900)
	w.lesson(site(t) + "scores.html#at=1,1,1,0,0,1,-1,0,0,-1,2,2,1,1&valid=5")
	cells := js[[]string](w.tab,
		`[...document.querySelectorAll("#compare tbody tr:first-child td")].map((c) => c.textContent)`)
	sum := 2*math.E + 2/math.E + math.Exp(4) // dot products 1, 1, −1, −1, 4
	for i, score := range []float64{1, 1, -1, -1, 4} {
		if want := fmt.Sprintf("%.2f", math.Exp(score)/sum); cells[i] != want {
			t.Errorf("key %d has the weight %s, want %s", i, cells[i], want)
		}
	}
	if cells[5] != "–" {
		t.Errorf("padding has the weight %s", cells[5])
	}
	before := w.text("#lengths-read")
	w.set("nan", true)
	w.wait(`document.querySelector("#lengths-read").textContent.includes("NaN")`)
	if after := w.text("#lengths-read"); !strings.HasPrefix(after, strings.TrimSuffix(before, ".")) {
		t.Errorf("NaN in padding changes the output: %q, then %q", before, after)
	}
	w.set("keys-only", true)
	w.wait(`document.querySelector("#lengths-read").textContent.includes("3 of 3 output vectors of padding contain NaN")`)
	w.set("size", 10)
	w.wait(`location.hash.includes("e=1024")`)
	if len(w.requests()) == 0 {
		t.Error("no request is recorded")
	}
}

// Lesson 4 shows the numbers of the tutorials, an axis in every array that has it, and the library's error.
func TestSiteShapes(t *testing.T) {
	url := site(t)
	w := watch(t, 1280, 900)
	w.lesson(url + "shapes.html")
	numbers := func() string {
		return js[string](w.tab, `[...document.querySelectorAll("#strip .numbers")].map((e) => e.textContent).join("\n")`)
	}
	for _, want := range []string{"scores[0, 0, 0, :] = 0.290 0.290 0.290 −∞ −∞ −∞", "weights[0, 0, 0, :] = 0.333 0.333 0.333 0.000 0.000 0.000"} {
		if got := numbers(); !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	w.set("at-B", 1)
	if got := numbers(); !strings.Contains(got, "weights[1, 0, 0, :] = 0.500 0.500 0.000 0.000 0.000 0.000") {
		t.Errorf("the second sequence has\n%s", got)
	}
	shapes := js[[]string](w.tab, `[...document.querySelectorAll(".strip h4")].map((e) => e.querySelector("code").textContent + " " + [...e.querySelectorAll(".axis span")].map((s) => s.textContent).join(" "))`)
	want := []string{"x 2 4 100", "y 2 6 100", "q 2 4 100", "k 2 6 100", "v 2 6 100", "q 2 4 5 20", "k 2 6 5 20", "v 2 6 5 20",
		"q 2 5 4 20", "k 2 5 6 20", "v 2 5 6 20", "scores 2 5 4 6", "scores 2 5 4 6", "weights 2 5 4 6", "heads 2 5 4 20",
		"joined 2 4 100", "out 2 4 100", "weights 2 5 4 6", "weights 10 4 6", "weights 4 6 2 5"}
	if !slices.Equal(shapes, want) {
		t.Errorf("the shapes are %q", shapes)
	}
	// The head size is a part of the width, so it is coloured there too.
	w.click(`#strip [data-axis="E"]`)
	w.set("at-H", 2)
	if got := numbers(); !strings.Contains(got, "q[1, 0, 40:60] = ") || !strings.Contains(got, "q[1, 2, 0, :] = ") {
		t.Errorf("the numbers of a head are\n%s", got)
	}
	// A tap on a cell of the first picture chooses its number.
	js[bool](w.tab, `(() => { const c = document.querySelector("#strip canvas"), r = c.getBoundingClientRect();
		c.dispatchEvent(new MouseEvent("click", { clientX: r.left + 16 + 0.995 * (r.width - 18), clientY: r.top + 17 })); return true; })()`)
	w.wait(`document.getElementById("at-H").value === "4" && document.getElementById("at-E").value === "19" && document.getElementById("at-B").value === "0"`)
	w.set("preset", "1")
	w.wait(`document.getElementById("strip").textContent.includes("first 2 sequences") && document.getElementById("table").textContent.includes("[384 12 10]")`)
	for _, bad := range []string{"b=99&h=-1&q=x&k=1e9&d=0&v0=7", "at=9,9,9,9,9&axis=Z", "at=1,2"} {
		w.lesson(url + "shapes.html#" + bad)
		if problem := w.text("#notes .bad"); problem != "" {
			t.Errorf("%s: %s", bad, problem)
		}
	}
}

// Lesson 6 shows the expression of a mask, and a cache that gives the same bits.
func TestSiteMasks(t *testing.T) {
	w := watch(t, 380, 800)
	w.lesson(site(t) + "masks.html#window=1&documents=1&position=alibi")
	for id, want := range map[string]string{
		"expression": "attn.And(mask.Causal(), mask.Window(3, 0), mask.Documents([]int{5, 12}))",
		"visible":    "36 of 144 pairs are visible.", "cache-read": "the same bits", "layouts-read": "the bits are the same",
	} {
		if got := w.text("#" + id); !strings.Contains(got, want) {
			t.Errorf("%s is %q, want %q", id, got, want)
		}
	}
	js[bool](w.tab, `document.querySelector("#map .field").focus(), true`)
	w.do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowRight))
	w.wait(`document.getElementById("spoken")?.textContent === "query 0, key 1: masked"`)
	w.click("#step")
	w.wait(`location.hash.includes("steps=7")`)
	// The prefix mask contains the causal one: the page says so, and its expression has one of them.
	w.set("tokens", 2)
	w.wait(`document.getElementById("expression").textContent.includes("attn.And(mask.Prefix(2), mask.Window(3, 0)")`)
	if !js[bool](w.tab, `document.getElementById("causal").disabled && document.getElementById("causal-note").checkVisibility()`) {
		t.Error("with the prefix mask the causal one can still be chosen")
	}
	// A map without a visible cell has a scale, too.
	w.lesson(site(t) + "masks.html#valid=1&length=0")
	if got := w.text("#map .legend"); got != "0.001.00masked" {
		t.Errorf("the scale of a map without visible cells is %q", got)
	}
}

// Lesson 7 opens the heads that its text names, and the exported page shows the same numbers.
func TestSiteModel(t *testing.T) {
	w := watch(t, 1280, 900)
	url := site(t)
	for hash, want := range map[string]string{"a=0.2": "previous1.00", "a=4.5": "first0.90", "a=3.11": "last0.12"} {
		w.do(chromedp.Navigate("about:blank"), chromedp.Navigate(url+"assets/minilm-heads.html#"+hash))
		w.drawn()
		w.wait(`document.querySelector(".facts") !== null`)
		if got := w.text(".facts"); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", hash, got, want)
		}
	}
	w.lesson(url + "minilm.html")
	w.click(`[data-find="sink"]`)
	w.wait(`location.hash === "#find=sink" && document.getElementById("heads").src.includes("a=4.5")`)
	if got := w.text("#answer"); !strings.Contains(got, "0.90") {
		t.Errorf("the answer is %q", got)
	}
	// Another sentence has its own record; a pattern leads back to the first.
	w.set("sentence", "3")
	w.wait(`location.hash === "#sentence=3" && document.getElementById("heads").src.includes("minilm-more.html#theme=light&r=2")`)
	w.lesson(url + "minilm.html#sentence=3&a=1.2")
	w.wait(`document.getElementById("sentence").value === "3" && location.hash.includes("a=1.2") && !location.hash.includes("r=")`)
	w.click(`[data-find="sink"]`)
	w.wait(`location.hash === "#find=sink" && document.getElementById("heads").src.includes("minilm-heads.html") && document.getElementById("sentence").value === "0"`)
	options := js[[]string](w.tab, `[...document.getElementById("sentence").options].map((o) => o.textContent)`)
	for n, text := range options[1:] {
		page := "minilm-more"
		if n >= 4 { // those of the model that reads Chinese
			page, n = "chinese", n-4
		}
		w.do(chromedp.Navigate("about:blank"), chromedp.Navigate(fmt.Sprintf("%sassets/%s.html#r=%d", url, page, n)))
		w.drawn()
		w.wait(fmt.Sprintf(`document.body.textContent.includes(%q)`, text))
	}
}

// What is chosen in the frame of lesson 7 is in the address of the page, and a link opens it.
func TestSiteFrameState(t *testing.T) {
	url := site(t) + "minilm.html"
	w := watch(t, 1280, 900)
	// Without its sandbox, the test can look into the frame.
	const inside = `document.getElementById("heads").contentDocument`
	unlock := func() {
		t.Helper()
		js[bool](w.tab, `(() => {
			const frame = document.getElementById("heads"), open = frame.cloneNode();
			open.removeAttribute("sandbox");
			frame.replaceWith(open);
			return true;
		})()`)
		w.wait(inside + `?.body?.dataset.drawn !== undefined`)
	}
	shows := func(hash, title, view, token string) {
		t.Helper()
		w.wait(fmt.Sprintf(`location.hash === %q`, hash))
		w.wait(fmt.Sprintf(`%[1]s.querySelector(".panel h3").textContent.toLowerCase() === %[2]q && %[1]s.querySelector('[data-view="%[3]s"]').ariaChecked === "true"`, inside, title, view))
		if token != "" {
			w.wait(fmt.Sprintf(`new URLSearchParams(%s.location.hash.slice(1)).get("tok") === %q`, inside, token))
		}
	}
	press := func(selector string) {
		t.Helper()
		js[bool](w.tab, fmt.Sprintf(`(%s.querySelector(%q).click(), true)`, inside, selector))
	}
	w.lesson(url + "#find=it&a=2.3&v=lines&tok=q4")
	unlock()
	shows("#find=it&a=2.3&v=lines&tok=q4", "encoder, layer 2, head 3", "lines", "q4")
	rect := js[[]float64](w.tab, `(() => {
		const r = `+inside+`.querySelector('[data-view="text"]').getBoundingClientRect();
		return [r.x + r.width / 2, r.y + r.height / 2];
	})()`)
	press(`.thumb[aria-label="encoder, layer 5, head 7"]`)
	shows("#find=it&a=5.7&v=lines&tok=q4", "encoder, layer 5, head 7", "lines", "")
	w.click("#theme") // keeps what is chosen
	w.wait(inside + `.documentElement.dataset.theme === "light"`)
	shows("#find=it&a=5.7&v=lines&tok=q4", "encoder, layer 5, head 7", "lines", "")
	w.click(`[data-find="sink"]`)
	shows("#find=sink", "encoder, layer 4, head 5", "map", "")
	press(`[data-view="text"]`)
	shows("#find=sink&a=4.5&v=text&c=one", "encoder, layer 4, head 5", "text", "")
	press(`[data-view="map"]`) // what the pattern begins with is its name
	shows("#find=sink", "encoder, layer 4, head 5", "map", "")

	// In its sandbox the frame reports the same, and messages of other windows are ignored.
	w.lesson(url + "#a=2.3")
	w.do(chromedp.ScrollIntoView(chromedp.CSS("#heads")))
	js[bool](w.tab, `(window.postMessage({ attn: "a=1.1" }, "*"), true)`)
	at := js[[]float64](w.tab, `(() => {
		const r = document.getElementById("heads").getBoundingClientRect();
		return [r.x + 1, r.y + 1];
	})()`)
	for end := time.Now().Add(patience); js[string](w.tab, "location.hash") == "#a=2.3" && time.Now().Before(end); {
		w.do(chromedp.MouseClickXY(at[0]+rect[0], at[1]+rect[1])) // again until the page in the frame is ready
		js[bool](w.tab, "new Promise((done) => setTimeout(() => done(true), 200))")
	}
	if hash := w.hash(); hash != "#a=2.3&v=text" {
		t.Errorf("after a click in the sandbox the address ends in %q", hash)
	}
}

// The frame of lesson 7 draws all heads before anybody scrolls to it: a page may be printed unread. Without its
// sandbox, the test can look into the frame.
func TestSiteFrame(t *testing.T) {
	url := site(t)
	for _, width := range []int{380, 640, 800, 1440} {
		w := watch(t, width, 500)
		w.lesson(url + "minilm.html")
		js[bool](w.tab, `(() => {
			const frame = document.getElementById("heads"), open = frame.cloneNode();
			open.removeAttribute("sandbox");
			frame.replaceWith(open);
			return true;
		})()`)
		w.wait(`document.getElementById("heads").contentDocument?.body?.dataset.drawn !== undefined`)
		w.wait(`document.getElementById("heads").contentDocument.querySelectorAll(".thumb canvas").length === 6 * 14 + 1`)
		w.wait(`[...document.getElementById("heads").contentDocument.querySelectorAll(".thumb canvas")].every((c) => c.width > 4)`)
		if below := js[bool](w.tab, `document.getElementById("heads").getBoundingClientRect().top > innerHeight + 200`); !below {
			t.Errorf("at %d pixels the frame is in view: the test shows nothing", width)
		}
		if wide := js[int](w.tab, `document.getElementById("heads").contentDocument.documentElement.scrollWidth`); wide > width {
			t.Errorf("at %d pixels the page in the frame is %d wide", width, wide)
		}
		if hidden := js[int](w.tab, `(() => {
			const list = document.getElementById("heads").contentDocument.getElementById("overview");
			return list.scrollWidth - list.clientWidth;
		})()`); hidden > 0 {
			t.Errorf("at %d pixels the list of heads hides %d pixels of its columns", width, hidden)
		}
	}
}

// The exercise of a lesson names what is wrong. Numbers of answers are computed by hand from the formulas: a softmax of
// two scores is 1/(1+exp(−their difference)).
func TestSiteExercises(t *testing.T) {
	url := site(t)
	for page, answers := range map[string][][2]string{
		"regression": {
			{"3.77", "Right"}, {"3.55", "½"}, {"0.02", "exchanged"}, {"6.57", "divided by their sum"}, {"4.50", "squared"},
			{"8.09", "sign"}, {"5.33", "same weight"}, {"16/3", "same weight"}, {"4", "nearest observation alone"}, {"7", "none of the usual"},
		},
		"scores": {
			{"0.33 0.67 0", "Right"}, {"0,27 0,73 0", "scale is forgotten"}, {"0.14 0.28 0", "after the softmax"}, {"0.14 0.28 0.58", "Nothing is masked"},
			{"0.28 0.58 0.14", "instead of −∞"}, {"0.38 0.62 0", "not by √E"}, {"0.20 0.80 0", "multiplied"}, {"1 1 0", "Queries and keys"},
			{"0 0.33 0.67", "wrong key"}, {"0.33 0.5 0", "2 of 3"}, {"0.33 x 0", "number in each field"},
		},
		"reverse": {
			{"4 2 6 9", "Right"}, {"4 2 9 6", "exchanged"}, {"4 2 6 6", "decoder"}, {"4 2 9 9", "encoder"}, {"2 4 6 9", "Sequences and heads"},
			{"4 6 2 9", "not moved"}, {"4 2 6 16", "output"}, {"4 2 6 1", "3 of 4"},
		},
		"shapes": {
			{"12 13 14 15", "Right"}, {"16 17 18 19", "without a transpose"}, {"9 11 13 15", "wrong axis"}, {"13 16 19 22", "[D L]"}, {"8 9 10 11", "head 0"},
			{"4 5 6 7", "position 0"}, {"0 1 2 3", "counted from 0"}, {"20 21 22 23", "position 2"},
		},
		"dates": {
			{"1 2", "Right"}, {"3 0", "sign"}, {"2 1", "absolute"}, {"0 3", "keep"}, {"2 3", "counted from 0"}, {"0 1", "none of the usual"},
		},
		"masks": {
			{"1 2 1 2 3 3", "Right"}, {"1 2 3 3 3 3", "documents"}, {"1 2 1 2 3 4", "window is forgotten"}, {"2 2 3 4 4 3", "not causal"},
			{"0 1 0 1 2 2", "own key"}, {"1 2 1 2 2 2", "too small"}, {"2 1 3 3 2 1", "wrong way"},
		},
		"minilm": {
			{"1 8", "Right"}, {"0 2", "previous"}, {"2 8", "Close"}, {"4 5", "sink"}, {"3 11", "separators"}, {"8 1", "exchanged"}, {"2 9", "counted from 0"},
		},
		"linear": {
			{"2.24 0.32 1.6", "Right"}, {"2.6 0.8 2.2", "not subtracted"}, {"1.94 -0.08 1.1", "shrinks after"}, {"3.88 -0.16 2.2", "decay is forgotten"},
			{"1.88 −0.16 1", "before it has shrunk"}, {"2.42 0.56 1.9", "multiplies the key"}, {"2.48 0.64 2", "β is forgotten"},
			{"2.24 0.32 1.2", "reads before"}, {"2.24 0.32 1.13", "divided by √E"}, {"4 0 2.4", "first token"}, {"2.24 0.32 9", "2 of 3"},
		},
		"induction": {
			{"3 8", "Right"}, {"2 8", "two places"}, {"3 3", "attends to"}, {"8 3", "exchanged"}, {"7 8", "same tokens"}, {"9 8", "same tokens"},
			{"3 9", "predicted at"}, {"4 9", "counted from 0"},
		},
	} {
		w := watch(t, 390, 844)
		w.lesson(url + page + ".html")
		for _, a := range answers {
			js[bool](w.tab, fmt.Sprintf(`(%q.split(" ").forEach((x, i) => { document.querySelectorAll("#exercise input")[i].value = x; }),
				document.getElementById("verdict").textContent = "", document.getElementById("exercise").requestSubmit(), true)`, a[0]))
			w.wait(`document.getElementById("verdict").textContent !== ""`)
			if got := w.text("#verdict"); !strings.Contains(got, a[1]) {
				t.Errorf("%s: %s is called %q, want %q", page, a[0], got, a[1])
			}
		}
	}
}
