package view

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/strictjson"
	"github.com/attn-go/attn/viz"
)

const (
	thumbSize = 64        // rows and columns of a thumbnail, at most
	headSize  = 2048      // rows and columns of a head; larger ones are sent as blocks
	maxExact  = 1 << 16   // exact weights per request, unless it is for one row
	maxBody   = 256 << 10 // bytes of a request
	// maxDrained is the number of bytes to read and discard of a request that is too long.
	maxDrained = 64 << 20
)

func (s *Server) routes() http.Handler {
	mux := serveFolder("page")
	mux.HandleFunc("GET /page/main.js", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, "text/javascript; charset=utf-8", []byte(script()))
	})
	for path, f := range s.answers() {
		mux.HandleFunc("GET /"+path, respond(f))
	}
	mux.HandleFunc("GET /api/frozen", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, plainText, []byte(frozenPage())) // as text, so that it does not run here
	})
	mux.HandleFunc("POST /api/record", respond(s.record))
	mux.HandleFunc("POST /api/prune", respond(s.ofModel(prune)))
	return mux
}

// answers returns the functions that answer requests for data, by path.
func (s *Server) answers() map[string]func(r *http.Request) (any, error) {
	return map[string]func(r *http.Request) (any, error){
		"api/start":       s.start,
		"api/thumbs":      s.ofLayer(thumbs),
		"api/head":        s.ofLayer(head),
		"api/measures":    s.ofLayer(measures),
		"api/divergence":  s.ofLayer(s.divergence),
		"api/neurons":     s.ofLayer(neurons),
		"api/check":       s.ofLayer(check),
		"api/examples":    s.ofLayer(s.examples),
		"api/film":        s.filmAnswers,
		"api/output":      s.ofModel(s.output),
		"api/predictions": s.ofModel(predictions),
		"api/effects":     s.ofLayer(s.effects),
	}
}

// column is a column of the table of measures.
type column struct {
	Key   string `json:"key"` // the name in heads.Measures.List
	Label string `json:"label"`
	Help  string `json:"help"`
}

var columns = []column{
	{"entropy", "entropy", "entropy of a query's weights, in nats: how widely the query attends"},
	{"bound", "uniform (ln n)", "entropy of uniform weights over the n keys that a query can attend to: ln n"},
	{"confidence", "confidence", "largest weight of a query"},
	{"distance", "distance", "distance from a query to the keys that it attends to, in tokens"},
	{"previous", "previous", "weight of the key just before the query's position"},
	{"same", "same", "weight of the key at the query's position"},
	{"next", "next", "weight of the key just after the query's position"},
	{"first", "first", "weight of the first key"},
	{"last", "last", "weight of the last key"},
	{"special", "special", "weight of special tokens"},
	{"punctuation", "punctuation", "weight of punctuation"},
	{"induction", "induction", "weight of the keys that follow earlier occurrences of the query's token"},
	{"duplicate", "duplicate", "weight of earlier occurrences of the query's token"},
	{"retrieval", "retrieval", "how often the largest weight is that of the next token, where both tokens occur earlier"},
}

// columns returns the measures followed by the scores, whose keys are "score0", "score1", ….
func (s *Server) columns() []column {
	list := slices.Clone(columns)
	for i, scores := range s.options.Scores {
		list = append(list, column{fmt.Sprintf("score%d", i), scores.Name, scores.Help})
	}
	return list
}

func (s *Server) start(*http.Request) (any, error) {
	records := []outline{}
	for _, e := range s.store.fixed {
		records = append(records, e.outline)
	}
	models := []string{}
	for _, m := range s.models {
		models = append(models, m.Name)
	}
	return map[string]any{
		"film": s.film(), "name": s.options.Name, "models": models, "maxText": s.options.MaxText,
		"examples": s.options.Examples.about(), "columns": s.columns(), "records": records, "palette": Palette(), "second": s.options.Second,
	}, nil
}

// film describes the recording of the training to the page. All frames have the layers and tokens of
// the record, which is the first; frame n has the id "fn".
func (s *Server) film() any {
	f := s.options.Film
	if f == nil {
		return nil
	}
	steps, losses := []int{}, []strictjson.Number{}
	for _, x := range f.Frames {
		steps, losses = append(steps, x.Step), append(losses, strictjson.Number(x.Loss))
	}
	record := s.store.get(frameID(0)).outline
	record.Unread = true // the page requests the warnings of each frame
	record.Warnings = []string{}
	return map[string]any{"steps": steps, "losses": losses, "record": record}
}

// Palette returns colours as red, green and blue: for weights from 0 to 1, and for differences from -1 to 1, as
// palette.js reads them.
func Palette() map[string][]byte {
	all := map[string][]byte{}
	for name, ground := range map[string]viz.Ground{"light": viz.OnLight, "dark": viz.OnDark} {
		for i := range 256 {
			c := ground.Color(float64(i) / 255)
			all[name] = append(all[name], c.R, c.G, c.B)
		}
		for i := range 512 { // 0 is there twice, in the middle
			c := ground.Difference(float64(i-255-i/256) / 255)
			all[name+"Signed"] = append(all[name+"Signed"], c.R, c.G, c.B)
		}
	}
	return all
}

// record records typed texts with a model.
func (s *Server) record(r *http.Request) (any, error) {
	if s.models == nil {
		return nil, refused(http.StatusNotFound, "this page has no model")
	}
	var ask *struct { // nil for null
		Model          int
		Source, Target string
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if len(body) > maxBody {
		// Without reading the rest, a client that is still sending would get a closed connection instead of this answer.
		io.CopyN(io.Discard, r.Body, maxDrained)
		return nil, refused(http.StatusRequestEntityTooLarge, "the request is too long, want at most %d bytes", maxBody)
	}
	if err == nil {
		err = strictjson.Request(body, &ask)
	}
	if err != nil || ask == nil {
		return nil, refused(http.StatusBadRequest, "want one object with source and target: %v", cmp.Or(err, errors.New("is null")))
	}
	if ask.Model < 0 || ask.Model >= len(s.models) {
		return nil, refused(http.StatusBadRequest, "there is no model %d, want 0 to %d", ask.Model, len(s.models)-1)
	}
	if n := max(len(ask.Source), len(ask.Target)); n > s.options.MaxText {
		return nil, refused(http.StatusRequestEntityTooLarge, "the text has %d bytes, want at most %d", n, s.options.MaxText)
	}
	e, err := s.ask(r.Context(), ask.Model, ask.Source, ask.Target)
	if err != nil {
		return nil, refused(http.StatusUnprocessableEntity, "%w", err)
	}
	return e.outline, nil
}

// ask returns the record of two texts. It runs one model at a time, because a model
// uses all processors.
func (s *Server) ask(ctx context.Context, model int, source, target string) (e *entry, err error) {
	err = s.alone(ctx, func() (err error) {
		e, err = s.recorded(ctx, model, source, target)
		return err
	})
	return e, err
}

// recorded returns the record of two texts, which it stores.
func (s *Server) recorded(ctx context.Context, model int, source, target string) (*entry, error) {
	id, asked := textID(model, source, target), s.models[model].Recorder
	if e := s.store.get(id); e != nil {
		return e, nil
	}
	record, err := asked.Record(ctx, source, target)
	if err != nil {
		return nil, err
	}
	e := newEntry(id, record)
	e.from(asked)
	if model == 0 {
		e.scores = s.options.Scores
	}
	if e.bytes > s.options.Keep {
		return nil, fmt.Errorf("the weights of this text take %d MB, want at most %d MB", e.bytes>>20, s.options.Keep>>20)
	}
	s.store.add(e)
	return e, nil
}

// thumbs returns thumbnails of all heads of a layer or, if requested, of its summaries.
func thumbs(q *query) (any, error) {
	e, l := q.entry, q.lens
	small := func(name string, weights []float32) []byte {
		m := e.shown(q.layer, name, weights, l)
		lo, hi := m.bounds()
		small, bq, bk := m.pool(span{0, m.rows}, span{0, m.cols}, thumbSize)
		return small.appendWire(nil, bq, bk, lo, hi, false)
	}
	var list [][]byte
	if q.values.Get("summaries") == "1" {
		for _, name := range e.outline.Layers[q.layer].Summaries { // each uses the one before
			weights, err := e.weights(q.layer, name, l.values)
			if err = errors.Join(err, q.ctx.Err()); err != nil {
				return nil, err
			}
			list = append(list, small(name, weights))
		}
		return slices.Concat(list...), nil
	}
	list, found := make([][]byte, q.heads().Heads), make([][]heads.Problem, q.heads().Heads)
	mean, err := e.eachHead(q.ctx, q.layer, l.values, func(h int, weights []float32) {
		if !l.values {
			found[h] = oneHead(q.heads(), weights).Check()
		}
		list[h] = small(strconv.Itoa(h), weights)
	})
	if err != nil {
		return nil, err
	}
	if !l.values {
		e.note(q.layer, found)
	}
	e.memo.put(e.meanKey(q.layer, l.values), mean) // the page requests it next
	layers := ofKind(e.record, q.heads().Kind)
	if slices.Contains(e.outline.Layers[layers[len(layers)-1]].Summaries, meanOfLayers) {
		e.tally(layers, l.values, true)
	}
	return slices.Concat(list...), nil
}

// head returns one head, or the zoomed part of it. It returns exact weights on request,
// such as for the row under the pointer.
func head(q *query) (any, error) {
	name, err := q.entry.named("head", q.values.Get("head"), q.layer)
	if err != nil {
		return nil, err
	}
	weights, err := q.entry.opened(q.layer, name, q.lens.values)
	if err != nil {
		return nil, err
	}
	m := q.entry.shown(q.layer, name, weights, q.lens)
	rows, err := q.span("rows", m.rows)
	if err != nil {
		return nil, err
	}
	cols, err := q.span("cols", m.cols)
	if err != nil {
		return nil, err
	}
	lo, hi := m.bounds()
	if q.values.Get("exact") != "1" {
		part, bq, bk := m.pool(rows, cols, headSize)
		return part.appendWire(make([]byte, 0, len(part.w)+64), bq, bk, lo, hi, false), nil
	}
	if rows.len() > 1 && rows.len()*m.cols > maxExact {
		return nil, bad("exact weights come one row at a time, or at most %d of them", maxExact)
	}
	row := matrix{rows.len(), m.cols, m.w[rows.from*m.cols : rows.to*m.cols], m.signed}
	return row.appendWire(nil, 1, 1, lo, hi, true), nil
}

// measures returns the measures of all heads of a layer, or of one head or summary, in the
// order of columns, computed from the weights that the lens shows.
func measures(q *query) (any, error) {
	if !q.values.Has("head") {
		return q.entry.measure(q.layer, q.lens)
	}
	name, err := q.entry.named("head", q.values.Get("head"), q.layer)
	if err != nil {
		return nil, err
	}
	row, err := q.entry.measureHead(q.layer, name, q.lens)
	return [][]strictjson.Number{row}, err
}

// divergence returns the divergence of all heads of a layer, or of one, from a head of
// this record or another: null if the tokens differ.
func (s *Server) divergence(q *query) (any, error) {
	of := q.entry
	if id := q.values.Get("of"); id != "" {
		if of = s.store.get(id); of == nil {
			return nil, errGone
		}
	}
	layer, name, _ := strings.Cut(q.values.Get("from"), ".")
	at, err := number("from", layer, len(of.record.Layers))
	if err != nil {
		return nil, err
	}
	if name, err = of.named("of", name, at); err != nil {
		return nil, err
	}
	var names []string
	if one := q.values.Get("head"); one != "" {
		if _, err := q.entry.named("head", one, q.layer); err != nil {
			return nil, err
		}
		names = []string{one}
	} else {
		for h := range q.heads().Heads {
			names = append(names, strconv.Itoa(h))
		}
	}
	e, l := q.entry, q.lens
	fromQ, fromK := of.axes(at)
	toQ, toK := e.axes(q.layer)
	if !slices.Equal(fromQ.Tokens, toQ.Tokens) || !slices.Equal(fromK.Tokens, toK.Tokens) {
		return slices.Repeat([]strictjson.Number{strictjson.NaN}, len(names)), nil
	}
	weights, err := of.distribution(at, name, l)
	if err != nil {
		return nil, err
	}
	one := of.through(at, name, weights, l)
	return inParallel(len(names), func(i int) (strictjson.Number, error) {
		if err := q.ctx.Err(); err != nil {
			return 0, err // the page no longer needs it
		}
		weights, err := e.distribution(q.layer, names[i], l)
		if err != nil {
			return 0, err
		}
		return strictjson.Number(heads.Divergence(one.Shares(0), e.through(q.layer, names[i], weights, l).Shares(0), len(one.Queries))), nil
	})
}

// neurons returns the queries [Lq E] and the keys [Lk E] of a head, from which its scores
// are computed.
func neurons(q *query) (any, error) {
	l := q.heads()
	size := l.VectorSize()
	h, err := number("head", q.values.Get("head"), l.Heads)
	if err != nil {
		return nil, err
	}
	if size == 0 {
		return nil, bad("this layer has no queries and keys, only weights")
	}
	queries, keys, err := q.entry.vectors(q.layer, h)
	if err != nil {
		return nil, err
	}
	b := matrix{rows: len(l.Queries), cols: size, w: queries}.appendWire(nil, 1, 1, 0, 0, true)
	return matrix{rows: len(l.Keys), cols: size, w: keys}.appendWire(b, 1, 1, 0, 0, true), nil
}

// check returns the errors in the weights of a layer, as text.
func check(q *query) (any, error) {
	lines, err := q.entry.warnings(q.layer)
	return append([]string{}, lines...), err
}
