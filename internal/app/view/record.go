package view

import (
	"fmt"
	"slices"

	"github.com/attn-go/attn/heads"
)

// mostWarnings is the number of warnings to list; the rest is only counted.
const mostWarnings = 5

// allWarnings returns the warnings of all layers whose weights are in memory.
func allWarnings(r *heads.Record) []string {
	list := []string{}
	for i := range r.Layers {
		l := &r.Layers[i]
		if l.Weights == nil {
			continue // in a file, computed later, or empty
		}
		list = append(list, describe(l, l.Check())...)
	}
	if len(list) > mostWarnings {
		list = append(list[:mostWarnings], fmt.Sprintf("and %d more", len(list)-mostWarnings))
	}
	return list
}

// describe returns a line for each kind of error in the weights of a layer.
func describe(l *heads.Layer, found []heads.Problem) []string {
	rows := map[heads.Cause]int{}
	for _, p := range found {
		rows[p.Cause] += p.Rows
	}
	list := []string{}
	for _, c := range []struct {
		cause heads.Cause
		what  string
	}{{heads.NotFinite, "have numbers that are not finite"}, {heads.Negative, "have negative weights"}, {heads.WrongSum, "do not sum to 1"}} {
		if n := rows[c.cause]; n > 0 {
			list = append(list, fmt.Sprintf("%s: %d of %d rows %s", l.Name, n, l.Heads*len(l.Queries), c.what))
		}
	}
	return list
}

// note stores the errors in the heads of a layer as lines, and returns the lines. thumbs also calls it, because it has
// all heads: warnings then need not read or compute them again.
func (e *entry) note(layer int, found [][]heads.Problem) []string {
	lines := describe(&e.record.Layers[layer], slices.Concat(found...))
	e.wrong.Store(layer, lines)
	return lines
}

// warnings returns the errors in the weights of a layer.
func (e *entry) warnings(layer int) ([]string, error) {
	if lines, known := e.wrong.Load(layer); known {
		return lines.([]string), nil
	}
	l := &e.record.Layers[layer]
	found, err := inParallel(l.Heads, func(h int) ([]heads.Problem, error) {
		weights, err := e.head(layer, h)
		if err != nil {
			return nil, err
		}
		return oneHead(l, weights).Check(), nil
	})
	if err != nil {
		return nil, err
	}
	return e.note(layer, found), nil
}
