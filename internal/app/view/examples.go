package view

import (
	"os"
	"slices"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/pruning/reports"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/strictjson"
)

// Examples are the best examples of heads in a corpus.
type Examples struct{ reports.Examples }

// example is an example for the page.
type example struct {
	reports.Example
	Q []string `json:"q,omitempty"` // labels of the queries, if they are another text than the keys
	K []string `json:"k"`           // labels of the keys
}

// ReadExamples reads a file with examples, as attn heads --examples --json writes it.
func (o *Options) ReadExamples(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	bad := func(format string, args ...any) error { return input.Errorf(path, format, args...) }
	o.Examples = &Examples{}
	if err := strictjson.Lenient(data, &o.Examples.Examples); err != nil || o.Examples.Criterion == "" {
		return bad("is not the output of attn heads --examples --json")
	}
	for _, l := range o.Examples.Layers {
		if len(l.Examples) != l.Heads {
			return bad("layer %s has examples of %d heads, want %d", quote.Text(l.Name), len(l.Examples), l.Heads)
		}
		for _, x := range slices.Concat(l.Examples...) {
			if n := len(x.Keys); len(x.Weights) != n || min(x.Key, x.Query) < 0 || x.Key >= n || x.Query >= len(x.Queries) {
				return bad("layer %s has an example of query %d of %d and key %d of %d with %d weights",
					quote.Text(l.Name), x.Query, len(x.Queries), x.Key, n, len(x.Weights))
			}
		}
	}
	return nil
}

// about describes the examples to the page; nil if there are none.
func (e *Examples) about() any {
	if e == nil {
		return nil
	}
	return map[string]any{"criterion": e.Criterion, "texts": e.Texts, "data": e.Data}
}

// examples returns the examples of a head of the model.
func (s *Server) examples(q *query) (any, error) {
	l, list := q.heads(), []example{}
	h, err := number("head", q.values.Get("head"), l.Heads)
	if err != nil || s.options.Examples == nil {
		return list, err
	}
	for _, of := range s.options.Examples.Layers {
		if of.Name != l.Name {
			continue
		}
		if of.Heads != l.Heads {
			h = l.Number(h)
		}
		if h >= of.Heads {
			break
		}
		for _, x := range of.Examples[h] {
			r := heads.Record{Layers: []heads.Layer{{Queries: x.Queries, Keys: x.Keys}}, Special: x.Special}
			shown := example{Example: x, K: r.Labels(x.Keys)}
			if !slices.Equal(x.Queries, x.Keys) {
				shown.Q = r.Labels(x.Queries)
			}
			shown.Queries, shown.Keys = nil, nil
			list = append(list, shown)
		}
	}
	return list, nil
}
