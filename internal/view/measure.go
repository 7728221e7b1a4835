package view

import (
	"math"

	"github.com/attn-go/attn/heads"
)

// seen is a layer through a lens.
type seen struct {
	layer int
	lens  lens
}

// measure returns the measures of a layer as the lens shows it: a row for each
// head. A measure that is no number is nil, for which JSON has a word.
func (e *entry) measure(layer int, l lens) [][]*float64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	at := seen{layer, l}
	if e.measures[at] == nil {
		rows := make([][]*float64, e.record.Layers[layer].Heads)
		for h := range rows {
			named := map[string]float64{}
			through := e.through(layer, h, l)
			for _, m := range through.Measure(0, e.record.Special).List() {
				named[m.Name] = m.Value
			}
			for _, c := range columns {
				x := named[c.Key]
				if math.IsNaN(x) || math.IsInf(x, 0) {
					rows[h] = append(rows[h], nil)
				} else {
					rows[h] = append(rows[h], &x)
				}
			}
		}
		e.measures[at] = rows
	}
	return e.measures[at]
}

// through returns a layer of one head as the lens shows it.
func (e *entry) through(layer, h int, l lens) *heads.Layer {
	one := e.record.Layers[layer]
	one.Weights, one.Heads, one.Chosen = one.Head(h), 1, nil
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
