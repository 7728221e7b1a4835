package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
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
	"syscall"
	"testing"
	"time"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/tensor"
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

// serve starts the service with a cross-encoder.
func serve(t *testing.T, s settings) string {
	t.Helper()
	if s.rerank == "" {
		s.rerank = crossEncoder(t)
	}
	if s.tokens == 0 {
		s.tokens = 1 << 18
	}
	h, err := open(model, s)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

// list is an answer of /v1/embeddings.
type list struct {
	Object, Model string
	Data          []struct {
		Object    string
		Index     int
		Embedding json.RawMessage
	}
	Usage struct {
		Prompt int `json:"prompt_tokens"`
		Total  int `json:"total_tokens"`
	}
}

// embed posts a request, and returns the vectors and the number of tokens in the answer.
func embed(t *testing.T, address, body string) (vectors [][]float32, tokens int) {
	t.Helper()
	status, answer, err := post(t.Context(), address, "/v1/embeddings", body)
	var got list
	if err = errors.Join(err, json.Unmarshal([]byte(answer), &got)); err != nil || status != http.StatusOK ||
		got.Object != "list" || got.Model != "sentence_mean" || got.Usage.Prompt != got.Usage.Total {
		t.Errorf("%s: status %d, %v, %s", body, status, err, answer)
	}
	for i, d := range got.Data {
		var vector []float32
		if d.Embedding[0] == '"' {
			var data []byte
			err = json.Unmarshal(d.Embedding, &data)
			vector = make([]float32, len(data)/4)
			err = errors.Join(err, binary.Read(bytes.NewReader(data), binary.LittleEndian, vector))
		} else {
			err = json.Unmarshal(d.Embedding, &vector)
		}
		if err != nil || d.Object != "embedding" || d.Index != i {
			t.Errorf("%s: element %d of the answer: %v, %+v", body, i, err, d)
		}
		vectors = append(vectors, vector)
	}
	return vectors, got.Usage.Total
}

func TestAnswers(t *testing.T) {
	e, _, _ := load(t)
	address := serve(t, settings{})
	var clients sync.WaitGroup
	for i := range 20 {
		clients.Go(func() {
			texts := slices.Repeat([]string{"the cat sat.", "who?", ""}[i%3:], 1+i)
			want, err := e.Embed(t.Context(), texts...)
			if err != nil {
				t.Error(err)
				return
			}
			input, _ := json.Marshal(texts)
			if got, _ := embed(t, address, `{"input": `+string(input)+`}`); !slices.Equal(slices.Concat(got...), want.Data()) {
				t.Errorf("%d texts: other vectors than those of Embed", len(texts))
			}
		})
	}
	clients.Wait()
}

// Each kind of input, both formats, and the number of tokens.
func TestInputs(t *testing.T) {
	e, _, _ := load(t)
	address := serve(t, settings{lengths: []int{4}})
	ids := func(text string) []int {
		x, _, err := e.Encode(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		return x.IDs
	}
	cat, who := ids("the cat sat."), ids("who?")
	both, err := e.Embed(t.Context(), "the cat sat.", "who?")
	if err != nil {
		t.Fatal(err)
	}
	n := e.Width()
	first, short := both.Data()[:n], slices.Clone(both.Data()[:4])
	sum := 0.
	for _, x := range short {
		sum += float64(x) * float64(x)
	}
	for i := range short {
		short[i] /= float32(math.Sqrt(sum))
	}
	for _, c := range []struct {
		body   string
		want   []float32
		tokens int
	}{
		{`{"input": "the cat sat."}`, first, len(cat)},
		{`{"input": "the cat sat.", "model": "sentence_mean", "user": "me", "dimensions": null}`, first, len(cat)},
		{`{"input": ["the cat sat.", "who?"], "encoding_format": "float"}`, both.Data(), len(cat) + len(who)},
		{fmt.Sprintf(`{"input": %s, "encoding_format": "base64"}`, numbers(cat)), first, len(cat)},
		{fmt.Sprintf(`{"encoding_format": "base64", "input": [%s, %s]}`, numbers(cat), numbers(who)), both.Data(), len(cat) + len(who)},
		{fmt.Sprintf(`{"input": "the cat sat.", "dimensions": %d}`, n), first, len(cat)},
		{`{"input": "the cat sat.", "dimensions": 4}`, short, len(cat)},
		{`{"input": "the cat sat.", "dimensions": 4, "encoding_format": "base64"}`, short, len(cat)},
		{`{"input": "\ud83d\uDE00"}`, nil, 3},
		{`{"input": ["\\ud83d"]}`, nil, 4},
		{`{"input": ["\ufffd"]}`, nil, 2}, // a character that the tokenizer removes
	} {
		got, tokens := embed(t, address, c.body)
		flat := slices.Concat(got...)
		near := func(a, b float32) bool { return math.Abs(float64(a-b)) <= 1e-6 }
		if tokens != c.tokens || c.want != nil && !slices.EqualFunc(flat, c.want, near) {
			t.Errorf("%s: %d tokens, want %d, or other vectors: %v, want %v", c.body, tokens, c.tokens, flat, c.want)
		}
	}
}

func numbers(ids []int) string {
	text, _ := json.Marshal(ids)
	return string(text)
}

// Long texts are truncated only if the flag or the request says so.
func TestTruncation(t *testing.T) {
	const long = `"the cat sat on the mat the cat sat"`
	strict, loose := serve(t, settings{}), serve(t, settings{truncate: true})
	for _, c := range []struct {
		address, path, body string
		want                int
	}{
		{strict, "/v1/embeddings", `{"input": ` + long + `}`, 413},
		{loose, "/v1/embeddings", `{"input": ` + long + `}`, 200},
		{strict, "/rerank", `{"query": "who?", "texts": [` + long + `]}`, 413},
		{loose, "/rerank", `{"query": "who?", "texts": [` + long + `]}`, 200},
		{strict, "/rerank", `{"query": "who?", "truncate": true, "truncation_direction": "Right", "texts": [` + long + `]}`, 200},
		{loose, "/rerank", `{"query": "who?", "truncate": false, "texts": [` + long + `]}`, 413},
	} {
		if status, answer, err := post(t.Context(), c.address, c.path, c.body); err != nil || status != c.want {
			t.Errorf("%s %s: status %d, %v, %s, want %d", c.path, c.body, status, err, answer, c.want)
		}
	}
}

func TestModels(t *testing.T) {
	address := serve(t, settings{name: "team/small"})
	const want = `{"created":0,"id":"team/small","object":"model","owned_by":"attn"}`
	for path, want := range map[string]string{
		"/health": `"ok"`, "/v1/models": `{"data":[` + want + `],"object":"list"}`, "/v1/models/team/small": want,
		"/v1/models/other": `{"error":{"code":"model_not_found","message":"the model \"other\" does not exist, want team/small","param":"model","type":"invalid_request_error"}}`,
	} {
		a, err := http.Get(address + path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(a.Body)
		if a.Body.Close(); err != nil || string(got) != want || a.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %s, %v, want %s", path, got, err, want)
		}
	}
}

// crossEncoder returns the directory of a cross-encoder with a tokenizer.
func crossEncoder(t *testing.T) string {
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
	dir := crossEncoder(t)
	address := serve(t, settings{rerank: dir})
	m, err := models.Load(dir, models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := models.NewClassifier(m)
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{"the cat sat.", "a dog runs.", "who?", "a dog runs."}
	body, _ := json.Marshal(texts)
	for extra, sigmoid := range map[string]bool{"": true, `, "return_text": true, "raw_scores": false`: true, `, "raw_scores": true`: false} {
		status, answer, err := post(t.Context(), address, "/rerank", `{"texts": `+string(body)+`, "query": "who?"`+extra+`}`)
		var got []rank
		if err = errors.Join(err, json.Unmarshal([]byte(answer), &got)); err != nil || status != http.StatusOK || len(got) != len(texts) {
			t.Fatalf("status %d, %v, %s", status, err, answer)
		}
		for i, r := range got {
			x, _, err := c.Encode(t.Context(), "who?", texts[r.Index])
			if err != nil {
				t.Fatal(err)
			}
			want := float64(c.Logits(nil, models.BatchOf(x)).Data()[0])
			if sigmoid {
				want = 1 / (1 + math.Exp(-want))
			}
			switch before := got[max(i-1, 0)]; {
			case r.Score != want:
				t.Errorf("%s: text %d has %v, want %v", extra, r.Index, r.Score, want)
			case i > 0 && (before.Score < r.Score || before.Score == r.Score && before.Index >= r.Index):
				t.Errorf("%s: text %d with %v is before %d with %v", extra, before.Index, before.Score, r.Index, r.Score)
			case (r.Text != nil) != strings.Contains(extra, "return_text") || r.Text != nil && *r.Text != texts[r.Index]:
				t.Errorf("%s: text %d is %v", extra, r.Index, r.Text)
			}
		}
	}
	if _, err := open(model, settings{rerank: testdata + "bert_text"}); err == nil || !strings.HasSuffix(err.Error(), " labels, want 1") {
		t.Errorf("error %v of a classifier with several labels", err)
	}
	if _, err := open(model, settings{lengths: []int{99}}); err == nil || err.Error() != "-dimensions has 99, want 1 to 15" {
		t.Errorf("error %v of a length beyond that of the vectors", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "tokenizer_config.json"), []byte(`{"truncation_side": "left"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	address = serve(t, settings{rerank: dir})
	for side, want := range map[string]int{"Left": 200, "Right": 400} {
		status, answer, err := post(t.Context(), address, "/rerank", `{"query": "a", "texts": ["who?"], "truncation_direction": "`+side+`"}`)
		if err != nil || status != want {
			t.Errorf("%s: status %d, %v, %s", side, status, err, answer)
		}
	}
}

// A request that is wrong gets an error that says what is wrong, in the form of its API.
func TestRefused(t *testing.T) {
	address := serve(t, settings{tokens: 600})
	const openAI, tei, unknown = "/v1/embeddings", "/rerank", "is unknown, want dimensions, encoding_format, input, model, user"
	const other = "text 0: token ids of another model, want [2] before and [3] after those of the text"
	many := strings.Repeat(`"",`, mostTexts)
	for _, c := range []struct {
		path, body string
		status     int
		kind, key  string
		want       string
	}{
		{openAI, "", 400, "invalid_request_error", "", "the body is not JSON: unexpected end of JSON input"},
		{openAI, `["a"] more`, 400, "invalid_request_error", "", "the body is not JSON: invalid character 'm' after top-level value"},
		{openAI, `["a"]`, 400, "invalid_request_error", "", "the body is not an object"},
		{openAI, `null`, 400, "invalid_request_error", "", "the body is not an object"},
		{openAI, "{\"input\": \"a\xff\"}", 400, "invalid_request_error", "", "the body is invalid UTF-8"},
		{openAI, `{"input": "\ud83d"}`, 400, "invalid_request_error", "", `\ud83d is half of a surrogate pair, want both halves`},
		{openAI, `{"input": ["\uDE00\ud83d"]}`, 400, "invalid_request_error", "", `\uDE00 is half of a surrogate pair, want both halves`},
		{openAI, `{"input": ["\\\ud83d"]}`, 400, "invalid_request_error", "", `\ud83d is half of a surrogate pair, want both halves`},
		{openAI, `{"input": ["\ud83d\ud83d\ude00"]}`, 400, "invalid_request_error", "", `\ud83d is half of a surrogate pair, want both halves`},
		{openAI, `{"input": "` + strings.Repeat("a", mostBytes) + `"}`, 413, "invalid_request_error", "", "the body has more than 4194304 bytes"},
		{openAI, `{}`, 400, "invalid_request_error", "input", `no "input"`},
		{openAI, `{"input": null}`, 400, "invalid_request_error", "input", `"input" is not a string, a list of strings, a list of token ids, or a list of such lists`},
		{openAI, `{"input": {"a": "b"}}`, 400, "invalid_request_error", "input", `"input" is not a string, a list of strings, a list of token ids, or a list of such lists`},
		{openAI, `{"input": ["a", [2, 3]]}`, 400, "invalid_request_error", "input", `"input" is not a string, a list of strings, a list of token ids, or a list of such lists`},
		{openAI, `{"input": ["a", 3]}`, 400, "invalid_request_error", "input", `"input" is not a string, a list of strings, a list of token ids, or a list of such lists`},
		{openAI, `{"input": ["a", null]}`, 400, "invalid_request_error", "input", `"input" is not a string, a list of strings, a list of token ids, or a list of such lists`},
		{openAI, `{"input": [[2, "a"]]}`, 400, "invalid_request_error", "input", `"input" has a where a token id should be`},
		{openAI, `{"input": [2, 1.5]}`, 400, "invalid_request_error", "input", `"input" has 1.5 where a token id should be`},
		{openAI, `{"input": []}`, 400, "invalid_request_error", "input", `"input" is empty, want 1 text or more`},
		{openAI, `{"input": [[]]}`, 400, "invalid_request_error", "input", other},
		{openAI, `{"input": [7, 8, 9]}`, 400, "invalid_request_error", "input", other},
		{openAI, `{"input": [2, 27, 3]}`, 400, "invalid_request_error", "input", "text 0: token id 27, want 0 to 26"},
		{openAI, `{"input": [2, 7, 7, 7, 7, 7, 7, 3]}`, 413, "invalid_request_error", "input", "text 0: 8 tokens, want at most 7"},
		{openAI, `{"input": ["a", "a a a a a a"]}`, 413, "invalid_request_error", "", "text 1 has more tokens than the 7 of the model"},
		{openAI, `{"input": [` + many + `""]}`, 413, "invalid_request_error", "input", `"input" has more than 2048 texts`},
		{openAI, `{"input": [` + many[:3*301-1] + `]}`, 413, "invalid_request_error", "", `the request takes more than 600 tokens`},
		{openAI, `{"input": "a", "input": "b"}`, 400, "invalid_request_error", "input", `"input" is there twice`},
		{openAI, `{"Input": "a"}`, 400, "invalid_request_error", "Input", `"Input" ` + unknown},
		{openAI, `{"input": "a", "input_type": "query"}`, 400, "invalid_request_error", "input_type", `"input_type" ` + unknown},
		{openAI, `{"input": "a", "user": 3}`, 400, "invalid_request_error", "user", `"user" is a number, want a string`},
		{openAI, `{"input": "a", "encoding_format": "int8"}`, 400, "invalid_request_error", "encoding_format", `encoding_format is "int8", want float or base64`},
		{openAI, `{"input": "a", "dimensions": 4}`, 400, "invalid_request_error", "dimensions",
			`"dimensions" is 4, want 15: config.json does not say that the model has Matryoshka representations`},
		{openAI, `{"input": "a", "model": "text-embedding-3-small"}`, 404, "invalid_request_error", "model",
			`the model "text-embedding-3-small" does not exist, want sentence_mean`},
		{"/v1/chat/completions", `{}`, 404, "invalid_request_error", "", "/v1/chat/completions does not exist"},
		{"/v1/models", `{}`, 405, "invalid_request_error", "", "POST of /v1/models, want GET"},
		{"/embed", `{}`, 404, "validation", "", "/embed does not exist"},
		{"/health", `{}`, 405, "validation", "", "POST of /health, want GET"},
		{tei, `[]`, 400, "validation", "", "the body is not an object"},
		{tei, `{"texts": ["a"]}`, 400, "validation", "", `no "query"`},
		{tei, `{"query": null, "texts": ["a"]}`, 400, "validation", "", `no "query"`},
		{tei, `{"query": 3, "texts": ["a"]}`, 400, "validation", "", `"query" is a number, want a string`},
		{tei, `{"query": "a"}`, 400, "validation", "", `no "texts"`},
		{tei, `{"query": "a", "texts": "a"}`, 400, "validation", "", `"texts" is not a list of strings`},
		{tei, `{"query": "a", "texts": [3]}`, 400, "validation", "", `"texts" is not a list of strings`},
		{tei, `{"query": "a", "texts": []}`, 400, "validation", "", `"texts" is empty, want 1 text or more`},
		{tei, `{"query": "a", "texts": ["a"], "raw_scores": "yes"}`, 400, "validation", "", `"raw_scores" is a string, want a bool`},
		{tei, `{"query": "a", "texts": ["a"], "top_n": 3}`, 400, "validation", "",
			`"top_n" is unknown, want query, raw_scores, return_text, texts, truncate, truncation_direction`},
		{tei, `{"query": "a", "texts": ["a"], "truncation_direction": "Left"}`, 400, "validation", "",
			`truncation_direction is "Left", want Right, that of the model's tokenizer`},
		{tei, `{"query": "\udc00", "texts": [""]}`, 400, "validation", "", `\udc00 is half of a surrogate pair, want both halves`},
	} {
		status, answer, err := post(t.Context(), address, c.path, c.body)
		var got struct {
			Error any
			Type  string `json:"error_type"`
		}
		err = errors.Join(err, json.Unmarshal([]byte(answer), &got))
		message, _ := got.Error.(string)
		if object, ok := got.Error.(map[string]any); ok {
			message, got.Type = object["message"].(string), object["type"].(string)
			if key, _ := object["param"].(string); key != c.key {
				t.Errorf("%s %.60s: param %q, want %q", c.path, c.body, key, c.key)
			}
		}
		if err != nil || status != c.status || message != c.want || got.Type != c.kind {
			t.Errorf("%s %.60s: status %d, %s, %v, want %d, %s, %s", c.path, c.body, status, answer, err, c.status, c.kind, c.want)
		}
	}
}

// Results that are no numbers, and errors of the model, are errors in both forms.
func TestFailed(t *testing.T) {
	e, _, _ := load(t)
	e.Layers = append(e.Layers, broken{})
	log.SetOutput(io.Discard)
	defer log.SetOutput(os.Stderr)
	b := newBatcher(100, e.MostTokens, encodeFor(e), e.Forward)
	for path, want := range map[string]int{"/v1/x": 500, "/x": 424} {
		m := newMux()
		m.handle("POST", path, (&embeddings{e: e, batches: b}).create)
		w := httptest.NewRecorder()
		m.ServeHTTP(w, httptest.NewRequest("POST", path, strings.NewReader(`{"input": "who?", "encoding_format": "base64"}`)))
		if w.Code != want || !strings.Contains(w.Body.String(), "the model failed") {
			t.Errorf("%s: status %d, %s, want %d", path, w.Code, w.Body, want)
		}
	}
}

type broken struct{}

func (broken) Forward(_ *tensor.Tape, x *tensor.Tensor) *tensor.Tensor {
	x.Data()[0] = float32(math.NaN())
	return x
}

// run runs texts, one after the other in a request.
func (b *batcher) texts(ctx context.Context, list ...string) ([][]float32, error) {
	var all inputs
	for _, text := range list {
		all = append(all, input{texts: []string{text}})
	}
	r, err := http.NewRequestWithContext(ctx, "POST", "/", nil)
	if err != nil {
		return nil, err
	}
	rows, _, err := b.run(&call{Request: r, memory: claim{of: &budget{most: mostMemory}}}, all, 1, true)
	return rows, err
}

// Requests that arrive while the model runs form one batch. A client that leaves does not disturb the others, and the
// model stops when all of its clients have left.
func TestBatches(t *testing.T) {
	e, gated, g := load(t)
	b := newBatcher(1<<18, gated.MostTokens, encodeFor(gated), gated.Forward)
	first, leave := context.WithCancel(t.Context())
	go func() { _, _ = b.texts(first, "who?") }()
	<-g.started
	var clients sync.WaitGroup
	texts := []string{"the cat", "who?", "a dog runs."}
	for _, text := range texts {
		clients.Go(func() {
			want, _ := e.Embed(t.Context(), text)
			if got, err := b.texts(t.Context(), text); err != nil || !slices.Equal(slices.Concat(got...), want.Data()) {
				t.Errorf("%s: %v, or another vector than that of Embed", text, err)
			}
		})
	}
	away, gone := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := b.texts(away, "mat")
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
	b := newBatcher(1<<18, gated.MostTokens, encodeFor(gated), gated.Forward)
	running := make(chan error)
	go func() {
		_, err := b.texts(t.Context(), "who?")
		running <- err
	}()
	<-g.started
	away, gone := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := b.texts(away, "mat")
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
	if _, err := b.texts(t.Context(), "the cat"); err != nil {
		t.Fatal(err)
	}
	if n := g.runs.Load(); n != 2 || b.tokens.used.Load() != 0 {
		t.Errorf("%d runs of the model, want 2: none for the client that has left; %d tokens wait", n, b.tokens.used.Load())
	}
}

// Beyond the limits of requests, of tokens that wait and of memory, a client gets status 429 at once.
func TestBusy(t *testing.T) {
	e, _, _ := load(t)
	e.MostTokens = 1000 // the model runs on none of them
	b := &batcher{
		longest: 1000, encode: func(ctx context.Context, x input) (models.Batch, bool, error) {
			return models.Batch{IDs: [][]int{make([]int, len(x.texts[0]))}, Types: [][]int{nil}}, false, nil
		}, tokens: budget{most: 100}, encoders: make(chan struct{}, 1), waiting: make(chan *request, 3)} // without loop
	m := newMux()
	m.handle("POST", "/v1/embeddings", (&embeddings{e: e, batches: b}).create)
	server := httptest.NewServer(m)
	defer server.Close()
	busy := func(what, retry string) {
		t.Helper()
		a, err := http.Post(server.URL+"/v1/embeddings", "application/json", strings.NewReader(`{"input": "who?"}`))
		if err != nil || a.StatusCode != http.StatusTooManyRequests || a.Header.Get("Retry-After") != retry {
			t.Errorf("%s: %v, %v", what, a, err)
		}
	}
	ctx, leave := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	wait := func(text string) {
		waiting := len(b.waiting)
		clients.Go(func() {
			if _, err := b.texts(ctx, text); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		for len(b.waiting) == waiting {
			runtime.Gosched()
		}
	}
	wait(strings.Repeat("a", 98))
	busy("tokens", "1")
	b.speed.Store(10)
	busy("tokens", "10")
	b.speed.Store(1)
	busy("tokens", "60")
	b.tokens.used.Add(2)
	a, err := http.Post(server.URL+"/v1/embeddings", "application/json", strings.NewReader(`no JSON`))
	if b.tokens.used.Add(-2); err != nil || a.StatusCode != http.StatusBadRequest {
		t.Errorf("a short body: %v, %v", a, err)
	}
	a, err = http.Post(server.URL+"/v1/embeddings", "application/json", strings.NewReader(strings.Repeat("no JSON", 10)))
	if err != nil || a.StatusCode != http.StatusTooManyRequests {
		t.Errorf("a body that probably has no room is parsed: %v, %v", a, err)
	}
	if n := b.tokens.used.Load(); n != 98 {
		t.Errorf("%d tokens wait, want 98", n)
	}
	b.take(nil, models.Batch{}, <-b.waiting)
	for range cap(b.waiting) {
		wait("who?")
	}
	busy("requests", "13")
	if n := b.tokens.used.Load(); n != 3*int64(len("who?")) {
		t.Errorf("%d tokens wait, want those of three texts", n)
	}
	leave()
	clients.Wait()
	for len(b.waiting) > 0 {
		b.take(nil, models.Batch{}, <-b.waiting)
	}
	m.memory.used.Store(mostMemory - perByte*20) // room for the body
	busy("the memory of answers", "1")
	m.memory.used.Store(mostMemory - perByte*10)
	busy("the memory of bodies", "1")
	if n := m.memory.used.Load(); n != mostMemory-perByte*10 || b.tokens.used.Load() != 0 {
		t.Errorf("%d bytes and %d tokens are claimed after the answers", n, b.tokens.used.Load())
	}
}

// A request may wait longer than the time in which its body has to arrive.
func TestSlowBody(t *testing.T) {
	m := newMux()
	m.patience = 20 * time.Millisecond
	m.handle("POST", "/x", func(c *call) (any, error) {
		if _, err := c.body(new(batcher)); err != nil {
			return nil, err
		}
		select {
		case <-c.Context().Done():
		case <-time.After(3 * c.patience):
		}
		return "done", c.Context().Err()
	})
	server := httptest.NewServer(m)
	defer server.Close()
	if status, answer, err := post(t.Context(), server.URL, "/x", "a"); err != nil || status != 200 {
		t.Errorf("a request that waits: status %d, %s, %v", status, answer, err)
	}
	client, err := net.Dial("tcp", strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	fmt.Fprint(client, "POST /x HTTP/1.1\r\nHost: attn\r\nContent-Length: 5\r\n\r\nab")
	if a, err := http.ReadResponse(bufio.NewReader(client), nil); err != nil || a.StatusCode != 400 {
		t.Errorf("a body that does not arrive: %v, %v", a, err)
	}
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
	messages, err := program.StderrPipe()
	if err = errors.Join(err, program.Start()); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(messages).ReadString('\n')
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
	body := `{"input": ["who?", "the cat"]}`
	fmt.Fprintf(client, "POST /v1/embeddings HTTP/1.1\r\nHost: attn\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", len(body))
	answers := bufio.NewReader(client)
	if line, err := answers.ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") { // accepted
		t.Fatalf("%q, %v", line, err)
	}
	if err := program.Process.Signal(syscall.SIGTERM); err != nil {
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
