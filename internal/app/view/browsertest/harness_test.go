package browsertest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/view"
)

// findBrowser returns the path of Chromium, or skips the test.
func findBrowser(t *testing.T) string {
	t.Helper()
	// The shell, without the window's own interface, takes two thirds of the time.
	for _, name := range []string{
		"chromium-headless-shell", "headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable",
	} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no Chromium is installed: the page is not tested; apt-get install chromium-headless-shell")
	return ""
}

// tab is a browser window with one page, and the errors that the browser reported.
type tab struct {
	*testing.T
	ctx       context.Context
	downloads string
	saved     string // the name of the last file that was downloaded
	mu        sync.Mutex
	problems  []string
}

// theBrowser is shared by all tests, because starting a browser takes longer than most tests.
// TestMain ends its context.
var theBrowser struct {
	sync.Once
	ctx context.Context
	end func()
	err error
}

// share starts the browser once and returns its context.
func share(path string) (context.Context, error) {
	theBrowser.Do(func() {
		options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
			chromedp.Flag("disable-dev-shm-usage", true))
		ctx, endAllocator := chromedp.NewExecAllocator(context.Background(), options...)
		ctx, endBrowser := chromedp.NewContext(ctx)
		theBrowser.ctx, theBrowser.end = ctx, func() { endBrowser(); endAllocator() }
		theBrowser.err = chromedp.Do(ctx)
	})
	return theBrowser.ctx, theBrowser.err
}

// open opens a window of the given size, which shares no cookies and no storage with other windows.
func open(t *testing.T, width, height int) *tab {
	t.Helper()
	downloads := t.TempDir()
	shared, err := share(findBrowser(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := chromedp.NewContext(shared, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	b := &tab{T: t, ctx: ctx, downloads: downloads}
	// Exceptions of the page and violations of its policy fail the test.
	if err := chromedp.Listen(ctx, func(event any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			problem := e.ExceptionDetails.Text
			if e.ExceptionDetails.Exception != nil {
				problem += " " + e.ExceptionDetails.Exception.Description
			}
			b.problems = append(b.problems, problem)
		case *cdplog.EventEntryAdded:
			if e.Entry.Level == cdplog.EntryLevelError && !strings.Contains(e.Entry.Text, "Failed to load resource") {
				b.problems = append(b.problems, e.Entry.Text)
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel = context.WithTimeout(ctx, 5*time.Minute)
	t.Cleanup(cancel)
	b.ctx = ctx
	b.do(chromedp.EmulateViewport(int64(width), int64(height)))
	if _, err := chromedp.CallBrowser(ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
		Behavior: browser.SetDownloadBehaviorBehaviorAllow, DownloadPath: downloads,
		BrowserContextID: chromedp.FromContext(ctx).BrowserContextID}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.check)
	return b
}

func (b *tab) check() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.problems {
		b.Errorf("the browser complains: %s", p)
	}
	b.problems = nil
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.shoot("failure")
		b.Fatal(err)
	}
}

// visit opens an address and waits until the page is drawn.
func (b *tab) visit(url string) {
	b.Helper()
	b.do(chromedp.Navigate("about:blank"), chromedp.Navigate(url))
	b.drawn()
}

// drawn waits until the screen shows the state or a note.
func (b *tab) drawn() {
	b.Helper()
	b.wait(`document.body.dataset.drawn !== undefined || document.querySelector("#notes .note") !== null`)
}

// js returns the value of an expression, which may be a promise.
func js[T any](b *tab, expression string, options ...chromedp.EvaluateOption) T {
	b.Helper()
	result, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, append(options, chromedp.EvalAwaitPromise)...))
	if err != nil {
		b.shoot("failure")
		b.Fatalf("%s: %v", expression, err)
	}
	return result
}

// patience bounds each wait. On an idle machine the waits are short; on a busy one they may not be.
const patience = time.Minute

// wait waits until an expression is true. It polls and ignores errors, because an
// expression cannot be evaluated while the browser changes pages.
func (b *tab) wait(expression string) {
	b.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		ok, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		if err == nil && ok {
			return
		}
		if time.Now().After(end) {
			b.shoot("failure")
			b.Fatalf("%s does not become true: %v", expression, err)
		}
	}
}

// text returns the text of the first element that matches a selector.
func (b *tab) text(selector string) string {
	b.Helper()
	return js[string](b, fmt.Sprintf("document.querySelector(%q)?.textContent ?? ''", selector))
}

// click clicks the first element that matches a selector. The page may replace it between the steps of a click, as when
// it sorts heads; then nothing was clicked, and it is found again.
func (b *tab) click(selector string) {
	b.Helper()
	for {
		err := chromedp.Do(b.ctx, chromedp.ScrollIntoView(chromedp.CSS(selector)), chromedp.Click(chromedp.CSS(selector)))
		if err == nil {
			return
		}
		if !strings.Contains(err.Error(), "Could not find node with given id") {
			b.shoot("failure")
			b.Fatal(err)
		}
	}
}

// choose selects an option as a user does.
func (b *tab) choose(selector, value string) {
	b.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`(() => { const e = document.querySelector(%q); e.value = %q; e.dispatchEvent(new Event("change", { bubbles: true })); })()`, selector, value)))
}

// hash returns the state in the address.
func (b *tab) hash() string { b.Helper(); return js[string](b, "location.hash") }

// shoot saves a screenshot of the page to the directory SHOTS, if it is set.
func (b *tab) shoot(name string) {
	dir := os.Getenv("SHOTS")
	if dir == "" {
		return
	}
	picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		b.Logf("no picture %s: %v", name, err)
		return
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o644); err != nil {
		b.Error(err)
	}
}

// download clicks an element and returns the downloaded file. A browser lets a page save several
// files only soon after a user gesture. On a busy machine the page may be ready too late, so
// download clicks again.
func (b *tab) download(selector, name string) string {
	b.Helper()
	files := filepath.Join(b.downloads, "*"+filepath.Ext(name)) // the page adds the names of the model and the head
	old, _ := filepath.Glob(files)
	for _, path := range old {
		os.Remove(path)
	}
	for end := time.Now().Add(patience); time.Now().Before(end); {
		js[bool](b, fmt.Sprintf("document.querySelector(%q).click(), true", selector), func(p *runtime.EvaluateParams) { p.UserGesture = new(true) })
		b.wait(fmt.Sprintf("!document.querySelector(%q).disabled", selector)) // the page has started the download
		for late := time.Now().Add(patience / 6); time.Now().Before(late); time.Sleep(20 * time.Millisecond) {
			found, _ := filepath.Glob(files)
			for _, path := range found {
				if data, err := os.ReadFile(path); err == nil && len(data) > 0 { // the browser renames the file when it is complete
					b.saved = filepath.Base(path)
					return string(data)
				}
			}
		}
	}
	b.Fatalf("%s has not come: %s", name, b.text("#notes"))
	return ""
}

// save writes a page to a file and returns the address of the file.
func (b *tab) save(page string) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "page.html")
	if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
		b.Fatal(err)
	}
	return "file://" + path
}

// serve starts a server and returns its address, with the token.
func serve(t *testing.T, o view.Options) string {
	t.Helper()
	return serveSlowly(t, o, 0)
}

// serveSlowly is serve with delayed weights of heads, as on a busy machine.
func serveSlowly(t *testing.T, o view.Options, late time.Duration) string {
	t.Helper()
	s := view.New(o)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/head" {
			time.Sleep(late)
		}
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return s.Address(strings.TrimPrefix(server.URL, "http://"))
}

// layer returns a layer whose heads attend in different ways.
func layer(kind heads.Kind, index, n int, queries, keys []string) heads.Layer {
	l := heads.Layer{Name: fmt.Sprintf("%s.%d", kind, index), Kind: kind, Index: index, Heads: n, Queries: queries, Keys: keys}
	rng := rand.New(rand.NewPCG(uint64(index), uint64(kind)))
	for h := range n {
		shift, width, sink := (h%5)-2, 0.4+3*float64((h*7+index*3)%5), float64((h+index)%3)
		for i := range queries {
			row := make([]float32, len(keys))
			var sum float64
			for j := range keys {
				d := float64(j) - float64(i)*float64(len(keys))/float64(max(1, len(queries))) - float64(shift)
				w := math.Exp(-d*d/(2*width*width)) + 0.02*rng.Float64()
				if j == 0 {
					w += sink
				}
				if kind == heads.Decoder && j > i {
					w = 0
				}
				row[j] = float32(w)
				sum += w
			}
			for j := range row {
				row[j] /= float32(sum)
			}
			l.Weights = append(l.Weights, row...)
		}
	}
	return l
}

func numbered(n int) []string {
	tokens := make([]string, n)
	for i := range tokens {
		tokens[i] = fmt.Sprintf("▁t%d", i)
	}
	return tokens
}
