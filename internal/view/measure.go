package view

import (
	"errors"
	"math"
	"runtime"
	"sync"

	"github.com/attn-go/attn/heads"
)

// seen is a layer through a lens.
type seen struct {
	layer int
	lens  lens
}

// measure returns the measures of a layer as the lens shows it: a row for each
// head. A measure that is no number is nil, for which JSON has a word.
func (e *entry) measure(layer int, l lens) ([][]*float64, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	at := seen{layer, l}
	if e.measures[at] != nil {
		return e.measures[at], nil
	}
	rows := make([][]*float64, e.record.Layers[layer].Heads)
	errs := make([]error, len(rows))
	var wait sync.WaitGroup
	for part := range min(len(rows), runtime.GOMAXPROCS(0)) {
		wait.Go(func() {
			for h := part; h < len(rows); h += runtime.GOMAXPROCS(0) {
				rows[h], errs[h] = e.measureHead(layer, h, l)
			}
		})
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	e.measures[at] = rows
	return rows, nil
}

func (e *entry) measureHead(layer, h int, l lens) (row []*float64, err error) {
	weights, err := e.head(layer, h)
	if err != nil {
		return nil, err
	}
	named := map[string]float64{}
	for _, m := range e.through(layer, weights, l).Measure(0, e.record.Special).List() {
		named[m.Name] = m.Value
	}
	for _, c := range columns {
		x := named[c.Key]
		if math.IsNaN(x) || math.IsInf(x, 0) {
			row = append(row, nil)
		} else {
			row = append(row, &x)
		}
	}
	return row, nil
}

// through returns a layer of one head, with these weights, as the lens shows it.
func (e *entry) through(layer int, weights []float32, l lens) *heads.Layer {
	one := e.record.Layers[layer]
	one.Weights, one.Heads, one.Chosen = weights, 1, nil
	if l == (lens{}) {
		return &one
	}
	// The marks of words are those of all texts of the record.
	r := &heads.Record{Special: e.record.Special, Layers: []heads.Layer{one}}
	for _, other := range e.record.Layers {
		r.Layers = append(r.Layers, heads.Layer{Kind: other.Kind, Queries: other.Queries, Keys: other.Keys})
	}
	if l.words {
		r = r.MergeWords()
	}
	if l.hide {
		r = r.WithoutSpecial(l.renorm)
	}
	return &r.Layers[0]
}
