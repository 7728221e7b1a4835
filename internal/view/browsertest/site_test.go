package browsertest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// theSite is built once, or is the directory SITE.
var theSite = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv("SITE"); dir != "" {
		return dir, nil
	}
	dir, err := os.MkdirTemp("", "attn-site")
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "run", "./site", "--out", dir)
	build.Dir = filepath.Join("..", "..", "..")
	if text, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, text)
	}
	return dir, nil
})

// site serves the site without any help for it, and returns its address.
func site(t *testing.T) string {
	t.Helper()
	findBrowser(t)
	dir, err := theSite()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(server.Close)
	return server.URL + "/"
}

// TestSiteShots saves screenshots of the pages to the directory SHOTS, for people to check. PAGES
// selects pages by name.
func TestSiteShots(t *testing.T) {
	if os.Getenv("SHOTS") == "" {
		t.Skip("set SHOTS to a directory to have pictures")
	}
	url := site(t)
	pages := strings.Fields(os.Getenv("PAGES"))
	if len(pages) == 0 {
		pages = strings.Fields("index regression scores reverse dates masks minilm search docs/index docs/heads")
	}
	for _, theme := range []string{"light", "dark"} {
		for _, width := range []int{380, 800, 1440} {
			b := open(t, width, 900)
			if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}}); err != nil {
				t.Fatal(err)
			}
			for _, page := range pages {
				name, hash, _ := strings.Cut(page, "#")
				b.do(chromedp.Navigate("about:blank"), chromedp.Navigate(url+name+".html#"+hash))
				b.wait(`document.body?.dataset.lesson === undefined || document.body.dataset.drawn !== undefined`)
				js[bool](b, "new Promise((done) => setTimeout(() => done(true), 600))")
				b.shoot(fmt.Sprintf("%s-%s-%d", strings.ReplaceAll(name, "/", "-"), theme, width))
				if wide := js[int](b, "document.documentElement.scrollWidth"); wide > width {
					t.Errorf("%s at %d is %d pixels wide", page, width, wide)
				}
			}
		}
	}
}
