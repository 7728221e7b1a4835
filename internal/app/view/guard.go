package view

import (
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// policy lets the page run its own scripts and no others.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// guard refuses requests without the secret and requests from other sites, and sets
// headers that isolate the page from other sites.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store") // the next run may have the same address and another model
		read := r.Method == http.MethodGet || r.Method == http.MethodHead
		switch {
		case !s.knows(r.Host):
			deny(w, r, http.StatusMisdirectedRequest, "this server does not answer to that host name")
		case read && r.URL.Path == "/" && r.URL.Query().Has(tokenKey):
			s.exchangeToken(w, r)
		case !s.admits(r):
			deny(w, r, http.StatusForbidden, noToken)
		case !read && !sameOrigin(r), isAPI(r) && fromElsewhere(r):
			deny(w, r, http.StatusForbidden, "only the page itself may send this request")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// knows reports whether a Host header names this server. Another site can make its host
// name resolve to the loopback address (DNS rebinding), but browsers then send that name
// in the header, never an IP address or localhost.
func (s *Server) knows(host string) bool {
	name, port := splitHost(host)
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	if _, err := strconv.ParseUint(port, 10, 16); err != nil || name == "" {
		return false
	}
	return strings.EqualFold(name, "localhost") || net.ParseIP(name) != nil ||
		s.host != "" && strings.EqualFold(name, s.host)
}

// isAPI reports whether a request is for data, which only scripts request.
func isAPI(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/api/") }

// fromElsewhere reports whether, according to the browser, another site started a
// request.
func fromElsewhere(r *http.Request) bool {
	return !slices.Contains([]string{"", "none", "same-origin"}, r.Header.Get("Sec-Fetch-Site"))
}

// sameOrigin reports whether a page of this server sent the request. Browsers send the
// origin with every POST.
func sameOrigin(r *http.Request) bool {
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	return !fromElsewhere(r) && strings.EqualFold(r.Header.Get("Origin"), "http://"+r.Host) && strings.TrimSpace(kind) == "application/json"
}

// deny refuses a request: with plain text for people, with JSON for the page.
func deny(w http.ResponseWriter, r *http.Request, status int, reason string) {
	if isAPI(r) {
		refuse(w, status, reason)
		return
	}
	answer(w, status, plainText, []byte(reason+"\n"))
}
