package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
)

const model = "../../models/testdata/sentence_mean"

// The test's program is also the service of TestShutdown.
func TestMain(m *testing.M) {
	if os.Getenv("SERVE") != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// gate is a network whose runs wait until the test opens it, or their context ends.
type gate struct {
	models.Network
	runs    atomic.Int64
	started chan struct{}
	open    chan struct{}
}

func (g *gate) Hidden(t *tensor.Tape, x models.Batch, r models.Run) *tensor.Tensor {
	g.runs.Add(1)
	g.started <- struct{}{}
	select {
	case <-g.open:
	case <-t.Context().Done():
	}
	return g.Network.Hidden(t, x, r)
}

// load returns an embedder, and another one behind a gate.
func load(t *testing.T) (plain, gated *models.Embedder, g *gate) {
	t.Helper()
	var all [2]*models.Embedder
	for i := range all {
		var err error
		if all[i], err = models.LoadEmbedder(model, models.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	g = &gate{Network: all[1].Model.Network, started: make(chan struct{}, 100), open: make(chan struct{})}
	all[1].Model.Network = g
	return all[0], all[1], g
}

// post sends a request, and returns the status and the body of the answer.
func post(ctx context.Context, address, body string) (int, string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address+"/embed", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	return a.StatusCode, string(text), err
}

func TestAnswers(t *testing.T) {
	e, _, _ := load(t)
	server := httptest.NewServer(handler(newBatcher(e)))
	defer server.Close()
	var clients sync.WaitGroup
	for i := range 20 {
		clients.Go(func() {
			texts := slices.Repeat([]string{"the cat sat.", "who?", ""}[i%3:], 1+i)
			want, err := e.Embed(t.Context(), texts...)
			if err != nil {
				t.Error(err)
				return
			}
			body, _ := json.Marshal(texts)
			status, answer, err := post(t.Context(), server.URL, string(body))
			var got [][]float32
			if err = errors.Join(err, json.Unmarshal([]byte(answer), &got)); err != nil || status != http.StatusOK || !slices.Equal(slices.Concat(got...), want.Data()) {
				t.Errorf("%d texts: status %d, %v, or other vectors than those of Embed", len(texts), status, err)
			}
		})
	}
	clients.Wait()
	for body, want := range map[string]string{
		"":            "unexpected end of JSON input",
		`"a text"`:    "json: cannot unmarshal string into Go value of type []string",
		`["a"] more`:  "invalid character 'm' after top-level value",
		"[\"a\xff\"]": "the body is invalid UTF-8",
		`[]`:          "0 texts, want 1 to 256",
		"[" + strings.Repeat(`"",`, mostTexts) + `""]`: "257 texts, want 1 to 256",
		`["` + strings.Repeat("a", mostBytes) + `"]`:   "http: request body too large",
	} {
		status, answer, err := post(t.Context(), server.URL, body)
		if err != nil || status != http.StatusBadRequest || answer != want+"\n" {
			t.Errorf("%.20s: status %d, %q, %v, want %q", body, status, answer, err, want)
		}
	}
	if a, err := http.Get(server.URL + "/embed"); err != nil || a.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET: %v, %v", a, err)
	}
}

// Requests that arrive while the model runs form one batch. A client that leaves does not disturb the others, and the
// model stops when all of its clients have left.
func TestBatches(t *testing.T) {
	e, gated, g := load(t)
	b := newBatcher(gated)
	first, leave := context.WithCancel(t.Context())
	go func() { _, _ = b.embed(first, []string{"who?"}) }()
	<-g.started
	var clients sync.WaitGroup
	texts := []string{"the cat", "who?", "a dog runs."}
	for _, text := range texts {
		clients.Go(func() {
			want, _ := e.Embed(t.Context(), text)
			if got, err := b.embed(t.Context(), []string{text}); err != nil || !slices.Equal(slices.Concat(got...), want.Data()) {
				t.Errorf("%s: %v, or another vector than that of Embed", text, err)
			}
		})
	}
	away, gone := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := b.embed(away, []string{"mat"})
		left <- err
	}()
	for len(b.waiting) < len(texts)+1 {
		runtime.Gosched()
	}
	gone()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v of a client that has left", err)
	}
	leave() // ends the run, because it has no other client
	<-g.started
	close(g.open)
	clients.Wait()
	if n := g.runs.Load(); n != 2 {
		t.Errorf("%d runs of the model, want one for the first client and one for the others", n)
	}
}

func TestBusy(t *testing.T) {
	e, _, _ := load(t)
	b := &batcher{e, make(chan request, 1)} // without run
	b.waiting <- request{}
	if _, err := b.embed(t.Context(), []string{"who?"}); !errors.Is(err, errBusy) {
		t.Errorf("error %v", err)
	}
	server := httptest.NewServer(handler(b))
	defer server.Close()
	if status, _, err := post(t.Context(), server.URL, `["who?"]`); err != nil || status != http.StatusServiceUnavailable {
		t.Errorf("status %d, %v", status, err)
	}
}

// A signal ends the program after the answers to accepted requests.
func TestShutdown(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("processes have no signals")
	}
	program := exec.Command(os.Args[0], "-address", "127.0.0.1:0", model)
	program.Env = append(os.Environ(), "SERVE=1")
	log, err := program.StderrPipe()
	if err = errors.Join(err, program.Start()); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(log).ReadString('\n')
	_, address, found := strings.Cut(strings.TrimSpace(line), "listening on ")
	if err != nil || !found {
		t.Fatalf("%q, %v", line, err)
	}
	host := strings.TrimPrefix(address, "http://")
	client, err := net.Dial("tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	body := `["who?", "the cat"]`
	fmt.Fprintf(client, "POST /embed HTTP/1.1\r\nHost: attn\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", len(body))
	answers := bufio.NewReader(client)
	if line, err := answers.ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") { // accepted
		t.Fatalf("%q, %v", line, err)
	}
	if err := program.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for other, err := net.Dial("tcp", host); err == nil; other, err = net.Dial("tcp", host) { // it listens no more
		_ = other.Close()
		runtime.Gosched()
	}
	if _, err := answers.ReadString('\n'); err != nil { // the empty line after 100 Continue
		t.Fatal(err)
	}
	fmt.Fprint(client, body)
	if a, err := http.ReadResponse(answers, nil); err != nil || a.StatusCode != http.StatusOK {
		t.Errorf("the answer to a request that was accepted before the signal: %v, %v", a, err)
	}
	ended := time.AfterFunc(time.Minute, func() { _ = program.Process.Kill() })
	defer ended.Stop()
	if err := program.Wait(); err != nil {
		t.Errorf("the program ends with %v", err)
	}
}

// docs/serve.md shows the program.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"main.go", "batch.go"} {
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		code = code[bytes.Index(code, []byte("package main")):]
		if !bytes.Contains(page, fmt.Appendf(nil, "```go\n%s```\n", code)) {
			t.Errorf("docs/serve.md does not show %s as it is", file)
		}
	}
}
