package view

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attn-go/attn/heads"
)

// pipes are connections inside the process. In a bubble of synctest their time
// limits take no real time.
type pipes struct {
	arriving chan net.Conn
	closed   chan struct{}
	close    func()
}

func newPipes() *pipes {
	p := &pipes{arriving: make(chan net.Conn), closed: make(chan struct{})}
	p.close = sync.OnceFunc(func() { close(p.closed) })
	return p
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.arriving:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error { p.close(); return nil }

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080} }

func (p *pipes) dial() net.Conn {
	mine, theirs := net.Pipe()
	p.arriving <- theirs
	return mine
}

// overPipes serves in a bubble, where time advances when all goroutines wait.
func overPipes(t *testing.T, o Options, use func(t *testing.T, s *Server, p *pipes)) {
	synctest.Test(t, func(t *testing.T) {
		s, p := New(o), newPipes()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.Serve(ctx, p) }()
		use(t, s, p)
		cancel()
		start := time.Now()
		if err := <-ended; !errors.Is(err, context.Canceled) || time.Since(start) > 2*time.Second {
			t.Errorf("it ends with %v after %v", err, time.Since(start))
		}
		time.Sleep(2 * time.Hour) // time for all goroutines to end
	})
}

// request returns a request as a browser on the page sends it.
func request(s *Server, method, path, body string) string {
	text := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nCookie: attn-view-8080=%s\r\n", method, path, s.secret)
	if method == "POST" {
		text += "Origin: http://127.0.0.1:8080\r\nContent-Type: application/json\r\n"
	}
	return text + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)
}

// until returns how long the server keeps a connection open.
func until(c net.Conn) time.Duration {
	start := time.Now()
	one := make([]byte, 1)
	for {
		if _, err := c.Read(one); err != nil {
			return time.Since(start)
		}
	}
}

// large returns a record with one head of n × n weights.
func large(n int) *heads.Record {
	tokens := make([]string, n)
	for i := range tokens {
		tokens[i] = fmt.Sprint("t", i)
	}
	return &heads.Record{Layers: []heads.Layer{{Name: "e", Heads: 1, Queries: tokens, Keys: tokens, Weights: make([]float32, len(tokens)*len(tokens))}}}
}

func TestSlowClientsAreDropped(t *testing.T) {
	// After an answer, net/http keeps a connection open for up to this time, depending on its release.
	const lingers = time.Second
	overPipes(t, Options{Records: []*heads.Record{large(331)}}, func(t *testing.T, s *Server, p *pipes) {
		whole := request(s, "GET", "/api/start", "")
		post := request(s, "POST", "/api/record", `{"source":"x"}`)
		for _, c := range []struct {
			name, sends string
			most        time.Duration
		}{
			{"nothing is sent", "", 10 * time.Second},
			{"half a line is sent", "GET / HT", 10 * time.Second},
			{"the headers do not end", whole[:len(whole)-2], 10 * time.Second},
			{"half a text is sent", post[:len(post)-3], 30 * time.Second},
			{"there is no next request", whole, 30 * time.Second},
		} {
			conn := p.dial()
			if _, err := io.WriteString(conn, c.sends); err != nil {
				t.Fatal(err)
			}
			if held := until(conn); held > c.most+lingers {
				t.Errorf("%s: the connection is held for %v, want at most %v", c.name, held, c.most)
			}
		}
	})
}

func TestSlowReadersAreDropped(t *testing.T) {
	overPipes(t, Options{Records: []*heads.Record{large(331)}}, func(t *testing.T, s *Server, p *pipes) {
		var readers sync.WaitGroup
		for i := range 50 {
			path, conn := "/api/head?record=r0&layer=0&head=0", p.dial()
			if i%5 == 0 {
				path = "/page/heat.js"
			}
			readers.Go(func() {
				io.WriteString(conn, request(s, "GET", path, ""))
				if i%2 == 0 { // nothing is read
					time.Sleep(31 * time.Second)
				}
				start := time.Now()
				for one := make([]byte, 1); ; time.Sleep(time.Second) { // a byte a second
					if _, err := conn.Read(one); err != nil {
						break
					}
					if time.Since(start) > time.Minute {
						t.Errorf("reader %d is still answered after a minute", i)
						conn.Close()
					}
				}
			})
		}
		readers.Wait()
	})
}

// Time limits do not include the computation of an answer.
func TestLongQuestion(t *testing.T) {
	overPipes(t, Options{Recorder: recordFunc(func(ctx context.Context, _, _ string) (*heads.Record, error) {
		select {
		case <-time.After(10 * time.Minute):
			return large(331), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})}, func(t *testing.T, s *Server, p *pipes) {
		conn := p.dial()
		io.WriteString(conn, request(s, "POST", "/api/record", `{"source":"x"}`))
		start := time.Now()
		r, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || r.StatusCode != 200 || time.Since(start) != 10*time.Minute {
			t.Fatalf("after %v: %v, %v", time.Since(start), r, err)
		}
		if n, err := io.Copy(io.Discard, r.Body); err != nil || n != r.ContentLength {
			t.Errorf("%d bytes of %d, %v", n, r.ContentLength, err)
		}
	})
}

// A client that sends far too much before it reads gets an answer, not a broken pipe.
func TestLongBodyIsAnswered(t *testing.T) {
	overPipes(t, Options{Recorder: recordFunc(func(context.Context, string, string) (*heads.Record, error) { return sample(), nil })}, func(t *testing.T, s *Server, p *pipes) {
		conn := p.dial()
		if _, err := io.WriteString(conn, request(s, "POST", "/api/record", `{"source":"`+strings.Repeat("x", 10<<20)+`"}`)); err != nil {
			t.Fatal(err)
		}
		r, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(r.Body); err != nil || r.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(string(text), "too long") {
			t.Errorf("status %d, %s, %v", r.StatusCode, text, err)
		}
	})
}

// A model uses all processors, so it runs one request after the other and skips
// cancelled ones.
func TestOneQuestionAtATime(t *testing.T) {
	var running int
	var asked []string
	overPipes(t, Options{Recorder: recordFunc(func(ctx context.Context, source, _ string) (*heads.Record, error) {
		running++
		defer func() { running-- }()
		if running > 1 {
			t.Error("two questions at a time")
		}
		asked = append(asked, source)
		time.Sleep(time.Minute)
		return sample(), nil
	})}, func(t *testing.T, s *Server, p *pipes) {
		var all sync.WaitGroup
		for i := range 5 {
			conn := p.dial()
			io.WriteString(conn, request(s, "POST", "/api/record", fmt.Sprintf(`{"source":"text %d"}`, i)))
			synctest.Wait() // so that the requests arrive in this order
			if i == 3 {
				conn.Close()
				synctest.Wait()
				continue
			}
			all.Go(func() {
				defer conn.Close()
				if r, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || r.StatusCode != 200 {
					t.Errorf("text %d: %v, %v", i, r, err)
				}
			})
		}
		all.Wait()
	})
	slices.Sort(asked)
	if got := fmt.Sprintf("%q", asked); got != `["text 0" "text 1" "text 2" "text 4"]` {
		t.Errorf("asked %s", got)
	}
}

// An open connection does not prevent the server from ending.
func TestServeEnds(t *testing.T) {
	overPipes(t, Options{Recorder: recordFunc(func(ctx context.Context, _, _ string) (*heads.Record, error) {
		time.Sleep(time.Hour) // it ignores the context
		return nil, ctx.Err()
	})}, func(t *testing.T, s *Server, p *pipes) {
		idle := p.dial()
		io.WriteString(idle, request(s, "GET", "/api/start", ""))
		if r, err := http.ReadResponse(bufio.NewReader(idle), nil); err != nil || r.StatusCode != 200 {
			t.Error(r, err)
		}
		io.WriteString(p.dial(), request(s, "POST", "/api/record", `{"source":"x"}`))
		synctest.Wait()
	})
}
