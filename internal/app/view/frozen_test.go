package view

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/attn-go/attn/heads"
)

func TestFrozen(t *testing.T) {
	s := New(Options{})
	text := ask(s, "GET", "/api/frozen", "", nil).Body.String()
	marks, ends := strings.Count(text, frozenMark), strings.Count(strings.ToLower(text), "</script")
	if marks != 1 || ends != 2 {
		t.Errorf("it contains the mark %d times and the end of a script %d times", marks, ends)
	}
	for _, outside := range []string{"http://", "https://", "src=", "href=\"page", s.secret} {
		if at := strings.Index(strings.ReplaceAll(strings.ReplaceAll(text, "http://www.w3.org/", ""), "http-equiv", ""), outside); at >= 0 {
			t.Errorf("%q is in it", outside)
		}
	}
}

// The page is one script, because a browser finds and loads modules one after the other.
func TestOneScript(t *testing.T) {
	w := ask(New(Options{}), "GET", "/page/main.js", "", nil)
	if kind := w.Header().Get("Content-Type"); w.Code != 200 || kind != "text/javascript; charset=utf-8" {
		t.Errorf("status %d, %s", w.Code, kind)
	}
	if at := regexp.MustCompile(`(?m)^(import|export)\b.*`).FindString(w.Body.String()); at != "" || !strings.Contains(w.Body.String(), "const module_heat") {
		t.Errorf("it is not one script: %q", at)
	}
}

// The policy of the exported page allows only its script and its style, by their
// hashes.
func TestFrozenPolicy(t *testing.T) {
	text := ask(New(Options{}), "GET", "/api/frozen", "", nil).Body.String()
	found := func(pattern string) string {
		t.Helper()
		all := regexp.MustCompile(`(?s)`+pattern).FindAllStringSubmatch(text, -1)
		if len(all) != 1 {
			t.Fatalf("%s is there %d times, want once", pattern, len(all))
		}
		return all[0][1]
	}
	hash := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return base64.StdEncoding.EncodeToString(sum[:])
	}
	want := fmt.Sprintf("default-src 'none'; script-src 'sha256-%s'; style-src 'sha256-%s'; img-src data: blob:; base-uri 'none'; form-action 'none'",
		hash(found(`<script>(.*?)</script>`)), hash(found(`<style>(.*?)</style>`)))
	if got := html.UnescapeString(found(`<meta http-equiv="Content-Security-Policy" content="(.*?)">`)); got != want {
		t.Errorf("the policy is %s, want %s", got, want)
	}
	if strings.Index(text, "Content-Security-Policy") > strings.Index(text, "<style>") {
		t.Error("the policy comes after what it is to allow")
	}
}

// The error for records that do not fit into a page says how many tokens would.
func TestPageTooLarge(t *testing.T) {
	r := large(1031)
	l := &r.Layers[0]
	l.Heads, l.Weights = 13, make([]float32, 13*1031*1031)
	_, err := Page(t.Context(), Options{Records: []*heads.Record{r}}, nil)
	want := "view: 15 maps of up to 1031 tokens take 16 MB, more than the 12 MB that fit into a page: use at most about 904 tokens, or write one map as a picture"
	if err == nil || err.Error() != want {
		t.Fatalf("error %v, want %s", err, want)
	}
	short := large(904)
	l = &short.Layers[0]
	l.Heads, l.Weights = 13, make([]float32, 13*904*904)
	if _, err := Page(t.Context(), Options{Records: []*heads.Record{short}}, nil); err != nil {
		t.Errorf("904 tokens: %v", err)
	}
}

// Data that could end the script of the page, or that are no JSON, are refused.
func TestPageOf(t *testing.T) {
	page, err := PageOf([]byte(`{"address":"","answers":{}}`))
	if err != nil || !strings.Contains(string(page), `id="frozen">{"address":"","answers":{}}</script>`) {
		t.Errorf("%v", err)
	}
	for _, bad := range []string{"", "{", `{"address":"</script>"}`} {
		if _, err := PageOf([]byte(bad)); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
