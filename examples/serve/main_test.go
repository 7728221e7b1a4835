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
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
	"github.com/attn-go/attn/tokenizer"
)

const testdata = "../../models/testdata/"
const model = testdata + "sentence_mean"

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
func post(ctx context.Context, address, path, body string) (int, string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address+path, strings.NewReader(body))
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
	h, err := open(model, "", models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
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
			status, answer, err := post(t.Context(), server.URL, "/embed", string(body))
			var got [][]float32
			if err = errors.Join(err, json.Unmarshal([]byte(answer), &got)); err != nil || status != http.StatusOK || !slices.Equal(slices.Concat(got...), want.Data()) {
				t.Errorf("%d texts: status %d, %v, or other vectors than those of Embed", len(texts), status, err)
			}
		})
	}
	clients.Wait()
	if a, err := http.Get(server.URL + "/embed"); err != nil || a.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET: %v, %v", a, err)
	}
	if a, err := http.Get(server.URL + "/healthz"); err != nil || a.StatusCode != http.StatusOK {
		t.Errorf("GET /healthz: %v, %v", a, err)
	}
}

// ranker returns the directory of a cross-encoder with a tokenizer.
func ranker(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	err := os.CopyFS(dir, os.DirFS(testdata+"bert_rank"))
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json"} {
		data, failed := os.ReadFile(filepath.Join(model, name))
		err = errors.Join(err, failed, os.WriteFile(filepath.Join(dir, name), data, 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestRerank(t *testing.T) {
	dir := ranker(t)
	h, err := open(model, dir, models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	defer server.Close()
	m, err := models.Load(dir, models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := models.NewClassifier(m)
	if err != nil {
		t.Fatal(err)
	}
	var want []float32
	for _, text := range []string{"the cat sat.", "a dog runs."} {
		x, _, err := c.Encode(t.Context(), "who?", text)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, c.Logits(nil, models.BatchOf(x)).Data()...)
	}
	status, answer, err := post(t.Context(), server.URL, "/rerank", `{"texts": ["the cat sat.", "a dog runs."], "query": "who?"}`)
	var got []float32
	if err = errors.Join(err, json.Unmarshal([]byte(answer), &got)); err != nil || status != http.StatusOK || !slices.Equal(got, want) {
		t.Errorf("status %d, %v, scores %v, want %v", status, err, got, want)
	}
	if _, err := open(model, testdata+"bert_text", models.Options{}); err == nil || !strings.HasSuffix(err.Error(), " labels, want 1") {
		t.Errorf("error %v of a classifier with several labels", err)
	}
}

// A request that is wrong gets an error that says what is wrong, as JSON.
func TestRefused(t *testing.T) {
	h, err := open(model, ranker(t), models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	defer server.Close()
	for _, c := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"/embed", "", 400, "unexpected end of JSON input"},
		{"/embed", `"a text"`, 400, "json: cannot unmarshal string into Go value of type []*string"},
		{"/embed", `["a"] more`, 400, "invalid character 'm' after top-level value"},
		{"/embed", "[\"a\xff\"]", 400, "the body is invalid UTF-8"},
		{"/embed", `[]`, 400, "0 texts, want 1 to 256"},
		{"/embed", "[" + strings.Repeat(`"",`, mostTexts) + `""]`, 400, "257 texts, want 1 to 256"},
		{"/embed", `["` + strings.Repeat("a", mostBytes) + `"]`, 413, "http: request body too large"},
		{"/embed", `["a", null]`, 400, "text 1 is null, want a string"},
		{"/embed", `["a", "\ud83d"]`, 400, `\ud83d is half of a surrogate pair, want both halves`},
		{"/embed", `["\uDE00\ud83d"]`, 400, `\uDE00 is half of a surrogate pair, want both halves`},
		{"/embed", `["\\\ud83d"]`, 400, `\ud83d is half of a surrogate pair, want both halves`},
		{"/embed", `["\ud83d\ud83d\ude00"]`, 400, `\ud83d is half of a surrogate pair, want both halves`},
		{"/rerank", `[]`, 400, "json: cannot unmarshal array into Go value of type map[string]json.RawMessage"},
		{"/rerank", `null`, 400, "no query, want a string"},
		{"/rerank", `{"query": null, "texts": ["a"]}`, 400, "no query, want a string"},
		{"/rerank", `{"query": 3, "texts": ["a"]}`, 400, `key "query": json: cannot unmarshal number into Go value of type string`},
		{"/rerank", `{"query": "a", "texts": ["a"], "query": "b"}`, 400, `key "query": is there twice`},
		{"/rerank", `{"query": "a", "texts": ["a"], "texts": []}`, 400, `key "texts": is there twice`},
		{"/rerank", `{"query": "a", "Texts": ["a"]}`, 400, `key "Texts": is unknown, want query and texts`},
		{"/rerank", `{"query": "a"}`, 400, "0 texts, want 1 to 256"},
		{"/rerank", `{"query": "\udc00", "texts": [""]}`, 400, `\udc00 is half of a surrogate pair, want both halves`},
	} {
		status, answer, err := post(t.Context(), server.URL, c.path, c.body)
		var got struct{ Error string }
		if err = errors.Join(err, json.Unmarshal([]byte(answer), &got)); err != nil || status != c.status || got.Error != c.want {
			t.Errorf("%s %.40s: status %d, %q, %v, want %d, %q", c.path, c.body, status, answer, err, c.status, c.want)
		}
	}
	// What looks like a half and is none.
	for _, body := range []string{`["\ud83d\uDE00"]`, `["\\ud83d"]`, `["\ufffd", "\ufffd"]`} {
		if status, answer, err := post(t.Context(), server.URL, "/embed", body); err != nil || status != http.StatusOK {
			t.Errorf("%s: status %d, %q, %v", body, status, answer, err)
		}
	}
}

// Requests that arrive while the model runs form one batch. A client that leaves does not disturb the others, and the
// model stops when all of its clients have left.
func TestBatches(t *testing.T) {
	e, gated, g := load(t)
	b := embedding(gated)
	first, leave := context.WithCancel(t.Context())
	go func() { _, _ = b.run(first, [][]string{{"who?"}}) }()
	<-g.started
	var clients sync.WaitGroup
	texts := []string{"the cat", "who?", "a dog runs."}
	for _, text := range texts {
		clients.Go(func() {
			want, _ := e.Embed(t.Context(), text)
			if got, err := b.run(t.Context(), [][]string{{text}}); err != nil || !slices.Equal(slices.Concat(got...), want.Data()) {
				t.Errorf("%s: %v, or another vector than that of Embed", text, err)
			}
		})
	}
	away, gone := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := b.run(away, [][]string{{"mat"}})
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

// A client that left while its request was the first to wait gets no run of the model.
func TestFirstHasLeft(t *testing.T) {
	_, gated, g := load(t)
	b := embedding(gated)
	running := make(chan error)
	go func() {
		_, err := b.run(t.Context(), [][]string{{"who?"}})
		running <- err
	}()
	<-g.started
	away, gone := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := b.run(away, [][]string{{"mat"}})
		left <- err
	}()
	for len(b.waiting) == 0 {
		runtime.Gosched()
	}
	gone()
	<-left
	close(g.open)
	if err := <-running; err != nil {
		t.Fatal(err)
	}
	if _, err := b.run(t.Context(), [][]string{{"the cat"}}); err != nil {
		t.Fatal(err)
	}
	if n := g.runs.Load(); n != 2 || b.tokens.Load() != 0 {
		t.Errorf("%d runs of the model, want 2: none for the client that has left; %d tokens wait", n, b.tokens.Load())
	}
}

// Beyond the limits of requests and of tokens that wait, a client gets status 503 at once. A request that waits
// alone may be larger.
func TestBusy(t *testing.T) {
	e, _, _ := load(t)
	b := &batcher{mostTokens: e.MostTokens, encode: func(ctx context.Context, texts ...string) (*tokenizer.Encoding, bool, error) {
		return e.Encode(ctx, texts[0])
	}, waiting: make(chan request, 3)} // without loop
	server := httptest.NewServer(handleEmbed(b))
	defer server.Close()
	busy := func(what string) {
		t.Helper()
		a, err := http.Post(server.URL, "application/json", strings.NewReader(`["who?"]`))
		if err != nil || a.StatusCode != http.StatusServiceUnavailable || a.Header.Get("Retry-After") != "1" {
			t.Errorf("%s: %v, %v", what, a, err)
		}
	}
	ctx, leave := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	wait := func(inputs ...[]string) {
		waiting := len(b.waiting)
		clients.Go(func() {
			if _, err := b.run(ctx, inputs); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		for len(b.waiting) == waiting {
			runtime.Gosched()
		}
	}
	b.mostTokens = mostTokens + 1
	wait([]string{strings.Repeat("a ", mostTokens)})
	busy("tokens")
	if n := b.tokens.Load(); n != mostTokens+1 {
		t.Errorf("%d tokens wait, want %d", n, mostTokens+1)
	}
	b.take(nil, models.Batch{}, <-b.waiting)
	for range cap(b.waiting) {
		wait([]string{"who?"})
	}
	busy("requests")
	if n := b.tokens.Load(); n != 3*int64(len("who?")+3) {
		t.Errorf("%d tokens wait, want those of three texts", n)
	}
	leave()
	clients.Wait()
}

// Without a directory, the program says how it is used.
func TestUsage(t *testing.T) {
	for _, args := range [][]string{{}, {model, model}} {
		program := exec.Command(os.Args[0], args...)
		program.Env = append(os.Environ(), "SERVE=1")
		out, err := program.CombinedOutput()
		if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.HasPrefix(string(out), "usage: serve [flags] DIR\n") {
			t.Errorf("%q: %v, %s", args, err, out)
		}
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
	for _, file := range []string{"main.go", "request.go", "batch.go"} {
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
