package view

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/attn-go/attn/heads"
)

// refusal is an error with the status of its answer. Other errors are internal.
type refusal struct {
	error
	status int
}

func refused(status int, format string, args ...any) error {
	return &refusal{fmt.Errorf(format, args...), status}
}

func bad(format string, args ...any) error { return refused(http.StatusBadRequest, format, args...) }

var errGone = refused(http.StatusGone, "the server has dropped this record: request its text again")

// respond answers with the result of f.
func respond(f func(r *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		value, err := f(r)
		if err != nil {
			status := http.StatusInternalServerError
			if known, ok := err.(*refusal); ok {
				status = known.status
			}
			refuse(w, status, err.Error())
			return
		}
		kind, body := encode(value)
		answer(w, http.StatusOK, kind, body)
	}
}

// encode returns the content type and the body of an answer: bytes unchanged, other values as JSON.
func encode(value any) (kind string, body []byte) {
	if b, ok := value.([]byte); ok {
		return "application/octet-stream", b
	}
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // all types of answers can be encoded
	}
	return "application/json", text
}

// query is a request for data of a layer.
type query struct {
	ctx    context.Context
	values url.Values
	entry  *entry
	layer  int // index in the record
	lens   lens
}

// ofLayer returns a function that reads the record, the layer and the lens from the address.
func (s *Server) ofLayer(f func(q *query) (any, error)) func(r *http.Request) (any, error) {
	return func(r *http.Request) (value any, err error) {
		q := &query{ctx: r.Context(), values: r.URL.Query()}
		if q.entry = s.store.get(q.values.Get("record")); q.entry == nil {
			return nil, errGone
		}
		special := q.values.Get("special")
		q.lens = lens{
			hide: special != "", renorm: special == "renorm",
			words: q.values.Get("words") == "1", values: q.values.Get("values") == "1",
		}
		if !slices.Contains([]string{"", "hide", "renorm"}, special) {
			return nil, bad("special is hide, renorm or nothing")
		}
		if q.layer, err = number("layer", q.values.Get("layer"), len(q.entry.record.Layers)); err != nil {
			return nil, err
		}
		if q.lens.values && q.heads().ValueNorms == nil {
			return nil, bad("this layer has no norms of values, so nothing is value-weighted")
		}
		return f(q)
	}
}

// heads returns the layer.
func (q *query) heads() *heads.Layer { return &q.entry.record.Layers[q.layer] }

// number parses a number from 0 to n-1.
func number(name, text string, n int) (int, error) {
	i, err := strconv.Atoi(text)
	if err != nil || i < 0 || i >= n {
		return 0, bad("%s is not one of %d", name, n)
	}
	return i, nil
}

// named checks that text names a head or a summary of a layer, and returns the name.
func (e *entry) named(name, text string, layer int) (string, error) {
	if slices.Contains(e.outline.Layers[layer].Summaries, text) {
		return text, nil
	}
	h, err := number(name, text, e.record.Layers[layer].Heads)
	return strconv.Itoa(h), err
}

// span parses a range "from-to" within n; without one it returns all of n.
func (q *query) span(name string, n int) (s span, err error) {
	text := q.values.Get(name)
	if text == "" {
		return span{0, n}, nil
	}
	if _, err := fmt.Sscanf(text, "%d-%d", &s.from, &s.to); err != nil || s.from < 0 || s.from > s.to || s.to > n {
		return s, bad("%s is not a range within %d", name, n)
	}
	return s, nil
}
