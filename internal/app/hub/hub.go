// Package hub downloads models from a hub with the API of Hugging Face: lists of files with their sizes and hashes,
// and the files themselves, over connections that may break.
//
// The hub is not trusted: paths must stay within their directory, sizes must match, and a file is renamed to its
// final name only if its bytes have the hash that the hub lists for the commit.
package hub

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/attn-go/attn/internal/quote"
)

// Hub is a server to download models from.
type Hub struct {
	endpoint *url.URL
	client   *http.Client
	token    bool // whether there is a token
	patience time.Duration
	retry    func(err error, after time.Duration)
	wait     func(context.Context, time.Duration) error
}

// New returns the hub at an endpoint, such as https://huggingface.co. A token is sent only to the endpoint's host,
// and only over https, except on this machine. retry is called after each failure that will be retried, with the pause
// until then.
//
// Errors: an endpoint that is not an http or https URL; a token that would be sent over http.
func New(endpoint, token, agent string, retry func(err error, after time.Duration)) (*Hub, error) {
	at, err := url.Parse(strings.TrimRight(endpoint, "/"))
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" || at.RawQuery != "" || at.Fragment != "" || at.User != nil {
		return nil, fmt.Errorf("endpoint %s, want a URL such as https://huggingface.co", quote.Text(endpoint))
	}
	if token = strings.TrimSpace(token); strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return nil, errors.New("the token has a character that no token has, such as a space")
	}
	if token != "" && at.Scheme == "http" && !isLoopback(at.Hostname()) {
		return nil, fmt.Errorf("the token would go to %s unencrypted, want an endpoint of https, or no token", at.Host)
	}
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.ResponseHeaderTimeout = patience
	return &Hub{
		endpoint: at,
		client: &http.Client{
			Transport:     authorized{base, at, token, agent},
			CheckRedirect: checkRedirect,
		},
		token:    token != "",
		patience: patience,
		retry:    retry,
		wait:     sleep,
	}, nil
}

// patience is how long a server may send nothing.
const patience = time.Minute

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// errRedirect says that a redirect was not followed.
var errRedirect = errors.New("redirect")

// checkRedirect rejects redirects that leave https.
func checkRedirect(r *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return fmt.Errorf("%w, the tenth in a row", errRedirect)
	}
	if via[len(via)-1].URL.Scheme == "https" && r.URL.Scheme != "https" {
		return fmt.Errorf("%w from https to %s://%s", errRedirect, r.URL.Scheme, r.URL.Host)
	}
	return nil
}

// authorized adds the token to requests to the endpoint. A header of the original request would also be sent to
// redirect targets.
type authorized struct {
	base     http.RoundTripper
	endpoint *url.URL
	token    string
	agent    string
}

// RoundTrip sends a request.
func (a authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", a.agent)
	if a.token != "" && r.URL.Scheme == a.endpoint.Scheme && r.URL.Host == a.endpoint.Host {
		r.Header.Set("Authorization", "Bearer "+a.token)
	}
	return a.base.RoundTrip(r)
}

// temporary is an error after which a retry may help.
type temporary struct {
	error
	after time.Duration // pause that the server requests
}

// Unwrap returns the error itself.
func (e temporary) Unwrap() error { return e.error }

// attempts is the largest number of attempts without progress, with pauses of 1 to 16 seconds.
const attempts = 6

// longestWait is the longest pause accepted from a server.
const longestWait = 5 * time.Minute

// persistently calls try until it succeeds, fails permanently, or has failed attempts times in a row without progress.
func (h *Hub) persistently(ctx context.Context, try func() (advanced bool, err error)) error {
	for failed := 0; ; {
		advanced, err := try()
		var again temporary
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !errors.As(err, &again) {
			return err
		}
		if failed++; advanced {
			failed = 1
		}
		if failed == attempts {
			return fmt.Errorf("%w; tried %d times", err, failed)
		}
		pause := max(time.Second<<(failed-1), again.after)
		if pause > longestWait {
			return fmt.Errorf("%w; the server asks for a pause of %v", err, again.after)
		}
		h.retry(err, pause)
		if err := h.wait(ctx, pause); err != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// get requests a URL and returns a successful response. For any other response, the error is an *input.Error, a
// temporary error, or a permanent error.
func (m *Model) get(ctx context.Context, at string, header http.Header) (*http.Response, error) {
	ctx, end := context.WithCancelCause(ctx)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		end(nil)
		return nil, fmt.Errorf("hub: %w", err)
	}
	r.Header = header.Clone()
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header.Set("Accept-Encoding", "identity") // sizes must be those of the files
	answer, err := m.hub.client.Do(r)
	if err != nil {
		end(nil)
		return nil, unreachable(err)
	}
	alarm := time.AfterFunc(m.hub.patience, func() { end(errSilent) })
	answer.Body = &awakeBody{answer.Body, ctx, end, alarm, m.hub.patience}
	if answer.StatusCode == http.StatusOK || answer.StatusCode == http.StatusPartialContent {
		return answer, nil
	}
	answer.Body.Close()
	return nil, m.refused(at, answer)
}

// unreachable describes a connection error in one line, without the long query of a redirect's address.
func unreachable(err error) error {
	var outer *url.Error
	if errors.As(err, &outer) {
		host := outer.URL
		if at, bad := url.Parse(outer.URL); bad == nil {
			host = at.Host
		}
		err = fmt.Errorf("cannot reach %s: %w", host, outer.Err)
	}
	var name *net.DNSError
	if errors.Is(err, errRedirect) || errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, &name) && name.IsNotFound {
		return err
	}
	return temporary{error: err}
}

// refused returns the error for a response without success.
func (m *Model) refused(at string, answer *http.Response) error {
	switch code := answer.StatusCode; {
	case code == http.StatusTooManyRequests, code == http.StatusRequestTimeout, code >= 500:
		after := time.Duration(0)
		if seconds, err := time.ParseDuration(answer.Header.Get("Retry-After") + "s"); err == nil {
			after = seconds
		}
		return temporary{fmt.Errorf("hub: %s answers %s", answer.Request.URL.Host, status(answer)), after}
	case answer.Header.Get("X-Error-Code") == "GatedRepo":
		return m.bad("is gated: accept its conditions on its page, and set HF_TOKEN to your token")
	case code == http.StatusUnauthorized && m.hub.token:
		return m.bad("%s answers %s: there is no such model, or the token in HF_TOKEN gives no access to it", answer.Request.URL.Host, status(answer))
	case code == http.StatusUnauthorized:
		return m.bad("%s answers %s: there is no such model, or it needs a token in HF_TOKEN", answer.Request.URL.Host, status(answer))
	case code == http.StatusForbidden:
		return m.bad("%s answers %s: want a token in HF_TOKEN that gives access to it", answer.Request.URL.Host, status(answer))
	case answer.Header.Get("X-Error-Code") == "RevisionNotFound":
		return m.bad("has no such revision")
	case code == http.StatusNotFound:
		return m.bad("%s answers %s: there is no such model or revision", answer.Request.URL.Host, status(answer))
	}
	return fmt.Errorf("hub: %s answers %s", at, status(answer))
}

// status returns the code of a response with its standard text. Text from the server is not printed to the terminal.
func status(answer *http.Response) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", answer.StatusCode, http.StatusText(answer.StatusCode)))
}

// read returns the content of a URL, at most `most` bytes.
func (m *Model) read(ctx context.Context, at string, most int64) (data []byte, err error) {
	err = m.hub.persistently(ctx, func() (bool, error) {
		answer, err := m.get(ctx, at, nil)
		if err != nil {
			return false, err
		}
		defer answer.Body.Close()
		data, err = io.ReadAll(io.LimitReader(answer.Body, most+1))
		switch {
		case err != nil:
			return false, unreachable(&url.Error{Op: "Get", URL: at, Err: err})
		case int64(len(data)) > most:
			return false, m.bad("%s is longer than %d bytes", at, most)
		}
		return true, nil
	})
	return data, err
}

// errSilent says that a connection was closed because no data came.
var errSilent = errors.New("no data for a minute")

// awakeBody is the body of a response. It ends with an error if no data come for a while.
type awakeBody struct {
	io.ReadCloser
	ctx      context.Context
	end      context.CancelCauseFunc
	alarm    *time.Timer
	patience time.Duration
}

// Read reads from the body and resets the timer.
func (b *awakeBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.alarm.Reset(b.patience)
	if err != nil && errors.Is(context.Cause(b.ctx), errSilent) {
		err = errSilent
	}
	return n, err
}

// Close closes the body.
func (b *awakeBody) Close() error {
	b.alarm.Stop()
	b.end(nil)
	return b.ReadCloser.Close()
}
