package view

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/strictjson"
	"github.com/attn-go/attn/viz"
)

const (
	thumbSize = 64   // rows and columns of a thumbnail, at most
	headSize  = 2048 // of a head; what is larger is sent in blocks
	maxExact  = 1 << 16
	maxBody   = 256 << 10
	// maxDrained is how many bytes of a request that is too long are read all the same.
	maxDrained = 64 << 20
)

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	files := http.FileServerFS(page())
	mux.Handle("GET /{$}", files)
	mux.HandleFunc("GET /page/main.js", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, "text/javascript; charset=utf-8", s.script)
	})
	mux.Handle("GET /page/", http.StripPrefix("/page/", files))
	mux.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("GET /api/start", s.start)
	mux.HandleFunc("GET /api/thumbs", s.thumbs)
	mux.HandleFunc("GET /api/head", s.head)
	mux.HandleFunc("GET /api/measures", s.measures)
	mux.HandleFunc("GET /api/divergence", s.divergence)
	mux.HandleFunc("GET /api/neurons", s.neurons)
	mux.HandleFunc("GET /api/check", s.check)
	mux.HandleFunc("GET /api/frozen", s.sendFrozen)
	mux.HandleFunc("POST /api/record", s.record)
	return mux
}

// column is a measure as the table shows it.
type column struct {
	Key   string `json:"key"` // as heads.Measures.List names it
	Label string `json:"label"`
	Help  string `json:"help"`
}

var columns = []column{
	{"entropy", "entropy", "entropy of a query's weights, in nats: how widely it attends"},
	{"bound", "uniform (ln n)", "entropy of uniform weights over the n keys that a query can attend to: ln n"},
	{"confidence", "confidence", "largest weight of a query"},
	{"distance", "distance", "distance from a query to the keys that it attends to, in tokens"},
	{"previous", "previous", "weight of the key just before the query's own place"},
	{"same", "same", "weight of the key at the query's own place"},
	{"next", "next", "weight of the key just after the query's own place"},
	{"first", "first", "weight of the first key"},
	{"last", "last", "weight of the last key"},
	{"special", "special", "weight of special tokens"},
	{"punctuation", "punctuation", "weight of punctuation"},
	{"induction", "induction", "weight of the keys that followed earlier tokens equal to the query's own"},
}

// columns are the measures, and after them the scores, whose keys are "score0" and on.
func (s *Server) columns() []column {
	list := slices.Clone(columns)
	for i, scores := range s.options.Scores {
		list = append(list, column{fmt.Sprintf("score%d", i), scores.Name, scores.Help})
	}
	return list
}

func (s *Server) start(w http.ResponseWriter, r *http.Request) {
	records := []outline{}
	for _, e := range s.store.fixed {
		records = append(records, e.outline)
	}
	send(w, map[string]any{
		"name": s.options.Name, "models": s.models(), "maxText": s.options.MaxText,
		"columns": s.columns(), "records": records, "palette": palette(), "second": s.options.Second,
	})
}

// palette returns the colours of pictures as red, green and blue: of weights from
// 0 to 1, and of differences from -1 to 1.
func palette() map[string][]byte {
	all := map[string][]byte{}
	for _, g := range []struct {
		name   string
		ground viz.Ground
	}{{"light", viz.OnLight}, {"dark", viz.OnDark}} {
		for i := range 512 {
			if i < 256 {
				c := g.ground.Color(float64(i) / 255)
				all[g.name] = append(all[g.name], c.R, c.G, c.B)
			}
			v := float64(i-255) / 255
			if i > 255 {
				v = float64(i-256) / 255
			}
			c := g.ground.Difference(v)
			all[g.name+"Signed"] = append(all[g.name+"Signed"], c.R, c.G, c.B)
		}
	}
	return all
}

// models returns the names of the models behind the page.
func (s *Server) models() []string {
	names := []string{}
	if s.options.Source != nil {
		names = append(names, s.options.Name)
		for _, m := range s.options.Others {
			names = append(names, m.Name)
		}
	}
	return names
}

// record asks a model about texts that somebody has typed.
func (s *Server) record(w http.ResponseWriter, r *http.Request) {
	if s.options.Source == nil {
		refuse(w, http.StatusNotFound, "there is no model behind this page")
		return
	}
	var ask *struct { // nil of null
		Model          int
		Source, Target string
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if len(body) > maxBody {
		// A client that has not sent everything yet would find the connection closed, and not this answer.
		io.CopyN(io.Discard, r.Body, maxDrained)
		refuse(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the request is too long, want at most %d bytes", maxBody))
		return
	}
	if err != nil || strictjson.Unmarshal(body, &ask) != nil || ask == nil {
		refuse(w, http.StatusBadRequest, "want one object with source and target")
		return
	}
	if ask.Model < 0 || ask.Model > len(s.options.Others) {
		refuse(w, http.StatusBadRequest, fmt.Sprintf("there is no model %d, want 0 to %d", ask.Model, len(s.options.Others)))
		return
	}
	for _, text := range []string{ask.Source, ask.Target} {
		switch {
		case len(text) > s.options.MaxText:
			refuse(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the text has %d bytes, want at most %d", len(text), s.options.MaxText))
			return
		case !utf8.ValidString(text):
			refuse(w, http.StatusBadRequest, "the text is not UTF-8")
			return
		}
	}
	e, err := s.ask(r.Context(), ask.Model, ask.Source, ask.Target)
	if err != nil {
		refuse(w, http.StatusUnprocessableEntity, err.Error())
		return
	}
	send(w, e.outline)
}

// ask returns the record of two texts. One at a time: a model uses all
// processors already.
func (s *Server) ask(ctx context.Context, model int, source, target string) (*entry, error) {
	select {
	case s.asking <- struct{}{}:
		defer func() { <-s.asking }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	id := textID(model, source, target)
	if e := s.store.get(id); e != nil {
		return e, nil
	}
	asked := s.options.Source
	if model > 0 {
		asked = s.options.Others[model-1].Source
	}
	record, err := asked.Record(ctx, source, target)
	if err != nil {
		return nil, err
	}
	e := newEntry(id, record)
	e.explain(asked)
	if model == 0 {
		e.scores = s.options.Scores
	}
	if e.bytes > s.options.Keep {
		return nil, fmt.Errorf("the weights of this text take %d MB, want at most %d MB", e.bytes>>20, s.options.Keep>>20)
	}
	s.store.add(e)
	return e, nil
}

// thumbs sends all heads of a layer, small, or, if they are asked for, its summaries.
func (s *Server) thumbs(w http.ResponseWriter, r *http.Request) {
	q := query{values: r.URL.Query()}
	e, layer, l := s.layer(&q)
	if q.failed(w) {
		return
	}
	qa, ka := e.axes(layer)
	small := func(weights []float32) []byte {
		m := l.apply(weights, qa, ka)
		lo, hi := m.bounds()
		small, bq, bk := m.pool(span{0, m.rows}, span{0, m.cols}, thumbSize)
		return small.appendWire(nil, bq, bk, lo, hi, false)
	}
	var list [][]byte
	var err error
	if q.values.Get("summaries") == "1" {
		for _, name := range e.outline.Layers[layer].Summaries { // each from the one before
			weights, failed := e.weights(layer, name, l.values)
			if err = errors.Join(failed, r.Context().Err()); err != nil {
				break
			}
			list = append(list, small(weights))
		}
	} else {
		list = make([][]byte, e.record.Layers[layer].Heads)
		judged := newJudge(&e.record.Layers[layer])
		var mean []float32
		mean, err = e.eachHead(r.Context(), layer, l.values, func(h int, weights []float32) {
			if !l.values {
				judged.head(weights)
			}
			list[h] = small(weights)
		})
		if err == nil {
			e.note(layer, judged)
			e.memo.put(e.meanKey(layer, l.values), mean) // what is asked for next
			e.tally(layer, l.values)
		}
	}
	if err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	sendBytes(w, slices.Concat(list...))
}

// head sends one head, or the part of it that is zoomed to; exact weights on
// demand, for the row under the pointer.
func (s *Server) head(w http.ResponseWriter, r *http.Request) {
	q := query{values: r.URL.Query()}
	e, layer, l := s.layer(&q)
	if q.failed(w) {
		return
	}
	name := q.head("head", e, layer)
	if q.failed(w) {
		return
	}
	qa, ka := e.axes(layer)
	weights, err := e.opened(layer, name, l.values)
	if err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	m := l.apply(weights, qa, ka)
	rows, cols := q.span("rows", m.rows), q.span("cols", m.cols)
	exact := q.values.Get("exact") == "1"
	if exact && rows.len() > 1 && rows.len()*m.cols > maxExact {
		q.bad(fmt.Sprintf("exact weights come one row at a time, or at most %d of them", maxExact))
	}
	if q.failed(w) {
		return
	}
	lo, hi := m.bounds()
	if exact {
		row := matrix{rows.len(), m.cols, m.w[rows.from*m.cols : rows.to*m.cols]}
		sendBytes(w, row.appendWire(nil, 1, 1, lo, hi, true))
		return
	}
	part, bq, bk := m.pool(rows, cols, headSize)
	sendBytes(w, part.appendWire(make([]byte, 0, len(part.w)+64), bq, bk, lo, hi, false))
}

// measures sends those of all heads of a layer, or of one summary, in the order of
// columns: of what the lens shows.
func (s *Server) measures(w http.ResponseWriter, r *http.Request) {
	q := query{values: r.URL.Query()}
	e, layer, l := s.layer(&q)
	if q.failed(w) {
		return
	}
	var rows [][]*float64
	var err error
	if q.values.Has("head") {
		name := q.head("head", e, layer)
		if q.failed(w) {
			return
		}
		rows = make([][]*float64, 1)
		rows[0], err = e.measureHead(layer, name, l)
	} else {
		rows, err = e.measure(layer, l)
	}
	if err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	send(w, rows)
}

// divergence sends how far heads of a layer, or one of them, are from one head of
// this record or another: null where tokens are not the same.
func (s *Server) divergence(w http.ResponseWriter, r *http.Request) {
	q := query{values: r.URL.Query()}
	e, layer, l := s.layer(&q)
	of := e
	if id := q.values.Get("of"); id != "" {
		if of = s.store.get(id); of == nil {
			q.gone()
		}
	}
	if q.failed(w) {
		return
	}
	from, name, _ := strings.Cut(q.values.Get("from"), ".")
	q.values.Set("from", from)
	q.values.Set("of", name)
	at := q.number("from", len(of.record.Layers))
	if q.failed(w) {
		return
	}
	name = q.head("of", of, at)
	names := []string{q.values.Get("head")}
	if names[0] != "" {
		q.head("head", e, layer)
	} else {
		names = nil
		for h := range e.record.Layers[layer].Heads {
			names = append(names, strconv.Itoa(h))
		}
	}
	if q.failed(w) {
		return
	}
	list, err := divergences(r.Context(), of, at, name, e, layer, names, l)
	if err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	send(w, list)
}

// neurons sends the queries [Lq E] and the keys [Lk E] of a head: what its scores are
// made of.
func (s *Server) neurons(w http.ResponseWriter, r *http.Request) {
	q := query{values: r.URL.Query()}
	e, layer, _ := s.layer(&q)
	if q.failed(w) {
		return
	}
	l := &e.record.Layers[layer]
	h, size := q.number("head", l.Heads), l.VectorSize()
	if size == 0 {
		q.bad("this layer has no queries and keys, only weights")
	}
	if q.failed(w) {
		return
	}
	queries, keys, err := e.vectors(layer, h)
	if err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	b := matrix{len(l.Queries), size, queries}.appendWire(nil, 1, 1, 0, 0, true)
	sendBytes(w, matrix{len(l.Keys), size, keys}.appendWire(b, 1, 1, 0, 0, true))
}

// check sends what is wrong with the weights of a layer, in words.
func (s *Server) check(w http.ResponseWriter, r *http.Request) {
	q := query{values: r.URL.Query()}
	e, layer, _ := s.layer(&q)
	if q.failed(w) {
		return
	}
	lines, err := e.warnings(layer)
	if err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	send(w, append([]string{}, lines...))
}

func (s *Server) sendFrozen(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, plainText, s.frozen) // it is not to run here
}

// layer reads what most requests begin with.
func (s *Server) layer(q *query) (*entry, int, lens) {
	e := s.store.get(q.values.Get("record"))
	if e == nil {
		q.gone()
		return nil, 0, lens{}
	}
	l := lens{words: q.values.Get("words") == "1", values: q.values.Get("values") == "1"}
	switch q.values.Get("special") {
	case "":
	case "hide":
		l.hide = true
	case "renorm":
		l.hide, l.renorm = true, true
	default:
		q.bad("special is hide, renorm or nothing")
	}
	layer := q.number("layer", len(e.record.Layers))
	if q.status == 0 && l.values && e.record.Layers[layer].ValueNorms == nil {
		q.bad("this layer has no norms of values, so nothing is value-weighted")
	}
	return e, layer, l
}

// query reads the values of an address and remembers the first mistake.
type query struct {
	values url.Values
	status int
	reason string
}

func (q *query) bad(reason string) {
	if q.status == 0 {
		q.status, q.reason = http.StatusBadRequest, reason
	}
}

func (q *query) gone() {
	if q.status == 0 {
		q.status, q.reason = http.StatusGone, "the server no longer holds this record: ask for its text again"
	}
}

// failed answers if there was a mistake.
func (q *query) failed(w http.ResponseWriter) bool {
	if q.status != 0 {
		refuse(w, q.status, q.reason)
	}
	return q.status != 0
}

// number returns a number from 0 to n-1.
func (q *query) number(name string, n int) int {
	i, err := strconv.Atoi(q.values.Get(name))
	if err != nil || i < 0 || i >= n {
		q.bad(fmt.Sprintf("%s is not one of %d", name, n))
		return 0
	}
	return i
}

// head returns the name of a head or a summary of a layer.
func (q *query) head(name string, e *entry, layer int) string {
	text := q.values.Get(name)
	if slices.Contains(e.outline.Layers[layer].Summaries, text) {
		return text
	}
	return strconv.Itoa(q.number(name, e.record.Layers[layer].Heads))
}

// span returns a range "from-to" within n, all of it if none is given.
func (q *query) span(name string, n int) span {
	text := q.values.Get(name)
	if text == "" {
		return span{0, n}
	}
	var s span
	if _, err := fmt.Sscanf(text, "%d-%d", &s.from, &s.to); err != nil || s.from < 0 || s.from > s.to || s.to > n {
		q.bad(fmt.Sprintf("%s is not a range within %d", name, n))
	}
	return s
}
