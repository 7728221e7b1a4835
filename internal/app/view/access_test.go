package view

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/attn-go/attn/heads"
)

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

// paths are all paths of the server, and some that do not exist.
var paths = []string{"/", "/page/main.js", "/page/style.css", "/page/", "/page/nothing.js", "/favicon.ico", "/nothing", "/api/start",
	"/api/thumbs?record=r0&layer=0", "/api/head?record=r0&layer=0&head=0", "/api/measures?record=r0&layer=0", "/api/check?record=r0&layer=0", "/api/frozen", "/api/record", "/api/nothing"}

func TestEveryPathWantsTheSecret(t *testing.T) {
	s := New(Options{Records: []*heads.Record{sample()}, Recorder: recordFunc(func(context.Context, string, string) (*heads.Record, error) {
		t.Error("a stranger has run the model")
		return sample(), nil
	})})
	other := New(Options{})
	cookie := func(name, value string) func(*http.Request) {
		return header("Cookie", name+"="+value)
	}
	for name, edit := range map[string]func(*http.Request){
		"no cookie":            func(r *http.Request) { r.Header.Del("Cookie") },
		"an empty one":         cookie("attn-view-8080", ""),
		"that of another run":  cookie("attn-view-8080", other.secret),
		"a part of it":         cookie("attn-view-8080", s.secret[:len(s.secret)-1]),
		"more than it":         cookie("attn-view-8080", s.secret+"A"),
		"it in lower case":     cookie("attn-view-8080", strings.ToLower(s.secret)),
		"that of another port": cookie("attn-view-8081", s.secret),
		"it as another cookie": cookie("token", s.secret),
		"it as another header": func(r *http.Request) { r.Header.Del("Cookie"); r.Header.Set("Authorization", "token "+s.secret) },
	} {
		for _, path := range paths {
			for _, method := range []string{"GET", "HEAD", "POST", "PUT", "OPTIONS"} {
				w := ask(s, method, path, `{"source":"x"}`, edit)
				if w.Code != 403 || !strings.Contains(w.Body.String(), "open the address") {
					t.Errorf("%s, %s %s: status %d, want 403 and where the address is: %s", name, method, path, w.Code, w.Body)
				}
				if len(w.Result().Cookies()) > 0 || strings.Contains(fmt.Sprint(w.Header(), w.Body), s.secret) {
					t.Errorf("%s, %s %s: the answer holds the secret", name, method, path)
				}
			}
		}
	}
	// Another server on the host may have set a cookie of the same name for a part of the page.
	if w := ask(s, "GET", "/", "", cookie("attn-view-8080=x; attn-view-8080", s.secret)); w.Code != 200 {
		t.Errorf("beside a wrong cookie of its name the right one gets status %d", w.Code)
	}
}

func TestTokenBecomesACookie(t *testing.T) {
	s := New(Options{})
	at, err := url.Parse(s.Address("127.0.0.1:8080"))
	if err != nil || at.Host != "127.0.0.1:8080" || at.Path != "/" || at.Query().Get("token") != s.secret {
		t.Fatalf("the address is %v, %v", at, err)
	}
	stranger := func(r *http.Request) { r.Header.Del("Cookie") }
	visit := func(target string, edit func(*http.Request)) *httptest.ResponseRecorder {
		return ask(s, "GET", target, "", func(r *http.Request) {
			stranger(r)
			if edit != nil {
				edit(r)
			}
		})
	}
	for _, c := range []struct {
		name string
		edit func(*http.Request)
		want int
	}{
		{"a program", nil, 303},
		{"somebody who types it", header("Sec-Fetch-Site", "none"), 303},
		{"the page itself", header("Sec-Fetch-Site", "same-origin"), 303},
		// After these requests, browsers do not send the cookie with a redirect.
		{"a file, or a page elsewhere", header("Sec-Fetch-Site", "cross-site"), 200},
		{"a page on another port", header("Sec-Fetch-Site", "same-site"), 200},
	} {
		w := visit(at.RequestURI(), c.edit)
		leads := w.Header().Get("Location")
		if c.want == 200 {
			leads = strings.TrimPrefix(w.Header().Get("Refresh"), "0; url=")
		}
		if w.Code != c.want || leads != "/" {
			t.Errorf("%s: status %d to %q, want %d to /", c.name, w.Code, leads, c.want)
		}
		cookies := w.Result().Cookies()
		if len(cookies) != 1 {
			t.Fatalf("%s: cookies %v, want one", c.name, cookies)
		}
		k := cookies[0]
		if k.Name != "attn-view-8080" || !k.HttpOnly || k.SameSite != http.SameSiteStrictMode || k.Path != "/" || k.Domain != "" || k.MaxAge != 0 || !k.Expires.IsZero() {
			t.Errorf("%s: the cookie is %v", c.name, k)
		}
		if w := visit("/api/start", func(r *http.Request) { r.AddCookie(k) }); w.Code != 200 {
			t.Errorf("%s: the cookie gets status %d", c.name, w.Code)
		}
	}
	// Two servers on a host use different cookies.
	if w := visit(at.RequestURI(), func(r *http.Request) { r.Host = "localhost:9090" }); w.Result().Cookies()[0].Name != "attn-view-9090" {
		t.Errorf("at another port: %v", w.Result().Cookies())
	}
	for name, c := range map[string]struct {
		target string
		edit   func(*http.Request)
		want   int
	}{
		"a wrong token":         {"/?token=" + newSecret(), nil, 403},
		"an empty one":          {"/?token=", nil, 403},
		"two":                   {"/?token=x&token=" + s.secret, nil, 403},
		"elsewhere on the page": {"/api/start?token=" + s.secret, nil, 403},
		"in a form":             {"/?token=" + s.secret, func(r *http.Request) { r.Method = "POST" }, 403},
		"at a rebound name":     {"/?token=" + s.secret, func(r *http.Request) { r.Host = "evil.example:8080" }, 421},
		"at no port":            {"/?token=" + s.secret, func(r *http.Request) { r.Host = "127.0.0.1:a;b" }, 421},
	} {
		if w := visit(c.target, c.edit); w.Code != c.want || len(w.Result().Cookies()) > 0 {
			t.Errorf("%s: status %d and cookies %v, want %d and none", name, w.Code, w.Result().Cookies(), c.want)
		}
	}
}

func TestSecrets(t *testing.T) {
	seen := map[string]bool{}
	letters := map[rune]bool{}
	if a, b := New(Options{}), New(Options{}); a.secret == b.secret {
		t.Fatal("two servers have one secret")
	}
	for range 100 {
		s := newSecret()
		if seen[s] {
			t.Fatalf("%s comes twice", s)
		}
		seen[s] = true
		for _, r := range s {
			letters[r] = true
		}
		if len(s) < 26 || url.QueryEscape(s) != s {
			t.Errorf("the secret %s should be 26 letters and digits", s)
		}
	}
	if len(letters) != 32 { // 5 bits each, 130 bits in 26 letters
		t.Errorf("secrets are made of %d characters, want 32", len(letters))
	}
}

// Requests with the secret must meet the other conditions too.
func TestOnlyThePageMayAsk(t *testing.T) {
	asked := 0
	s := New(Options{Recorder: recordFunc(func(context.Context, string, string) (*heads.Record, error) {
		asked++
		return sample(), nil
	})})
	s.host = "lab.example"
	host := func(name, port string) func(*http.Request) {
		return func(r *http.Request) {
			r.Host = name
			r.Header.Del("Cookie")
			r.AddCookie(&http.Cookie{Name: "attn-view-" + port, Value: s.secret})
		}
	}
	both := func(name string) func(*http.Request) {
		return func(r *http.Request) { r.Host = name; r.Header.Set("Origin", "http://"+name) }
	}
	for _, c := range []struct {
		name, method, target string
		edit                 func(*http.Request)
		want                 int
	}{
		{"the page", "GET", "/", nil, 200},
		{"the page by a link", "GET", "/", header("Sec-Fetch-Site", "cross-site"), 200},
		{"localhost", "GET", "/", host("LocalHost:1234", "1234"), 200},
		{"IPv6", "GET", "/", host("[::1]:1234", "1234"), 200},
		{"the name it was given", "GET", "/", host("lab.example", "80"), 200},
		{"a rebound name", "GET", "/", host("evil.example", "80"), 421},
		{"a rebound name with the port", "GET", "/api/start", host("evil.example:8080", "8080"), 421},
		{"a name that begins like a number", "GET", "/", host("127.0.0.1.evil.example", "80"), 421},
		{"no name", "GET", "/", host("", "80"), 421},
		{"data for another page", "GET", "/api/start", header("Sec-Fetch-Site", "cross-site"), 403},
		{"data for a page on another port", "GET", "/api/start", header("Sec-Fetch-Site", "same-site"), 403},
		{"data for the page", "GET", "/api/start", header("Sec-Fetch-Site", "same-origin"), 200},
		{"a text", "POST", "/api/record", nil, 200},
		{"a text by another name", "POST", "/api/record", both("localhost:8080"), 200},
		{"a text from another page", "POST", "/api/record", header("Origin", "http://evil.example"), 403},
		{"a text from another port", "POST", "/api/record", header("Origin", "http://127.0.0.1:9"), 403},
		{"a text from a file", "POST", "/api/record", header("Origin", "null"), 403},
		{"a text from nowhere", "POST", "/api/record", func(r *http.Request) { r.Header.Del("Origin") }, 403},
		{"a form", "POST", "/api/record", header("Content-Type", "text/plain"), 403},
		{"a text from the same site", "POST", "/api/record", header("Sec-Fetch-Site", "same-site"), 403},
		{"a rebound name with its own origin", "POST", "/api/record", both("evil.example"), 421},
		{"a request without a text", "GET", "/api/record", nil, 405},
		{"a file above the page", "GET", "/page/../view.go", nil, 307},
		{"a file above the page, hidden", "GET", "/page/..%2fview.go", nil, 404},
		{"a file of the system", "GET", "/page//etc/passwd", nil, 307},
	} {
		w := ask(s, c.method, c.target, `{"source":"x"}`, c.edit)
		if w.Code != c.want {
			t.Errorf("%s: status %d, want %d: %s", c.name, w.Code, c.want, w.Body)
		}
	}
	if asked != 1 {
		t.Errorf("the model was asked %d times, want once: the texts were the same", asked)
	}
}

// Whatever is answered, the headers keep it to the page.
func TestHeaders(t *testing.T) {
	want := map[string]string{
		"X-Content-Type-Options":       "nosniff",
		"Referrer-Policy":              "no-referrer",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; " +
			"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
		"Access-Control-Allow-Origin": "",
	}
	s := New(Options{Records: []*heads.Record{sample()}})
	answers := map[string]*httptest.ResponseRecorder{
		"the token":      ask(s, "GET", "/?token="+s.secret, "", nil),
		"a wrong token":  ask(s, "GET", "/?token=x", "", nil),
		"no cookie":      ask(s, "GET", "/", "", func(r *http.Request) { r.Header.Del("Cookie") }),
		"another name":   ask(s, "GET", "/", "", func(r *http.Request) { r.Host = "evil.example" }),
		"another origin": ask(s, "POST", "/api/record", "{}", header("Origin", "http://evil.example")),
		"no record":      ask(s, "GET", "/api/thumbs?record=r9", "", nil),
	}
	for _, path := range paths {
		answers[path] = ask(s, "GET", path, "", nil)
	}
	for name, w := range answers {
		want := maps.Clone(want)
		if w.Code != 404 { // 404 answers may be cached
			want["Cache-Control"] = "no-store"
		}
		for header, value := range want {
			if got := w.Header().Get(header); got != value {
				t.Errorf("%s: %s is %q, want %q", name, header, got, value)
			}
		}
	}
}
