package view

import (
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"slices"
)

// tokenKey is the query parameter with the secret in the address.
const tokenKey = "token"

// newSecret returns at least 128 random bits as letters and digits.
func newSecret() string { return rand.Text() }

// Address returns the address of the page at host:port, with the server's token.
// Anyone with this address can use the page: the first visit exchanges the token for a
// cookie, which every other request must send.
func (s *Server) Address(hostport string) string {
	return fmt.Sprintf("http://%s/?%s=%s", hostport, tokenKey, s.secret)
}

// isSecret compares in constant time.
func (s *Server) isSecret(given string) bool {
	return subtle.ConstantTimeCompare([]byte(given), []byte(s.secret)) == 1
}

// admits reports whether a request has the cookie. A request may have several cookies
// of this name, because servers on other ports of the host can set them.
func (s *Server) admits(r *http.Request) bool {
	return slices.ContainsFunc(r.CookiesNamed(cookieName(r.Host)), func(c *http.Cookie) bool { return s.isSecret(c.Value) })
}

// cookieName contains the port that the browser sees: all ports of a host share their
// cookies, and several of them may have a server.
func cookieName(host string) string {
	_, port := splitHost(host)
	return "attn-view-" + port
}

// splitHost returns the name and the port of a Host header.
func splitHost(host string) (name, port string) {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		return host, "80"
	}
	return name, port
}

// exchangeToken exchanges the token in an address for the cookie, and redirects to the address
// without the token, which users may copy and browsers may store in their history.
func (s *Server) exchangeToken(w http.ResponseWriter, r *http.Request) {
	if !s.isSecret(r.URL.Query().Get(tokenKey)) {
		deny(w, r, http.StatusForbidden, noToken)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName(r.Host), Value: s.secret, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	if !fromElsewhere(r) {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	// After a link from another site or a file, browsers do not send the cookie with a
	// redirect. They do send it when this answer loads the next page.
	w.Header().Set("Refresh", "0; url=/")
	answer(w, http.StatusOK, plainText, []byte("opening attn view\n"))
}

// noToken is the answer to a request with neither the token nor the cookie.
const noToken = "this page needs a token: open the address, ending in ?" + tokenKey + "=…, that attn view printed when it started"
