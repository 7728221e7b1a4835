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
	// Output returns what the model makes of the texts of a record as it is, and with changes.
	Output(ctx context.Context, r *heads.Record, c Changes) (Output, error)
	// Effects returns for each layer how its output changes without each of its heads alone.
	Effects(ctx context.Context, r *heads.Record) (map[string][]float64, error)
	// Predictions returns what each position predicts if the model ended before a layer, or behind the last one.
	Predictions(ctx context.Context, r *heads.Record) (Predictions, error)
}

// Pruner is a Switcher that can write its model without some heads.
type Pruner interface {
	Switcher
	// PrunesTo returns the directory that Prune writes.
	PrunesTo() string
	// Prune writes the model without heads, by the name of the layer, to a new directory. It does not overwrite one.
	Prune(ctx context.Context, r *heads.Record, off map[string][]int) (Pruned, error)
}

// Pruned describes a pruned model.
type Pruned struct {
	Dir     string      `json:"dir"`
	Sizes   []OutputRow `json:"sizes"`  // before and after
	Output  Output      `json:"output"` // of the whole model, and of the pruned one
	Note    string      `json:"note"`   // why the model is not smaller; "" if it is
	Command string      `json:"command"`
}

// Changes change a run of a model. The zero value changes nothing.
type Changes struct {
	Off     map[string][]int // heads without an output, by the name of the layer
	Patched map[string][]int // heads with the weights that they have in Other, by the name of the layer
	Masked  map[string][]int // keys that no query attends to, by the name of the layer
	// Other is the record of another text, of as many tokens. It is only used with Patched.
	Other *heads.Record
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

// Output is what a model makes of a text, as it is and with changes.
type Output struct {
	What string      `json:"what"` // what the numbers are: "probability of next word"
	Rows []OutputRow `json:"rows"`
}

// OutputRow is a number of an Output.
type OutputRow struct {
	Label  string  `json:"label"`
	Before float64 `json:"before"` // without changes
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

// output answers what a model makes of a record's text with changes: without the heads that off lists, with those of
// patch as they attend in the record other, and without the tokens of mask.
func (s *Server) output(y Switcher, e *entry, r *http.Request) (any, error) {
	c, err := e.changes(r)
	if other := s.store.get(r.URL.Query().Get("other")); other != nil {
		c.Other = other.record
	} else if err == nil && len(c.Patched) > 0 {
		err = errGone
	}
	if err != nil {
		return nil, err
	}
	return y.Output(r.Context(), e.record, c)
}

// prune writes a model without the heads that off lists. The request does not name the directory.
func prune(y Switcher, e *entry, r *http.Request) (any, error) {
	p, ok := y.(Pruner)
	if !ok {
		return nil, refused(http.StatusNotFound, "this page writes no model: start attn view with --prune-to DIR")
	}
	off, err := e.listed(r, "off")
	if err != nil {
		return nil, err
	}
	if len(off) == 0 {
		return nil, bad("no head is switched off")
	}
	return p.Prune(r.Context(), e.record, off)
}

// changes returns the changes that the address of a request names.
func (e *entry) changes(r *http.Request) (c Changes, err error) {
	for what, list := range map[string]*map[string][]int{"off": &c.Off, "patch": &c.Patched, "mask": &c.Masked} {
		if *list, err = e.listed(r, what); err != nil {
			break
		}
	}
	return c, err
}

// listed returns heads by the name of their layer, from a list such as 0.3,2.5 in the address of a request. For mask, these
// are keys, and a key of a layer is masked in all layers with the keys of the same text.
func (e *entry) listed(r *http.Request, what string) (map[string][]int, error) {
	list := map[string][]int{}
	for name := range strings.SplitSeq(r.URL.Query().Get(what), ",") {
		if name == "" {
			continue
		}
		layer, item, _ := strings.Cut(name, ".")
		at, err := number("layer of "+what, layer, len(e.record.Layers))
		if err != nil {
			return nil, err
		}
		l := &e.record.Layers[at]
		n := l.Heads
		if what == "mask" {
			n = len(l.Keys)
		}
		i, err := number("number in "+what, item, n)
		if err != nil {
			return nil, err
		}
		for j := range e.record.Layers {
			if other := &e.record.Layers[j]; j == at || what == "mask" && (other.Kind == heads.Decoder) == (l.Kind == heads.Decoder) {
				list[other.Name] = append(list[other.Name], i)
			}
		}
	}
	return list, nil
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
