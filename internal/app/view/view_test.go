package view

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/strictjson"
)

// sample returns a record of one cross-attention layer with two heads, 3 queries and 5 keys.
func sample() *heads.Record {
	r := &heads.Record{Source: "a</script>b", Target: "x", Special: []string{"<eos>"}, Layers: []heads.Layer{{
		Name: "decoder.0.cross", Kind: heads.Cross, Heads: 2,
		Queries: []string{"▁x", "y", "<eos>"}, Keys: []string{"▁a", "</script>", "▁b", "c", "<eos>"},
	}}}
	for i := range 2 * 3 {
		row := []float32{0.1, 0.2, 0.3, 0.15, 0.25}
		row[i%5], row[4] = row[4], row[i%5]
		r.Layers[0].Weights = append(r.Layers[0].Weights, row...)
	}
	return r
}

type recordFunc func(ctx context.Context, source, target string) (*heads.Record, error)

func (f recordFunc) Record(ctx context.Context, source, target string) (*heads.Record, error) {
	return f(ctx, source, target)
}

func (recordFunc) NoVectors(*heads.Record) string { return "" }

// ask sends a request as a browser on the page does, with the cookie, after edit has
// changed it.
func ask(s *Server, method, target, body string, edit func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://127.0.0.1:8080"+target, strings.NewReader(body))
	r.AddCookie(&http.Cookie{Name: "attn-view-8080", Value: s.secret})
	if method == http.MethodPost {
		r.Header.Set("Origin", "http://127.0.0.1:8080")
		r.Header.Set("Content-Type", "application/json")
	}
	if edit != nil {
		edit(r)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func TestLookLimits(t *testing.T) {
	s := New(Options{MaxText: 10, Recorder: recordFunc(func(_ context.Context, source, _ string) (*heads.Record, error) {
		if source == "bad" {
			return nil, errors.New("too many tokens")
		}
		return sample(), nil
	})})
	for _, c := range []struct {
		body string
		want int
		says string
	}{
		{`{"source":"0123456789"}`, 200, "</script>"},
		{`{"source":"0123456789x"}`, 413, "11 bytes, want at most 10"},
		{`{"source":"x","target":"0123456789x"}`, 413, "11 bytes"},
		{`{"source":"` + strings.Repeat("x", maxBody) + `"}`, 413, "too long, want at most 262144 bytes"},
		{`{"source":"x","file":"/etc/passwd"}`, 400, "source and target"},
		{`[]`, 400, "source and target"},
		{``, 400, "source and target"},
		{`null`, 400, "source and target"},
		{` null `, 400, "source and target"},
		{`{"source":"x"}{"source":"x"}`, 400, "one object"},
		{`{"source":"x"} x`, 400, "one object"},
		{`{"source":"x"`, 400, "one object"},
		{`{"source":"bad"}`, 422, "too many tokens"},
	} {
		w := ask(s, "POST", "/api/record", c.body, nil)
		text := w.Body.String()
		if strings.Contains(text, "<") {
			t.Errorf("%.40s: markup in %s", c.body, text)
		}
		text = strings.ReplaceAll(strings.ReplaceAll(text, `\u003c`, "<"), `\u003e`, ">")
		if w.Code != c.want || !strings.Contains(text, c.says) {
			t.Errorf("%.40s: status %d and %.200s, want %d and %q", c.body, w.Code, text, c.want, c.says)
		}
	}
	none := New(Options{Records: []*heads.Record{sample()}})
	if w := ask(none, "POST", "/api/record", `{"source":"x"}`, nil); w.Code != 404 {
		t.Errorf("without a model: status %d, want 404", w.Code)
	}
}

func TestBadQuestions(t *testing.T) {
	s := New(Options{Records: []*heads.Record{sample(), large(257)}})
	for query, want := range map[string]int{
		"thumbs?record=r0&layer=0": 200, "thumbs?record=r0": 400, "thumbs?record=r0&layer=1": 400, "thumbs?record=r0&layer=-1": 400,
		"thumbs?record=r2&layer=0": 410, "head?record=r0&layer=0&head=1": 200, "head?record=r0&layer=0&head=2": 400,
		"head?record=r0&layer=0&head=0&rows=1-3&cols=0-5": 200, "head?record=r0&layer=0&head=0&rows=1-4": 400,
		"head?record=r0&layer=0&head=0&rows=2-1": 400, "head?record=r0&layer=0&head=0&rows=-1-2": 400, "head?record=r0&layer=0&head=0&rows=x": 400,
		"head?record=r0&layer=0&head=0&exact=1": 200, "head?record=r1&layer=0&head=0&exact=1": 400, "head?record=r0&layer=0&head=0&exact=1&rows=2-3": 200,
		"head?record=r0&layer=0&head=0&exact=1&rows=2-3&special=hide": 400, // two rows are visible
		"head?record=r0&layer=0&head=0&special=all":                   400, "measures?record=r0&layer=0": 200, "measures?record=r0&layer=x": 400,
	} {
		if w := ask(s, "GET", "/api/"+query, "", nil); w.Code != want {
			t.Errorf("%s: status %d, want %d: %s", query, w.Code, want, w.Body)
		}
	}
}

// received decodes a matrix as the page does.
func received(t *testing.T, b []byte) (m matrix, blockQ, blockK int) {
	t.Helper()
	if len(b) < 32 || string(b[:4]) != wireMagic {
		t.Fatalf("no matrix in %d bytes", len(b))
	}
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(b[4*i:]) }
	m = matrix{rows: int(word(1)), cols: int(word(2))}
	lo, hi := float64(math.Float32frombits(word(5))), float64(math.Float32frombits(word(6)))
	for i := range m.rows * m.cols {
		switch code := b[32+i]; {
		case word(7) == 4:
			m.w = append(m.w, math.Float32frombits(binary.LittleEndian.Uint32(b[32+4*i:])))
		case code == notFinite:
			m.w = append(m.w, float32(math.NaN()))
		default:
			m.w = append(m.w, float32(lo+float64(code)/levels*(hi-lo)))
		}
	}
	return m, int(word(3)), int(word(4))
}

func TestHeadsThroughLenses(t *testing.T) {
	s := New(Options{Records: []*heads.Record{sample()}})
	for _, c := range []struct {
		lens string
		want matrix
	}{
		{"", matrix{rows: 3, cols: 5, w: []float32{0.25, 0.2, 0.3, 0.15, 0.1, 0.1, 0.25, 0.3, 0.15, 0.2, 0.1, 0.2, 0.25, 0.15, 0.3}}},
		{"&special=hide", matrix{rows: 2, cols: 4, w: []float32{0.25, 0.2, 0.3, 0.15, 0.1, 0.25, 0.3, 0.15}}},
		{"&special=renorm", matrix{rows: 2, cols: 4, w: []float32{0.25 / 0.9, 0.2 / 0.9, 0.3 / 0.9, 0.15 / 0.9, 0.125, 0.3125, 0.375, 0.1875}}},
		{"&words=1", matrix{rows: 2, cols: 3, w: []float32{0.4, 0.45, 0.15, 0.3, 0.4, 0.3}}},
		{"&words=1&special=renorm", matrix{rows: 1, cols: 2, w: []float32{0.4 / 0.85, 0.45 / 0.85}}},
	} {
		w := ask(s, "GET", "/api/head?record=r0&layer=0&head=0"+c.lens, "", nil)
		got, bq, bk := received(t, w.Body.Bytes())
		if got.rows != c.want.rows || got.cols != c.want.cols || bq != 1 || bk != 1 {
			t.Fatalf("%s: [%d %d] in blocks of %d %d, want [%d %d]", c.lens, got.rows, got.cols, bq, bk, c.want.rows, c.want.cols)
		}
		for i, x := range c.want.w {
			if math.Abs(float64(got.w[i]-x)) > 0.5/levels {
				t.Errorf("%s: weight %d is %v, want %v", c.lens, i, got.w[i], x)
			}
		}
		for row := range got.rows {
			w := ask(s, "GET", fmt.Sprintf("/api/head?record=r0&layer=0&head=0&exact=1&rows=%d-%d%s", row, row+1, c.lens), "", nil)
			exact, _, _ := received(t, w.Body.Bytes())
			for j, x := range exact.w {
				if want := c.want.w[row*got.cols+j]; math.Abs(float64(x-want)) > 1e-6 {
					t.Errorf("%s: exact weight %d %d is %v, want %v", c.lens, row, j, x, want)
				}
			}
		}
	}
}

func TestWire(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	m := matrix{rows: 2, cols: 3, w: []float32{nan, inf, -inf, -2, 3, 0}}
	lo, hi := m.bounds()
	if lo != -2 || hi != 3 {
		t.Fatalf("bounds %v %v, want -2 and 3", lo, hi)
	}
	b := m.appendWire(nil, 1, 1, lo, hi, false)
	if len(b) != 32+8 {
		t.Errorf("%d bytes, want 40", len(b))
	}
	got, _, _ := received(t, b)
	for i, want := range []float32{nan, nan, nan, -2, 3, 0} {
		if got.w[i] != want && (got.w[i] == got.w[i] || want == want) && math.Abs(float64(got.w[i]-want)) > 5./levels {
			t.Errorf("weight %d is %v, want %v", i, got.w[i], want)
		}
	}
	big := matrix{rows: 1, cols: 2, w: []float32{-math.MaxFloat32, math.MaxFloat32}} // their difference overflows float32
	got, _, _ = received(t, big.appendWire(nil, 1, 1, -math.MaxFloat32, math.MaxFloat32, false))
	if got.w[0] != -math.MaxFloat32 || got.w[1] != math.MaxFloat32 {
		t.Errorf("the largest numbers are %v", got.w)
	}
	empty := matrix{rows: 0, cols: 0, w: nil}
	if b := empty.appendWire(nil, 1, 1, 0, 0, false); len(b) != 32 {
		t.Errorf("nothing has %d bytes, want 32", len(b))
	}
}

func TestPool(t *testing.T) {
	m := matrix{rows: 5, cols: 7, w: make([]float32, 35)}
	for i := range m.w {
		m.w[i] = float32(i)
	}
	m.w[0] = float32(math.NaN())
	got, bq, bk := m.pool(span{0, 5}, span{0, 7}, 3)
	if bq != 2 || bk != 3 || got.rows != 3 || got.cols != 3 {
		t.Fatalf("[%d %d] in blocks of %d %d", got.rows, got.cols, bq, bk)
	}
	for i, want := range []float32{float32(math.NaN()), 12, 13, 23, 26, 27, 30, 33, 34} {
		if got.w[i] != want && want == want || want != want && got.w[i] == got.w[i] {
			t.Errorf("cell %d is %v, want %v", i, got.w[i], want)
		}
	}
	if got, bq, bk := m.pool(span{1, 3}, span{4, 7}, 3); bq != 1 || bk != 1 || fmt.Sprint(got.w) != "[11 12 13 18 19 20]" {
		t.Errorf("a part is %v in blocks of %d %d", got.w, bq, bk)
	}
}

func TestMeasuresWithoutNumbers(t *testing.T) {
	r := sample()
	r.Layers[0].Weights[0] = float32(math.NaN())
	r.Layers = append(r.Layers, heads.Layer{Name: "empty", Kind: heads.Encoder, Heads: 1})
	s := New(Options{Records: []*heads.Record{r}})
	for layer, n := range []int{2, 1} {
		w := ask(s, "GET", fmt.Sprintf("/api/measures?record=r0&layer=%d", layer), "", nil)
		var rows [][]*float64
		if err := json.Unmarshal(w.Body.Bytes(), &rows); err != nil || len(rows) != n || len(rows[0]) != len(columns) || rows[0][0] != nil {
			t.Errorf("layer %d: %s, %v, want %d rows and no entropy in the first", layer, w.Body, err, n)
		}
	}
	var begin struct{ Records []outline }
	if err := json.Unmarshal(ask(s, "GET", "/api/start", "", nil).Body.Bytes(), &begin); err != nil {
		t.Fatal(err)
	}
	if w := begin.Records[0].Warnings; len(w) != 1 || !strings.Contains(w[0], "1 of 6 rows") {
		t.Errorf("warnings %q", w)
	}
}

// Measures describe the visible weights: uniform weights over n words have entropy
// ln n, for any number of tokens.
func TestMeasuresOfWhatIsShown(t *testing.T) {
	tokens := []string{"<s>", "▁one", "▁t", "wo", "▁th", "re", "e", "</s>"}
	l := heads.Layer{Name: "encoder.0", Heads: 1, Queries: tokens, Keys: tokens, Weights: make([]float32, 64)}
	for i := range l.Weights {
		l.Weights[i] = 1. / 8
	}
	s := New(Options{Records: []*heads.Record{{Special: []string{"<s>", "</s>"}, Layers: []heads.Layer{l}}}})
	bound := slices.IndexFunc(columns, func(c column) bool { return c.Key == "bound" })
	for lens, n := range map[string]float64{"": 8, "&words=1": 5, "&special=hide": 6, "&special=renorm": 6, "&special=renorm&words=1": 3} {
		var rows [][]*float64
		w := ask(s, "GET", "/api/measures?record=r0&layer=0"+lens, "", nil)
		if err := json.Unmarshal(w.Body.Bytes(), &rows); err != nil || math.Abs(*rows[0][bound]-math.Log(n)) > 1e-6 {
			t.Errorf("%q: %s, %v, want the bound ln %g", lens, w.Body, err, n)
		}
		m, _, _ := received(t, ask(s, "GET", "/api/head?record=r0&layer=0&head=0&exact=1"+lens, "", nil).Body.Bytes())
		if m.cols != int(n) {
			t.Errorf("%q: the map has %d columns, want %g", lens, m.cols, n)
		}
	}
}

// The columns of the page are existing measures.
func TestColumns(t *testing.T) {
	for _, c := range columns {
		if !slices.ContainsFunc(heads.Measures{}.List(), func(m heads.Named) bool { return m.Name == c.Key }) {
			t.Errorf("column %s is no measure", c.Key)
		}
	}
}

// Scores follow the measures: one per head of the record, or by the number of the head in
// the model. A mean has none.
func TestScores(t *testing.T) {
	pruned := sample()
	pruned.Layers[0].Heads, pruned.Layers[0].Chosen, pruned.Layers[0].Weights = 1, []int{2}, pruned.Layers[0].Head(1)
	other := sample()
	other.Layers[0].Name = "other"
	s := New(Options{Records: []*heads.Record{sample(), pruned, other}, Scores: []Scores{
		{Name: "importance: gradient", Values: map[string][]strictjson.Number{"decoder.0.cross": {0.5, strictjson.NaN}}},
		{Name: "importance: taylor", Values: map[string][]strictjson.Number{"decoder.0.cross": {1, 2, -3, 4}}},
	}})
	var start struct{ Columns []column }
	if err := json.Unmarshal(ask(s, "GET", "/api/start", "", nil).Body.Bytes(), &start); err != nil {
		t.Fatal(err)
	}
	if n := len(columns); len(start.Columns) != n+2 || start.Columns[n+1].Key != "score1" || start.Columns[n+1].Label != "importance: taylor" {
		t.Errorf("the columns are %v", start.Columns)
	}
	for query, want := range map[string]string{
		"record=r0&layer=0": "[[0.5 1] [- 2]]", "record=r1&layer=0": "[[- -3]]", "record=r2&layer=0": "[[- -] [- -]]", "record=r0&layer=0&head=mean": "[[- -]]", "record=r0&layer=0&words=1": "[[0.5 1] [- 2]]",
	} {
		var rows [][]*float64
		if err := json.Unmarshal(ask(s, "GET", "/api/measures?"+query, "", nil).Body.Bytes(), &rows); err != nil {
			t.Fatal(err)
		}
		var got [][]string
		for _, row := range rows {
			var texts []string
			for _, x := range row[len(columns):] {
				if x == nil {
					texts = append(texts, "-")
				} else {
					texts = append(texts, fmt.Sprint(*x))
				}
			}
			got = append(got, texts)
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%s: %v, want %s", query, got, want)
		}
	}
}
