package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// After temporary failures, requests are retried after the pause that the server requests.
func TestRetries(t *testing.T) {
	f, failed := newFake(t), 0
	f.Answer = func(w http.ResponseWriter, r *http.Request, path string) bool {
		if failed++; failed > 4 {
			return false
		}
		if failed == 3 {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusTooManyRequests)
			return true
		}
		w.WriteHeader(http.StatusBadGateway)
		return true
	}
	h := f.hub(t, "")
	var waited []time.Duration
	var told int
	h.wait = func(_ context.Context, d time.Duration) error { waited = append(waited, d); return nil }
	h.retry = func(error, time.Duration) { told++ }
	if _, err := h.Model(t.Context(), "owner/tiny", "main"); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(waited); got != "[1s 2s 7s 8s]" || told != 4 {
		t.Errorf("waited %s and told %d times", got, told)
	}
}

// The token is sent to the endpoint, but not to the targets of its redirects.
func TestToken(t *testing.T) {
	var elsewhere []string
	f := newFake(t)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		elsewhere = append(elsewhere, r.Header.Get("Authorization"))
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(string(big)))
	}))
	defer other.Close()
	var here []string
	f.Answer = func(w http.ResponseWriter, r *http.Request, path string) bool {
		here = append(here, r.Header.Get("Authorization"))
		if path == "model.safetensors" {
			http.Redirect(w, r, other.URL+"/blob", http.StatusFound)
			return true
		}
		return false
	}
	m, err := f.hub(t, "hf_secret\n").Model(t.Context(), "owner/tiny", "main")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Download(t.Context(), t.TempDir(), unwatched); err != nil {
		t.Fatal(err)
	}
	for _, got := range here {
		if got != "Bearer hf_secret" {
			t.Errorf("the hub got the token %q", got)
		}
	}
	if len(elsewhere) != 1 || elsewhere[0] != "" {
		t.Errorf("another host got the token: %q", elsewhere)
	}
}

// The token is sent only to the endpoint's host, with the endpoint's protocol.
func TestAuthorized(t *testing.T) {
	endpoint, _ := url.Parse("https://hub.example/mirror")
	for at, want := range map[string]string{
		"https://hub.example/a":       "Bearer secret",
		"http://hub.example/a":        "",
		"https://hub.example:8443/a":  "",
		"https://cdn.hub.example/a":   "",
		"https://hub.example.evil/a":  "",
		"https://evil/?u=hub.example": "",
	} {
		r, err := http.NewRequest(http.MethodGet, at, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got string
		authorized{sender(func(r *http.Request) { got = r.Header.Get("Authorization") }), endpoint, "secret", "attn"}.RoundTrip(r)
		if got != want || r.Header.Get("Authorization") != "" {
			t.Errorf("%s gets the token %q, want %q", at, got, want)
		}
	}
}

// sender receives a request and returns no response.
type sender func(*http.Request)

func (s sender) RoundTrip(r *http.Request) (*http.Response, error) {
	s(r)
	return nil, errors.New("no answer")
}

func TestNew(t *testing.T) {
	for _, c := range []struct{ endpoint, token, want string }{
		{"https://hub.example", "secret", ""},
		{"https://hub.example/mirror/", "", ""},
		{"http://127.0.0.1:8000", "secret", ""},
		{"http://localhost:8000", "secret", ""},
		{"http://hub.example", "", ""},
		{"http://hub.example", "secret", "the token would go to hub.example unencrypted"},
		{"https://hub.example", "sec ret", "the token has a character that no token has"},
		{"hub.example", "", `endpoint "hub.example", want a URL`},
		{"file:///etc", "", "want a URL"},
		{"https://hub.example?x=1", "", "want a URL"},
		{"https://me@hub.example", "", "want a URL"},
	} {
		_, err := New(c.endpoint, c.token, "attn", nil)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, token %q: error %v, want %q", c.endpoint, c.token, err, c.want)
		}
	}
	from, _ := http.NewRequest("GET", "https://hub.example/a", nil)
	to, _ := http.NewRequest("GET", "http://hub.example/a", nil)
	if checkRedirect(to, []*http.Request{from}) == nil || checkRedirect(from, []*http.Request{to}) != nil {
		t.Error("a redirect may leave https")
	}
}

func TestCheckName(t *testing.T) {
	for name, ok := range map[string]bool{
		"gpt2": true, "sentence-transformers/all-MiniLM-L6-v2": true, "a/b.c_d-e": true,
		"": false, "a/b/c": false, "../a": false, "a/..": false, "a..b": false, "-a": false, "a/": false, "/a": false, "a b": false, "a?b": false, "a.git": false,
	} {
		if err := CheckName(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// An invalid name in an error is quoted, without the word before it.
func TestInvalidName(t *testing.T) {
	for name, want := range map[string]string{"": `hub: "": invalid name: "", want`, "a\nb": `hub: "a\nb": invalid name: "a\nb", want`} {
		if _, err := newFake(t).hub(t, "").Model(t.Context(), name, "main"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
