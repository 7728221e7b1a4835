package browsertest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// A model of the reader opens in the tab, without a request that contains it; what cannot be opened is refused in a line.
func TestSiteOwnModel(t *testing.T) {
	models := filepath.Join("..", "..", "..", "..", "models", "testdata")
	files := func(dir string) (list []string) {
		t.Helper()
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			path, err := filepath.Abs(filepath.Join(dir, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			if e.Type().IsRegular() {
				list = append(list, path)
			}
		}
		return list
	}
	url := site(t)
	w := watch(t, 1280, 900)
	w.lesson(url + "minilm.html")
	w.set("own-text", "a bird")
	if js[bool](w.tab, `!document.getElementById("own-draw").disabled`) {
		t.Error("without a model, heads can be drawn")
	}
	w.requests()
	choose := func(dir string) {
		t.Helper()
		w.do(chromedp.SetUploadFiles("#own-files", files(dir)))
	}
	choose(filepath.Join(models, "sentence_mean"))
	w.wait(`!document.getElementById("own-heads").hidden && document.getElementById("own-told").textContent.startsWith("2 layers, 6 heads, opened in")`)
	for _, asked := range w.requests() {
		if !strings.HasPrefix(asked, url+"assets/") && !strings.HasPrefix(asked, "blob:") && asked != "about:srcdoc" {
			t.Errorf("the page requests %s", asked)
		}
	}
	if got := js[string](w.tab, `(() => {
		const page = new DOMParser().parseFromString(document.getElementById("own-heads").srcdoc, "text/html");
		return atob(JSON.parse(page.getElementById("frozen").textContent).answers["api/start"]);
	})()`); !strings.Contains(got, "bird") {
		t.Errorf("the page in the frame does not have the text: %.300s", got)
	}

	w.click("#own-chinese")
	w.wait(`document.getElementById("own-told").textContent.startsWith("3 layers, 12 heads, opened in")`)
	w.wait(`document.getElementById("own-heads").srcdoc.includes("frozen") && document.getElementById("own").getAttribute("aria-busy") === "false"`)
	if got := js[string](w.tab, `(() => {
		const page = new DOMParser().parseFromString(document.getElementById("own-heads").srcdoc, "text/html"), bytes = atob(JSON.parse(page.getElementById("frozen").textContent).answers["api/start"]);
		return new TextDecoder().decode(Uint8Array.from(bytes, (c) => c.charCodeAt(0)));
	})()`); !strings.Contains(got, "注") || !strings.Contains(got, "[CLS]") {
		t.Errorf("the page in the frame does not have the Chinese text: %.300s", got)
	}

	damaged := t.TempDir()
	for _, path := range files(filepath.Join(models, "sentence_mean")) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(path) == "model.safetensors" {
			data = data[:len(data)-100]
		}
		if err := os.WriteFile(filepath.Join(damaged, filepath.Base(path)), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	huge := t.TempDir()
	if err := os.WriteFile(filepath.Join(huge, "config.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(huge, "model.safetensors"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(huge, "model.safetensors"), 2e9); err != nil {
		t.Fatal(err)
	}
	none := t.TempDir()
	if err := os.WriteFile(filepath.Join(none, "notes.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{
		damaged: "model.safetensors", huge: "2,000 MB of weights; this tab can open at most 1,000", none: "it has no config.json",
		filepath.Join(models, "bert_text"): "has no tokenizer.json",
	} {
		choose(dir)
		w.wait(`!document.getElementById("own-problem").hidden`)
		if got := w.text("#own-problem"); !strings.Contains(got, want) || strings.Contains(got, "\n") {
			t.Errorf("%s: the page says %q, want %q", filepath.Base(dir), got, want)
		}
		if js[bool](w.tab, `!document.getElementById("own-draw").disabled`) {
			t.Error("after a refusal, heads can be drawn")
		}
	}
	w.set("own-text", "a bird")                    // the Chinese text has more tokens than this model reads
	choose(filepath.Join(models, "sentence_mean")) // the program still runs
	w.wait(`document.getElementById("own-told").textContent.startsWith("2 layers") && document.getElementById("own-problem").hidden`)
}
