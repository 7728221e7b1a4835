package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Limits of a request, and of all requests together.
const (
	mostBytes  = 4 << 20   // of a body
	mostTexts  = 2048      // as in OpenAI's API
	mostMemory = 256 << 20 // bytes of all bodies and answers
	perByte    = 4         // bytes of memory for a byte of a body: the body, the decoder's part of it, the texts
)

// kind is a kind of errors, with its status and name in both forms.
type kind struct {
	status       int
	name         string // OpenAI
	code         any    // OpenAI: a string or nil
	teiStatus    int
	teiErrorType string
}

var (
	invalid  = &kind{400, "invalid_request_error", nil, 400, "validation"}
	noTokens = &kind{400, "invalid_request_error", nil, 422, "tokenizer"} // a text that the tokenizer rejects
	noPath   = &kind{404, "invalid_request_error", nil, 404, "validation"}
	noModel  = &kind{404, "invalid_request_error", "model_not_found", 404, "validation"}
	noMethod = &kind{405, "invalid_request_error", nil, 405, "validation"}
	tooLarge = &kind{413, "invalid_request_error", nil, 413, "validation"}
	busy     = &kind{429, "rate_limit_error", "rate_limit_exceeded", 429, "overloaded"}
	failed   = &kind{500, "server_error", nil, 424, "backend"}
)

// problem is an error with its kind, the key of the request that it concerns or nil, and the seconds after which a client
// may try again.
type problem struct {
	*kind
	key   any
	err   error
	retry int
}

func (p *problem) Error() string { return p.err.Error() }
func (p *problem) Unwrap() error { return p.err }

func problemf(k *kind, key any, format string, args ...any) error {
	return &problem{k, key, fmt.Errorf(format, args...), 1}
}

var errBusy = problemf(busy, nil, "too many requests are waiting, try again later")

// answer returns an error in the form of a path: below /v1/ that of OpenAI's API, otherwise that of
// text-embeddings-inference.
func (p *problem) answer(path string) (status int, answer any) {
	if !strings.HasPrefix(path, "/v1/") {
		return p.teiStatus, map[string]any{"error": p.Error(), "error_type": p.teiErrorType}
	}
	return p.status, map[string]any{"error": map[string]any{"message": p.Error(), "type": p.name, "param": p.key, "code": p.code}}
}

// budget limits what all requests use together. A claim is the part of one of them.
type budget struct {
	most int64
	used atomic.Int64
}

type claim struct {
	of   *budget
	used int64
}

// grow adds n to a claim, or nothing: if others use too much of the budget, the error is errBusy. A negative n succeeds.
func (c *claim) grow(n int64, what string) error {
	all := c.of.used.Add(n)
	c.used += n
	if n <= 0 || all <= c.of.most {
		return nil
	}
	c.of.used.Add(-n)
	c.used -= n
	if c.used+n > c.of.most {
		return problemf(tooLarge, nil, "the request takes more than %d %s", c.of.most, what)
	}
	return errBusy
}

func (c *claim) release() {
	c.of.used.Add(-c.used)
	c.used = 0
}

// mux calls handlers within a budget of memory, and writes their results and errors as JSON.
type mux struct {
	http.ServeMux
	memory   budget
	patience time.Duration // with a body
}

// call is a request, and its claim of memory.
type call struct {
	*http.Request
	w        http.ResponseWriter
	memory   claim
	patience time.Duration
}

func newMux() *mux {
	m := &mux{memory: budget{most: mostMemory}, patience: 10 * time.Second}
	m.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		reply(w, r, nil, problemf(noPath, nil, "%s does not exist", r.URL.Path))
	})
	return m
}

// handle registers a handler.
func (m *mux) handle(method, path string, do func(*call) (any, error)) {
	m.HandleFunc(method+" "+path, func(w http.ResponseWriter, r *http.Request) {
		c := &call{r, w, claim{of: &m.memory}, m.patience}
		defer c.memory.release() // after the answer
		result, err := do(c)
		reply(w, r, result, err)
	})
	m.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", method)
		reply(w, r, nil, problemf(noMethod, nil, "%s of %s, want %s", r.Method, r.URL.Path, method))
	})
}

// body reads the body of a request, if a batcher has room for it and there is memory.
func (c *call) body(b *batcher) ([]byte, error) {
	control := http.NewResponseController(c.w)
	_ = control.SetReadDeadline(time.Now().Add(c.patience))
	n := c.ContentLength
	if n < 0 || n > mostBytes {
		n = mostBytes
	}
	limited := http.MaxBytesReader(c.w, c.Body, mostBytes)
	err := b.room(n)
	if err == nil {
		err = c.memory.grow(perByte*n, "bytes of memory")
	}
	if err != nil {
		_, _ = io.Copy(io.Discard, limited) // many clients read an answer only after the body
		return nil, err
	}
	body := bytes.NewBuffer(make([]byte, 0, n+bytes.MinRead))
	_, err = body.ReadFrom(limited)
	if large := new(http.MaxBytesError); errors.As(err, &large) {
		return nil, problemf(tooLarge, nil, "the body has more than %d bytes", large.Limit)
	}
	if err != nil {
		return nil, problemf(invalid, nil, "the body: %w", err)
	}
	_ = control.SetReadDeadline(time.Time{}) // it would end the context of a request that waits
	return body.Bytes(), nil
}

// reply writes a result or an error.
func reply(w http.ResponseWriter, r *http.Request, result any, err error) {
	if errors.Is(err, context.Canceled) { // the client has left
		panic(http.ErrAbortHandler)
	}
	status := http.StatusOK
	data, invalid := json.Marshal(result)
	if err = errors.Join(err, invalid); err != nil {
		p := new(problem)
		if !errors.As(err, &p) { // among them NaN in a result
			log.Print(err)
			p = &problem{kind: failed, err: errors.New("the model failed")}
		}
		if p.kind == busy {
			w.Header().Set("Retry-After", strconv.Itoa(p.retry))
		}
		status, result = p.answer(r.URL.Path)
		data, _ = json.Marshal(result)
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if _, err := w.Write(data); err != nil {
		log.Print(err)
	}
}
