package view

import (
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"strconv"
)

// tokenKey names the secret in the address that lets somebody in.
const tokenKey = "token"

// newSecret returns at least 128 random bits as letters and digits.
func newSecret() string { return rand.Text() }

// Address returns the address of the page at host:port, with the server's token.
// Whoever has it can use the page: the first visit exchanges the token for a
// cookie, and every other request has to bring that.
func (s *Server) Address(hostport string) string {
	return fmt.Sprintf("http://%s/?%s=%s", hostport, tokenKey, s.secret)
}

// isSecret takes as long for a wrong secret as for a nearly right one.
func (s *Server) isSecret(given string) bool {
	return subtle.ConstantTimeCompare([]byte(given), []byte(s.secret)) == 1
}

// admits reports whether a request brings the cookie. There may be several of the
// name: servers on other ports of the host can set some.
func (s *Server) admits(r *http.Request) bool {
	for _, c := range r.CookiesNamed(cookieName(r.Host)) {
		if s.isSecret(c.Value) {
			return true
		}
	}
	return false
}

// cookieName has the port that the browser sees in it: browsers hold the cookies
// of all ports of a host together, and there may be a server on each.
func cookieName(host string) string {
	_, port, err := net.SplitHostPort(host)
	if err != nil {
		port = "80"
	}
	return "attn-view-" + port
}

// validPort reports whether a Host header has a port that is a number, or none.
func validPort(host string) bool {
	_, port, err := net.SplitHostPort(host)
	if err != nil {
		return true
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}

// enter exchanges the token in an address for the cookie, and leads to the
// address without it: that one may be copied, shown and kept in a history.
func (s *Server) enter(w http.ResponseWriter, r *http.Request) {
	if !s.isSecret(r.URL.Query().Get(tokenKey)) {
		deny(w, r, http.StatusForbidden, noToken)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName(r.Host), Value: s.secret, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	if !fromElsewhere(r) {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	// A browser that another page or a file has sent here sends no such cookie
	// with a redirect. It does when this answer itself leads on.
	w.Header().Set("Refresh", "0; url=/")
	answer(w, http.StatusOK, plainText, []byte("attn view opens\n"))
}

// noToken is told to whoever has neither the token nor the cookie.
const noToken = "this page needs a token: open the address, ending in ?" + tokenKey + "=…, that attn view printed when it started"
