package browsertest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/attn-go/attn/safetensors"
	"github.com/attn-go/attn/train"
)

// command builds the program once and returns its path.
var command = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "attn")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "attn")
	cmd := exec.Command("go", "build", "-o", path, "./cmd/attn")
	cmd.Dir = "../../../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// trained returns the directory of a translator that all tests share.
func trained(t *testing.T) string {
	t.Helper()
	path, err := command()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(filepath.Dir(path), "model")
	theModel.Do(func() {
		var pairs strings.Builder
		for _, p := range train.Dates(60, 1) {
			fmt.Fprintf(&pairs, "%s\t%s\n", p.Source, p.Target)
		}
		data := filepath.Join(filepath.Dir(path), "pairs.tsv")
		if theModel.err = os.WriteFile(data, []byte(pairs.String()), 0o644); theModel.err != nil {
			return
		}
		cmd := exec.Command(path, "train", "--data", data, "--out", dir, "--width", "16", "--layers", "2", "--units", "char", "--epochs", "2", "--batch", "8")
		if out, err := cmd.CombinedOutput(); err != nil {
			theModel.err = fmt.Errorf("%w: %s", err, out)
		}
	})
	if theModel.err != nil {
		t.Fatal(theModel.err)
	}
	return dir
}

var theModel struct {
	sync.Once
	err error
}

func TestMain(m *testing.M) {
	// Tests mostly wait for the browser, so run more of them in parallel than there are
	// processors, unless the command line sets a number.
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
	}
	code := m.Run()
	if theBrowser.end != nil {
		theBrowser.end()
	}
	if path, err := command(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// attn returns a command that runs the program with the given arguments.
func attn(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	path, err := command()
	if err != nil {
		t.Fatal(err)
	}
	return exec.Command(path, args...)
}

// startView starts attn view and returns its address, and a function that ends it as
// Ctrl-C does.
func startView(t *testing.T, args ...string) (address string, end func()) {
	t.Helper()
	cmd := attn(t, append([]string{"view"}, args...)...)
	var messages bytes.Buffer
	cmd.Stderr = &messages
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		cmd.Wait()
		t.Fatalf("no address: %s", messages.String())
	}
	end = sync.OnceFunc(func() {
		cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil { // Ctrl-C is not an error
			t.Errorf("attn view ends with %v: %s", err, messages.String())
		}
	})
	t.Cleanup(end)
	return strings.TrimSpace(line), end
}

func TestModel(t *testing.T) {
	t.Parallel()
	findBrowser(t)
	address, end := startView(t, "--model", trained(t), "5 march 2019", "le 5 mars 2019")
	b := open(t, 1280, 900)
	b.visit(address + "#a=4.0") // the first cross-attention layer, after two encoder and two decoder layers
	if text := js[string](b, `document.querySelector("#text-s").value`); text != "5 march 2019" {
		t.Errorf("the field says %q", text)
	}

	// The other text of the command line.
	b.choose(".given select", "1")
	b.wait(`document.querySelector(".panel .sub").textContent.startsWith("le 5 mars 2019 → ")`)

	// Another text, and Enter.
	fill := func(id, text string) {
		b.do(chromedp.Click(chromedp.CSS("#"+id)), chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.querySelector("#%s").select()`, id)),
			chromedp.KeyEvent(kb.Backspace), chromedp.SendKeys(chromedp.CSS("#"+id), text))
	}
	fill("text-s", "lundi 6 avril 2020"+kb.Enter)
	b.wait(`document.querySelector(".panel .sub").textContent.startsWith("lundi 6 avril 2020 → ")`)
	if h := b.hash(); !strings.Contains(h, "s=lundi+6+avril+2020") {
		t.Errorf("the address ends in %q", h)
	}
	fill("text-t", "2020-04-06")
	b.click("button.main")
	b.wait(`document.querySelector(".panel .sub").textContent === "lundi 6 avril 2020 → 2020-04-06"`)
	b.wait(`document.querySelector(".field")?.ariaLabel.includes("11 queries attend to")`)

	// Two texts side by side.
	b.choose(`[data-state="cmp"]`, "text")
	b.wait(`document.querySelector("#text-s2")`)
	fill("text-s2", "</script><b>7 mai</b>"+kb.Enter)
	b.wait(`document.querySelectorAll(".panel .sub").length === 2 && document.querySelectorAll(".panel .sub")[1].textContent.startsWith("</script><b>7 mai</b> → ")`)
	b.wait(`document.querySelectorAll(".field").length === 2`)
	if titles := js[string](b, `[...document.querySelectorAll(".panel h3")].map((h) => h.textContent).join("|")`); titles != "cross-attention, layer 0, head 0|cross-attention, layer 0, head 0" {
		t.Errorf("two texts are seen through %s", titles)
	}
	b.unharmed()
	b.shoot("two-texts")

	// The link and the exported page restore both.
	link := b.hash()
	subs := `[...document.querySelectorAll(".panel .sub")].map((s) => s.textContent).join("|")`
	want := js[string](b, subs)
	c := open(t, 1280, 900)
	c.visit(address + link)
	c.wait(fmt.Sprintf("%s === %q", subs, want))
	c.visit(b.save(b.download(`[data-export="html"]`, "attention.html")))
	c.wait(fmt.Sprintf("%s === %q", subs, want))
	c.wait(`document.querySelectorAll(".field").length === 2`)
	c.unharmed()

	// A text that is too long is refused, and has no map.
	b.visit(address)
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("#text-s").value = "x".repeat(33000)`))
	b.click("button.main")
	b.wait(`document.querySelector(".note.bad")?.textContent === "the text has 33000 bytes, want at most 32768"`)
	if js[bool](b, `document.querySelector("main").getClientRects().length > 0`) {
		t.Errorf("below the error is a map of %q", b.text(".panel .sub"))
	}
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("#text-s").value = "x".repeat(5000)`))
	b.click("button.main")
	b.wait(`document.querySelector(".note.bad")?.textContent === "the text has 5001 tokens, want at most 4096"`)

	// The page says that the program has ended.
	end()
	fill("text-s", "8 juin"+kb.Enter)
	b.wait(`document.querySelector(".note.bad")?.textContent.includes("does not answer")`)
}

// The file that --open passes to a browser redirects to the page.
func TestOpenedPage(t *testing.T) {
	findBrowser(t)
	dir := t.TempDir()
	var f safetensors.File
	f.Tensors = append(f.Tensors, safetensors.FromFloat32s("decoder.0.cross", []int{1, 1, 2}, []float32{0.25, 0.75}))
	if err := f.WriteFile(filepath.Join(dir, "w.safetensors")); err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\necho \"$*\" > '%[1]s/args.part' && mv '%[1]s/args.part' '%[1]s/args'\n", dir)
	for _, name := range []string{"xdg-open", "open"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	address, _ := startView(t, "--weights", filepath.Join(dir, "w.safetensors"), "--open")
	var args []byte
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		var err error
		if args, err = os.ReadFile(filepath.Join(dir, "args")); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	b := open(t, 1280, 900)
	b.do(chromedp.Navigate("file://" + strings.TrimSpace(string(args))))
	b.wait(fmt.Sprintf("location.href === %q", withoutToken(t, address)))
	b.drawn()
	if name := b.text("#name"); name != "w.safetensors" {
		t.Errorf("the page has the name %q", name)
	}
}

// A pretrained encoder-decoder has groups for encoder, decoder and cross-attention. At first a
// head of cross-attention is open, and the panel shows the translation.
func TestEncoderDecoder(t *testing.T) {
	t.Parallel()
	findBrowser(t)
	dir := filepath.Join(t.TempDir(), "t5")
	if err := os.CopyFS(dir, os.DirFS("../../../../models/testdata/seq2seq/t5")); err != nil {
		t.Fatal(err)
	}
	vocabulary := map[string]int{}
	for i := range 31 {
		vocabulary[fmt.Sprint("w", i)] = i
	}
	tokenizer, err := json.Marshal(map[string]any{
		"version": "1.0", "pre_tokenizer": map[string]string{"type": "WhitespaceSplit"},
		"model": map[string]any{"type": "WordLevel", "vocab": vocabulary, "unk_token": "w0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "tokenizer.json"), tokenizer, 0o644); err != nil {
		t.Fatal(err)
	}
	written, err := attn(t, "translate", "--model", dir, "w5 w6 w7 w8").Output()
	if err != nil {
		t.Fatal(err)
	}
	address, end := startView(t, "--model", dir, "w5 w6 w7 w8")
	b := open(t, 1280, 900)
	b.visit(address)
	kinds := js[string](b, `[...document.querySelectorAll("h2")].map((e) => e.textContent.trim()).join("|")`)
	for _, kind := range []string{"Encoder", "Decoder", "Cross"} {
		if !strings.Contains(strings.ToLower(kinds), strings.ToLower(kind)) {
			t.Errorf("the overview has %q, want a group for %s", kinds, kind)
		}
	}
	if got, want := b.text(".panel .sub"), "w5 w6 w7 w8 → "+strings.TrimSpace(string(written)); got != want {
		t.Errorf("the panel is of %q, want %q", got, want)
	}
	if title := b.text(".panel h3"); !strings.Contains(strings.ToLower(title), "cross") {
		t.Errorf("the first head is %q, want one of cross-attention", title)
	}
	b.shoot("encoder-decoder")
	// A typed target replaces the translation.
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("#text-t").value = "w3 w4"`))
	b.click("button.main")
	b.wait(`document.querySelector(".panel .sub").textContent === "w5 w6 w7 w8 → w3 w4"`)
	b.shoot("encoder-decoder-target")
	end()
}

func TestModelWithoutText(t *testing.T) {
	t.Parallel()
	b := open(t, 1280, 900)
	address, _ := startView(t, "--model", trained(t))
	b.visit(address)
	b.wait(`document.querySelector(".hint")?.textContent.includes("Type a text")`)
	b.shoot("blank")
	b.do(chromedp.SendKeys(chromedp.CSS("#text-s"), "5/3/2019"+kb.Enter))
	b.wait(`document.querySelector(".field") && !document.querySelector(".hint")`)
}

func TestWeightsFile(t *testing.T) {
	t.Parallel()
	findBrowser(t)
	dir := t.TempDir()
	var f safetensors.File
	for i, name := range []string{"encoder.0.self", "decoder.0.cross"} {
		w := make([]float32, 2*3*5)
		for j := range w {
			w[j] = 1. / 5
		}
		if i == 1 {
			w[0], w[1] = 1, -0.6
		}
		f.Tensors = append(f.Tensors, safetensors.FromFloat32s(name, []int{2, 3, 5}, w))
	}
	path := filepath.Join(dir, "<b>.safetensors")
	if err := f.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	address, _ := startView(t, "--weights", path)
	b := open(t, 1280, 900)
	b.visit(address + "#a=1.0&c=own")
	b.wait(`document.querySelector(".legend")?.textContent.startsWith("−0.600")`)
	if name := b.text("#name"); name != "<b>.safetensors" {
		t.Errorf("the name is %q", name)
	}
	if js[bool](b, `!document.querySelector("#ask").hidden`) {
		t.Error("a text can be typed without a model")
	}
	if js[bool](b, `!document.querySelector('[data-state="cmp"] option[value="text"]').hidden`) {
		t.Error("two texts can be compared where there is one")
	}
	b.unharmed()
}
