package view

import (
	"net"
	"net/http"
	"strings"
)

// policy lets the page run its own scripts and nothing that came as text.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// guard refuses requests that other pages make a browser send, and sets the
// headers that keep the page to itself.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store") // the next run has the same address and another model
		if !s.knows(r.Host) {
			refuse(w, http.StatusMisdirectedRequest, "this server does not answer to that host name")
			return
		}
		if r.Method == http.MethodPost && !sameOrigin(r) {
			refuse(w, http.StatusForbidden, "only the page itself may ask for that")
			return
		}
		if r.Header.Get("Sec-Fetch-Site") == "cross-site" && strings.HasPrefix(r.URL.Path, "/api/") {
			refuse(w, http.StatusForbidden, "only the page itself may ask for that")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// knows reports whether a Host header names this server. A page elsewhere can
// point a name of its own at the loopback address (DNS rebinding), but it
// cannot make a browser write a number there, or localhost.
func (s *Server) knows(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	if name == "" {
		return false
	}
	return strings.EqualFold(name, "localhost") || net.ParseIP(name) != nil ||
		s.options.Host != "" && strings.EqualFold(name, s.options.Host)
}

// sameOrigin reports whether a page of this server sent the request. Browsers
// tell the origin of every POST.
func sameOrigin(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" {
		return false
	}
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	return strings.EqualFold(r.Header.Get("Origin"), "http://"+r.Host) && strings.TrimSpace(kind) == "application/json"
}
