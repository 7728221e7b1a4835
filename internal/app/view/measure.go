package view

import (
	"errors"
	"slices"
	"strconv"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/par"
	"github.com/attn-go/attn/internal/strictjson"
)

// seen is a layer in a lens.
type seen struct {
	layer int
	lens  lens
}

// measure returns the measures of a layer as the lens shows it: a row for each
// head.
func (e *entry) measure(layer int, l lens) ([][]strictjson.Number, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	at := seen{layer, l}
	if e.measures[at] != nil {
		return e.measures[at], nil
	}
	rows, err := inParallel(e.record.Layers[layer].Heads, func(h int) ([]strictjson.Number, error) {
		return e.measureHead(layer, strconv.Itoa(h), l)
	})
	if err != nil {
		return nil, err
	}
	e.measures[at] = rows
	return rows, nil
}

// inParallel returns the results of work for 0 to n-1, computed on all processors.
func inParallel[T any](n int, work func(i int) (T, error)) ([]T, error) {
	list := make([]T, n)
	errs := make([]error, n)
	par.For(n, 1, func(i, _ int) { list[i], errs[i] = work(i) })
	return list, errors.Join(errs...)
}

// distribution returns weights or, if value-weighted, each row divided by its sum:
// measures need rows that sum to 1.
func (e *entry) distribution(layer int, name string, l lens) ([]float32, error) {
	weights, err := e.weights(layer, name, l.values)
	if err != nil || !l.values || name == rollout || e.signed(layer, name) { // a signed layer has shares
		return weights, err
	}
	weights = slices.Clone(weights)
	n := len(e.record.Layers[layer].Keys)
	for at := 0; at < len(weights); at += n {
		normalise(weights[at : at+n])
	}
	return weights, nil
}

func (e *entry) measureHead(layer int, name string, l lens) (row []strictjson.Number, err error) {
	weights, err := e.distribution(layer, name, l)
	if err != nil {
		return nil, err
	}
	named := map[string]float64{}
	for _, m := range e.through(layer, name, weights, l).Measure(0, e.record.Special).List() {
		named[m.Name] = m.Value
	}
	for _, c := range columns {
		row = append(row, strictjson.Number(named[c.Key]))
	}
	for i := range e.scores {
		x := strictjson.NaN // summaries have no scores
		if h, err := strconv.Atoi(name); err == nil {
			x = e.scores[i].score(&e.record.Layers[layer], h)
		}
		row = append(row, x)
	}
	return row, nil
}

// through returns a layer of one head or summary with these weights, as the lens shows it.
func (e *entry) through(layer int, name string, weights []float32, l lens) *heads.Layer {
	one := oneHead(&e.record.Layers[layer], weights)
	one.Signed = e.signed(layer, name)
	if !l.words && !l.hide {
		return one
	}
	r := &heads.Record{Special: e.record.Special, Layers: []heads.Layer{*one}}
	for _, a := range e.outline.Axes { // MergeWords derives from all texts of the record how tokens mark words
		r.Layers = append(r.Layers, heads.Layer{Queries: a.Tokens})
	}
	if l.words {
		r = r.MergeWords()
	}
	if l.hide {
		r = r.WithoutSpecial(l.renorm)
	}
	return &r.Layers[0]
}

// shown returns weights of a head or summary as the lens shows them.
func (e *entry) shown(layer int, name string, weights []float32, l lens) matrix {
	x := e.through(layer, name, weights, l)
	return matrix{len(x.Queries), len(x.Keys), x.Weights, x.Signed}
}

// signed reports whether a head or a summary of a layer is signed. A rollout is not.
func (e *entry) signed(layer int, name string) bool {
	r := e.record
	switch name {
	case rollout:
		return false
	case meanOfLayers:
		return slices.ContainsFunc(ofKind(r, r.Layers[layer].Kind), func(i int) bool { return r.Layers[i].Signed })
	}
	return r.Layers[layer].Signed
}

// oneHead returns a layer with the tokens of l and a single head with these weights.
func oneHead(l *heads.Layer, weights []float32) *heads.Layer {
	one := *l
	one.Weights, one.Heads, one.Chosen, one.KeyHeads = weights, 1, nil, nil
	one.ValueNorms, one.QueryVectors, one.KeyVectors = nil, nil, nil
	return &one
}
