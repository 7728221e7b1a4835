package browsertest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/view"
)

// withoutToken returns an address without its token, which anyone can guess.
func withoutToken(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil || u.Query().Get("token") == "" {
		t.Fatalf("%s has no token, %v", address, err)
	}
	return "http://" + u.Host + "/"
}

func TestToken(t *testing.T) {
	t.Parallel()
	b := open(t, 1280, 900)
	one := serve(t, view.Options{Name: "one", Records: []*heads.Record{sample()}})
	two := serve(t, view.Options{Name: "two", Records: []*heads.Record{sample()}})

	b.do(chromedp.Navigate(withoutToken(t, one)))
	if text := b.text("body"); !strings.Contains(text, "this page needs a token: open the address") {
		t.Errorf("a visitor without the token gets %q", text)
	}
	b.do(chromedp.Navigate(withoutToken(t, one) + "?token=WRONG"))
	if text := b.text("body"); !strings.Contains(text, "this page needs a token: open the address") {
		t.Errorf("with a wrong token: %q", text)
	}

	// The redirect removes the token from the address but keeps the part after #, and scripts cannot read the cookie.
	b.visit(one + "#a=2.1")
	if at := js[string](b, "location.href"); at != withoutToken(t, one)+"#a=2.1" {
		t.Errorf("the address has become %s", at)
	}
	if cookie := js[string](b, "document.cookie"); cookie != "" {
		t.Errorf("scripts read %q", cookie)
	}
	// The browser no longer needs the token, even after a visit to another server on the same host.
	b.visit(two)
	for address, name := range map[string]string{one: "one", two: "two"} {
		b.visit(withoutToken(t, address))
		if got := b.text("#name"); got != name {
			t.Errorf("the page of %s has the name %q", name, got)
		}
	}
	// Another browser needs the token.
	other := open(t, 1280, 900)
	other.do(chromedp.Navigate(withoutToken(t, one)))
	if js[bool](other, `document.querySelector("#grid") !== null`) {
		t.Error("another browser gets in")
	}
}

// A link with the token works from other sites too, although the browser does not
// send the cookie with requests that they start.
func TestTokenFromElsewhere(t *testing.T) {
	t.Parallel()
	b := open(t, 1280, 900)
	address := serve(t, view.Options{Name: "one", Records: []*heads.Record{sample()}})
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, fmt.Appendf(nil, `<!DOCTYPE html><a href="%s">here</a>`, address), 0o600); err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.Navigate("file://"+path), chromedp.Click(chromedp.CSS("a")))
	b.wait(`location.href === "` + withoutToken(t, address) + `"`)
	b.drawn()
	if name := b.text("#name"); name != "one" {
		t.Errorf("the page has the name %q", name)
	}
}

// For the browser, a page on another port of the machine belongs to the same site,
// so it sends the cookie with the requests of that page. They are refused all the same.
func TestOtherPort(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	asked := 0
	address := serve(t, view.Options{Name: "one", Records: []*heads.Record{sample()}, Recorder: recordFunc(func(string) *heads.Record {
		mu.Lock()
		defer mu.Unlock()
		asked++
		return sample()
	})})
	target := withoutToken(t, address)
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `<!DOCTYPE html><title>waiting</title><body><script>
const got = [];
const tries = ["GET", "POST"].flatMap((method) => ["cors", "no-cors"].map((mode) =>
  fetch(%[1]q + "api/" + (method === "GET" ? "start" : "record"), { method, mode, credentials: "include", ...(method === "POST" ? { body: '{"source":"x"}' } : {}) })
    .then((r) => r.text()).then((text) => { if (text) got.push(text); }, () => {})));
const load = (tag, attribute, path) => new Promise((done) => {
  const e = document.createElement(tag);
  e.onload = () => { if (tag !== "iframe" || e.contentDocument?.body) got.push(tag); done(); };
  e.onerror = done;
  e[attribute] = %[1]q + path;
  document.body.append(e);
});
tries.push(load("script", "src", "page/main.js"), load("img", "src", "api/start"));
Promise.all(tries).then(() => { document.title = "got:" + got.join(); });
</script>`, target)
	}))
	defer evil.Close()
	b := open(t, 1280, 900)
	b.visit(address)
	b.check() // the requests below make the browser log errors
	b.do(chromedp.Navigate(evil.URL))
	b.wait(`document.title !== "waiting"`)
	if title := js[string](b, "document.title"); title != "got:" {
		t.Errorf("it has %s", title)
	}
	mu.Lock()
	defer mu.Unlock()
	if asked > 0 {
		t.Errorf("it has run the model %d times", asked)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.problems = nil
}

type recordFunc func(source string) *heads.Record

func (f recordFunc) Record(_ context.Context, source, _ string) (*heads.Record, error) {
	return f(source), nil
}

func (recordFunc) NoVectors(*heads.Record) string { return "" }

// A record that the server has dropped is computed again when the screen needs it.
func TestServerForgets(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	asked := map[string]int{}
	// The cache has room for two texts.
	address := serve(t, view.Options{Keep: 150 << 10, Recorder: recordFunc(func(source string) *heads.Record {
		mu.Lock()
		defer mu.Unlock()
		asked[source]++
		r := &heads.Record{Source: source, Target: "t"}
		tokens := numbered(61)
		for i := range 2 {
			r.Layers = append(r.Layers, layer(heads.Encoder, i, 2, tokens, tokens))
		}
		return r
	})})
	b := open(t, 1280, 900)
	title := func(text string) {
		b.wait(fmt.Sprintf(`document.querySelector(".panel .sub").textContent === %q`, text+" → t"))
	}
	b.visit(address + "#s=text+0")
	title("text 0")
	for i := 1; i < 5; i++ {
		b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("#text-s").focus(); document.querySelector("#text-s").select()`),
			chromedp.SendKeys(chromedp.CSS("#text-s"), fmt.Sprint("text ", i)+kb.Enter))
		title(fmt.Sprint("text ", i))
		b.drawn()
	}
	count := func(text string) int { mu.Lock(); defer mu.Unlock(); return asked[text] }
	if n := count("text 0"); n != 1 {
		t.Fatalf("the first text was recorded %d times", n)
	}
	// Back to the first text, whose outline the page still has, and to a head that it has not loaded.
	b.do(chromedp.Evaluate[chromedp.Void](`location.hash = "#s=text+0&a=1.1&m=1"`))
	title("text 0")
	b.wait(`document.querySelector(".panel h3").textContent === "encoder, layer 1, head 1" && document.querySelectorAll("#measures tbody tr").length === 4`)
	b.drawn()
	if note := b.text(".panel .note"); note != "" {
		t.Errorf("the panel says %q", note)
	}
	if n := count("text 0"); n != 2 {
		t.Errorf("the first text was recorded %d times, want twice", n)
	}
	// Two more texts replace it in the cache; then export it.
	js[string](b, `Promise.all([5, 6].map((i) => fetch("api/record", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ source: "text " + i, target: "" }) }).then((r) => r.text()))).then((all) => all.join())`)
	page := b.download(`[data-export="html"]`, "attention.html")
	if !strings.Contains(page, "record:") || count("text 0") != 3 {
		t.Errorf("an exported page of %d bytes after %d requests", len(page), count("text 0"))
	}
}

// The policy of an exported page blocks all scripts but its own, in case a text ever
// becomes markup.
func TestExportedPageRunsNothingElse(t *testing.T) {
	t.Parallel()
	b := open(t, 1280, 900)
	b.visit(serve(t, view.Options{Records: []*heads.Record{sample()}}))
	page := b.download(`[data-export="html"]`, "attention.html")
	injected := `<script>document.title = "hit"</script><img src="x" onerror="document.title = 'hit'"><style>body { display: none }</style>`
	page = strings.Replace(page, "<main>", injected+"<main>", 1)
	if !strings.Contains(page, injected) {
		t.Fatal("the page has changed: there is no <main>")
	}
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	c := open(t, 1280, 900)
	c.visit("file://" + path)
	time.Sleep(200 * time.Millisecond) // time for the missing picture to fail
	if title := js[string](c, "document.title"); strings.Contains(title, "hit") {
		t.Error("an injected script has run")
	}
	if js[string](c, "getComputedStyle(document.body).display") == "none" {
		t.Error("an injected style holds")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.problems) == 0 {
		t.Error("the browser has stopped nothing")
	}
	c.problems = nil // the errors are expected
}
