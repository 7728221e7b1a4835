package view

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/strictjson"
)

// Switcher is a Recorder whose model can run without some heads.
type Switcher interface {
	Recorder
	// Output returns what the model makes of the texts of a record with all heads, and without those of off, by layer.
	Output(ctx context.Context, r *heads.Record, off map[string][]int) (Output, error)
	// Effects returns for each layer how its output changes without each of its heads alone.
	Effects(ctx context.Context, r *heads.Record) (map[string][]float64, error)
	// Lens returns what the model would write after each token if it ended before a layer, or behind the last one: the
	// tokens that it has read, and the most probable ones, by layer and token.
	Lens(ctx context.Context, r *heads.Record) (tokens []string, layers [][][]Predicted, err error)
}

// Predicted is a token that a model may write.
type Predicted struct {
	Label       string  `json:"label"`
	Probability float64 `json:"p"`
}

// Output is what a model makes of a text, with all heads and without some.
type Output struct {
	What string      `json:"what"` // what the numbers are: "probability of next word"
	Rows []OutputRow `json:"rows"`
}

// OutputRow is a number of an Output.
type OutputRow struct {
	Label  string  `json:"label"`
	Before float64 `json:"before"` // with all heads
	After  float64 `json:"after"`
}

// effects are those of all heads of an entry, computed once.
type effects struct {
	sync.Mutex
	byLayer map[string][]float64
}

// switcher returns what can run the model of an entry without heads.
func (s *Server) switcher(e *entry) (Switcher, error) {
	if e.recorder != nil {
		if y, ok := e.recorder.(Switcher); ok {
			return y, nil
		}
	}
	return nil, refused(http.StatusNotFound, "no model is there to run: heads of a file cannot be switched off")
}

// output answers what a model makes of a record's text without the heads that off lists, as layer.head,layer.head.
func (s *Server) output(r *http.Request) (any, error) {
	e := s.store.get(r.URL.Query().Get("record"))
	if e == nil {
		return nil, errGone
	}
	y, err := s.switcher(e)
	if err != nil {
		return nil, err
	}
	off := map[string][]int{}
	for name := range strings.SplitSeq(r.URL.Query().Get("off"), ",") {
		if name == "" {
			continue
		}
		layer, head, _ := strings.Cut(name, ".")
		at, err := number("layer of off", layer, len(e.record.Layers))
		if err != nil {
			return nil, err
		}
		l := &e.record.Layers[at]
		h, err := strconv.Atoi(head)
		if err != nil || h < 0 || h >= l.Heads {
			return nil, bad("head of off is not one of %d", l.Heads)
		}
		off[l.Name] = append(off[l.Name], h)
	}
	var out Output
	err = s.alone(r.Context(), func() (err error) {
		out, err = y.Output(r.Context(), e.record, off)
		return err
	})
	if err != nil {
		return nil, refused(http.StatusUnprocessableEntity, "%w", err)
	}
	return out, nil
}

// lens answers what the model would write at each token if it ended at a layer.
func (s *Server) lens(r *http.Request) (any, error) {
	e := s.store.get(r.URL.Query().Get("record"))
	if e == nil {
		return nil, errGone
	}
	y, err := s.switcher(e)
	if err != nil {
		return nil, err
	}
	var out struct {
		Tokens []string        `json:"tokens"`
		Layers [][][]Predicted `json:"layers"`
	}
	err = s.alone(r.Context(), func() (err error) {
		out.Tokens, out.Layers, err = y.Lens(r.Context(), e.record)
		return err
	})
	if err != nil {
		return nil, refused(http.StatusUnprocessableEntity, "%w", err)
	}
	return out, nil
}

// effects answers how the output of the model changes without each head of a layer alone.
func (s *Server) effects(q *query) (any, error) {
	y, err := s.switcher(q.entry)
	if err != nil {
		return nil, err
	}
	all := &q.entry.effects
	all.Lock()
	defer all.Unlock()
	if all.byLayer == nil {
		err := s.alone(q.ctx, func() (err error) {
			all.byLayer, err = y.Effects(q.ctx, q.entry.record)
			return err
		})
		if err != nil {
			all.byLayer = nil
			return nil, refused(http.StatusUnprocessableEntity, "%w", err)
		}
	}
	list := []strictjson.Number{}
	for _, v := range all.byLayer[q.heads().Name] {
		list = append(list, strictjson.Number(v))
	}
	return list, nil
}

// alone calls f while no other model runs, because a model uses all processors.
func (s *Server) alone(ctx context.Context, f func() error) error {
	select {
	case s.asking <- struct{}{}:
		defer func() { <-s.asking }()
	case <-ctx.Done():
		return ctx.Err()
	}
	return f()
}
