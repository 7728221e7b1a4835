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
	"github.com/attn-go/attn/internal/view"
)

// findBrowser returns the path of one, or ends the test.
func findBrowser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "headless-shell"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no Chromium is installed: the page is not tested; apt-get install chromium")
	return ""
}

// tab is a browser with one page, and what it has complained about.
type tab struct {
	*testing.T
	ctx       context.Context
	downloads string
	saved     string // the name of the last file that was downloaded
	mu        sync.Mutex
	problems  []string
}

// theBrowser is the one that all tests share: to start one takes longer than most tests.
// Its context ends in TestMain.
var theBrowser struct {
	sync.Once
	ctx context.Context
	end func()
	err error
}

// share starts the browser.
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

// open opens a window of the given size, which shares no cookies and no storage with others.
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
	// Whatever the page throws, and whatever its policy has to stop, is a fault.
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

// visit opens an address and waits until the page has drawn.
func (b *tab) visit(url string) {
	b.Helper()
	b.do(chromedp.Navigate("about:blank"), chromedp.Navigate(url))
	b.drawn()
}

// drawn waits until the screen shows the state, or says why it does not.
func (b *tab) drawn() {
	b.Helper()
	b.wait(`document.body.dataset.drawn !== undefined || document.querySelector("#notes .note") !== null`)
}

// js evaluates an expression, which may be a promise.
func js[T any](b *tab, expression string, options ...chromedp.EvaluateOption) T {
	b.Helper()
	result, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, append(options, chromedp.EvalAwaitPromise)...))
	if err != nil {
		b.shoot("failure")
		b.Fatalf("%s: %v", expression, err)
	}
	return result
}

// patience is how long a test waits for what should be there at once: on a busy machine it may not be.
const patience = time.Minute

// wait waits until an expression is true. It asks again and again: while the
// browser goes from one page to another there is nobody to answer.
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

// text returns the text of the first element that a selector finds.
func (b *tab) text(selector string) string {
	b.Helper()
	return js[string](b, fmt.Sprintf("document.querySelector(%q)?.textContent ?? ''", selector))
}

// click clicks the first element that a selector finds.
func (b *tab) click(selector string) {
	b.Helper()
	b.do(chromedp.ScrollIntoView(chromedp.CSS(selector)), chromedp.Click(chromedp.CSS(selector)))
}

// choose chooses an option as a user does.
func (b *tab) choose(selector, value string) {
	b.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`(() => { const e = document.querySelector(%q); e.value = %q; e.dispatchEvent(new Event("change", { bubbles: true })); })()`, selector, value)))
}

// hash returns the state in the address.
func (b *tab) hash() string { b.Helper(); return js[string](b, "location.hash") }

// shoot saves a picture of the page if somebody wants to see it.
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

// download clicks and returns the file that comes. A browser lets a page save one file after the
// other only if the user has just done something, which on a busy machine may be long ago when the
// page is ready to: then the user clicks again.
func (b *tab) download(selector, name string) string {
	b.Helper()
	files := filepath.Join(b.downloads, "*"+filepath.Ext(name)) // the rest is of the model and the head
	old, _ := filepath.Glob(files)
	for _, path := range old {
		os.Remove(path)
	}
	for end := time.Now().Add(patience); time.Now().Before(end); {
		js[bool](b, fmt.Sprintf("document.querySelector(%q).click(), true", selector), func(p *runtime.EvaluateParams) { p.UserGesture = new(true) })
		b.wait(fmt.Sprintf("!document.querySelector(%q).disabled", selector)) // the page has done its part
		for late := time.Now().Add(patience / 6); time.Now().Before(late); time.Sleep(20 * time.Millisecond) {
			found, _ := filepath.Glob(files)
			for _, path := range found {
				if data, err := os.ReadFile(path); err == nil && len(data) > 0 { // it has this name when all of it is there
					b.saved = filepath.Base(path)
					return string(data)
				}
			}
		}
	}
	b.Fatalf("%s has not come: %s", name, b.text("#notes"))
	return ""
}

// save returns the address of a page as a file.
func (b *tab) save(page string) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "page.html")
	if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
		b.Fatal(err)
	}
	return "file://" + path
}

// serve serves records and returns the address, with the token.
func serve(t *testing.T, o view.Options) string {
	t.Helper()
	return serveSlowly(t, o, 0)
}

// serveSlowly serves as a busy machine does: the weights of a head come late.
func serveSlowly(t *testing.T, o view.Options, late time.Duration) string {
	t.Helper()
	s, err := view.New(o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/head" {
			time.Sleep(late)
		}
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return s.Address(strings.TrimPrefix(server.URL, "http://"))
}

// layer makes a layer whose heads attend in different ways.
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
