package view

import (
	"context"
	"net/http"
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
	// Predictions returns what each position predicts if the model ended before a layer, or behind the last one.
	Predictions(ctx context.Context, r *heads.Record) (Predictions, error)
}

// Predictions are the most probable tokens at each position, by layer and position; the last layer is the output.
type Predictions struct {
	Tokens []string         `json:"tokens"` // that the model has read
	Layers [][][]Prediction `json:"layers"`
}

// Prediction is a token that a model may write.
type Prediction struct {
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
	if y, ok := e.recorder.(Switcher); ok {
		return y, nil
	}
	return nil, refused(http.StatusNotFound, "no model is there to run: heads of a file cannot be switched off")
}

// ofModel returns a function that calls f for the record in the address, while no other model runs.
func (s *Server) ofModel(f func(y Switcher, e *entry, r *http.Request) (any, error)) func(r *http.Request) (any, error) {
	return func(r *http.Request) (value any, err error) {
		e := s.store.get(r.URL.Query().Get("record"))
		if e == nil {
			return nil, errGone
		}
		y, err := s.switcher(e)
		if err != nil {
			return nil, err
		}
		err = s.alone(r.Context(), func() (err error) {
			value, err = f(y, e, r)
			return err
		})
		return value, unanswered(err)
	}
}

// unanswered returns an error of a model as the refusal of a request.
func unanswered(err error) error {
	if _, ok := err.(*refusal); ok || err == nil {
		return err
	}
	return refused(http.StatusUnprocessableEntity, "%w", err)
}

// output answers what a model makes of a record's text without the heads that off lists, as layer.head,layer.head.
func output(y Switcher, e *entry, r *http.Request) (any, error) {
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
		h, err := number("head of off", head, l.Heads)
		if err != nil {
			return nil, err
		}
		off[l.Name] = append(off[l.Name], h)
	}
	return y.Output(r.Context(), e.record, off)
}

// predictions answers what each layer predicts.
func predictions(y Switcher, e *entry, r *http.Request) (any, error) {
	return y.Predictions(r.Context(), e.record)
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
			return nil, unanswered(err)
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
