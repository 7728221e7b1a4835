package view

import (
	"fmt"

	"github.com/attn-go/attn/heads"
)

// mostWarnings is how many layers are named before the rest is only counted.
const mostWarnings = 5

// allWarnings returns those of all layers of a record in memory.
func allWarnings(r *heads.Record) []string {
	list := []string{}
	for i := range r.Layers {
		l := &r.Layers[i]
		if l.Weights == nil {
			continue // in a file, computed later, or there are none
		}
		lines, _ := warnings(l, func(h int) ([]float32, error) { return l.Head(h), nil })
		list = append(list, lines...)
	}
	if len(list) > mostWarnings {
		list = append(list[:mostWarnings], fmt.Sprintf("and %d more", len(list)-mostWarnings))
	}
	return list
}

// warnings returns a line for each way in which the weights of a layer are none.
func warnings(l *heads.Layer, head func(h int) ([]float32, error)) (list []string, err error) {
	rows := map[heads.Cause]int{}
	for h := range l.Heads {
		one := *l
		one.Heads, one.Chosen, one.KeyHeads = 1, nil, nil
		if one.Weights, err = head(h); err != nil {
			return nil, err
		}
		for _, p := range one.Check() {
			rows[p.Cause] += p.Rows
		}
	}
	for _, c := range []struct {
		cause heads.Cause
		what  string
	}{{heads.NotFinite, "have numbers that are not finite"}, {heads.Negative, "have negative weights"}, {heads.WrongSum, "do not sum to 1"}} {
		if n := rows[c.cause]; n > 0 {
			list = append(list, fmt.Sprintf("%s: %d of %d rows %s", l.Name, n, l.Heads*len(l.Queries), c.what))
		}
	}
	return list, nil
}
