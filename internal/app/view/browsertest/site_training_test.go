package browsertest

import (
	"fmt"
	"strings"
	"testing"
)

// Lesson 3 trains to the step of the address with the losses of a native program, pauses, resumes, and says what is
// wrong with a text.
func TestSiteReverse(t *testing.T) {
	w := watch(t, 1280, 900)
	w.lesson(site(t) + "reverse.html#step=20")
	step := func() string { return w.text("#train dd") }
	if got := step(); got != "20 of 1,250" {
		t.Errorf("step %s", got)
	}
	// The mean of the losses in site/lesson/training_test.go.
	if got := w.text("#train div:nth-child(2) > dd"); got != "3.576" {
		t.Errorf("loss %s, a native program has 3.576", got)
	}
	if n := js[int](w.tab, `document.querySelectorAll("#train .head").length`); n != 6 {
		t.Errorf("%d heads", n)
	}
	w.requests()
	button := func(text string) {
		w.Helper()
		find := fmt.Sprintf(`[...document.querySelectorAll("#train button")].find((b) => b.textContent === %q)`, text)
		w.wait("!!" + find)
		js[bool](w.tab, find+".click(), true")
	}
	button("One step")
	w.wait(`document.querySelector("#train dd").textContent.startsWith("21 ")`)
	w.wait(`location.hash === "#step=21"`)
	button("Continue")
	w.wait(`parseInt(document.querySelector("#train dd").textContent) > 30`)
	button("Pause")
	w.wait(`document.querySelector("#train button").textContent === "Continue"`)
	if got := w.hash(); got != "#step="+strings.ReplaceAll(strings.Fields(step())[0], ",", "") {
		t.Errorf("the address has %s at step %s", got, step())
	}
	for _, c := range [][2]string{
		{strings.Repeat("x", 10_000), "The text has 10,000 characters; the model reads at most 64."},
		{"", "The text is empty."}, {"abc🙂", "🙂"},
	} {
		w.set("reverse-text", c[0])
		w.wait(fmt.Sprintf(`document.querySelector("#train .problem").textContent.includes(%q)`, c[1]))
	}
	// A pause that comes before the worker has begun to train also counts: the test is still running.
	button("Test on 100 new texts")
	button("Continue")
	button("Pause")
	w.wait(`document.querySelector("#train button").textContent === "Continue"`)
	if n := js[int](w.tab, `Number(document.querySelector("#train dd").textContent.split(" ")[0].replace(",", ""))`); n > 500 {
		t.Errorf("the training went on to step %d", n)
	}
	// Boxes say which numbers they accept.
	w.set("reverse-seed", "0")
	w.wait(`document.querySelector("#train .problem").textContent === "The seed must be a whole number from 1 to 999,999."`)
	if step() == "0 of 1,250" {
		t.Error("a seed that is refused starts another training")
	}
	w.set("reverse-seed", "")
	button("Start again")
	w.wait(`document.getElementById("reverse-seed").getAttribute("aria-invalid") === "true"`)
	w.set("reverse-until", "3.5")
	w.wait(`document.querySelector("#train .problem").textContent === "The last step must be a whole number from 1 to 1,250."`)
	w.set("reverse-seed", "1")
	w.wait(`document.querySelector("#train dd").textContent === "0 of 1,250"`)
	// "Start again" during a step, a new text and a second press: nothing of the old training arrives later.
	w.set("reverse-until", "1250")
	button("Train")
	w.wait(`parseInt(document.querySelector("#train dd").textContent) > 3`)
	for range 3 {
		w.set("reverse-text", "abba")
		js[bool](w.tab, "new Promise((done) => setTimeout(() => done(true), 115))") // the page waits 120 ms for more text
		button("Start again")
		button("Start again")
		js[bool](w.tab, "new Promise((done) => setTimeout(() => done(true), 500))")
		w.wait(`document.querySelector("#train button").textContent === "Train"`)
		if got := step(); got != "0 of 1,250" || w.hash() != "#text=abba" {
			t.Errorf("started again: step %s, address %s", got, w.hash())
		}
		button("Train")
		w.wait(`parseInt(document.querySelector("#train dd").textContent) > 3`)
	}
	button("Pause")
	w.set("reverse-network", "gru")
	w.wait(`document.querySelectorAll("#train .head").length === 1`)
	w.wait(`document.querySelector("#train dd").textContent === "0 of 1,250"`)
	if asked := w.requests(); len(asked) > 0 {
		t.Errorf("requests after loading: %v", asked)
	}
}

// Lesson 5 translates what is typed, switches heads off, measures and removes them, and has its state in the address.
func TestSiteDates(t *testing.T) {
	w := watch(t, 1280, 900)
	url := site(t)
	w.lesson(url + "dates.html")
	w.requests()
	w.wait(`document.getElementById("exact").textContent === "198 (99.0%)"`) // see TestShipped
	w.set("text", "14 de septiembre de 2005")
	w.wait(`document.getElementById("output").textContent === "2005-09-14"`)
	for text, want := range map[string]string{
		"": "The text is empty.", "5 May 2011 🙂": "🙂",
		strings.Repeat("5", 10_000): "The text has 10,000 characters; the model reads at most 64.",
	} {
		w.set("text", text)
		w.wait(fmt.Sprintf(`document.getElementById("text-problem").textContent.includes(%q)`, want))
	}
	w.set("text", "Tuesday, 5 March 2019")
	w.wait(`document.getElementById("output").textContent === "2019-03-05" && document.getElementById("text-problem").hidden`)

	// Without the decoder's self-attention, nearly nothing is right.
	js[bool](w.tab, `document.querySelectorAll("#grid input").forEach((box, i) => i >= 4 && i < 8 && box.click()), true`)
	w.wait(`document.getElementById("on").textContent === "8 of 12"`)
	w.wait(`/^\d+ \(/.test(document.getElementById("exact").textContent)`)
	if got := w.text("#exact"); len(strings.Fields(got)[0]) > 2 {
		t.Errorf("without the decoder's self-attention %s dates are right", got)
	}
	if got := w.hash(); !strings.Contains(got, "off=decoder-0,decoder-1,decoder-2,decoder-3") {
		t.Errorf("the address is %s", got)
	}
	w.click("#all-on")
	w.wait(`document.getElementById("exact").textContent === "198 (99.0%)"`)

	w.click("#rank")
	w.wait(`document.getElementById("rank-progress").textContent.startsWith("Measured in")`)
	w.set("k", 4)
	w.wait(`document.getElementById("pruned-speed").textContent.includes("×")`)
	w.wait(`document.getElementById("parameters").textContent === "76,288 (−18%)"`)
	// Another method that is not measured yet does not name the order that was.
	js[bool](w.tab, `(document.getElementById("method").value = "random", document.getElementById("method").dispatchEvent(new Event("change")), true)`)
	w.set("k", 5)
	w.wait(`document.querySelector("#curve svg").getAttribute("aria-label").includes("5 removed")`)
	if got := w.text("#curve .names"); !strings.Contains(got, "by leave one out") {
		t.Errorf("the curve is named %q", got)
	}
	if asked := w.requests(); len(asked) > 0 {
		t.Errorf("requests after loading: %v", asked)
	}

	// Another tab with the same address has the same heads off; the new model trains there.
	w.lesson(url + "dates.html#off=cross-1,cross-1,nothing&t-step=3")
	w.wait(`document.getElementById("on").textContent === "11 of 12"`)
	w.wait(`document.querySelector("#train dd").textContent === "3 of 5,008"`)
}
