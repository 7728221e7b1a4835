package view

import (
	"fmt"
	"sync"

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
		found := newJudge(l)
		for h := range l.Heads {
			found.head(l.Head(h))
		}
		list = append(list, found.lines()...)
	}
	if len(list) > mostWarnings {
		list = append(list[:mostWarnings], fmt.Sprintf("and %d more", len(list)-mostWarnings))
	}
	return list
}

// judge collects errors in the weights of the heads of a layer. Its methods are safe for
// concurrent use.
type judge struct {
	layer *heads.Layer

	mu     sync.Mutex
	judged int // heads
	rows   map[heads.Cause]int
}

func newJudge(l *heads.Layer) *judge { return &judge{layer: l, rows: map[heads.Cause]int{}} }

// head checks the weights of one head.
func (j *judge) head(weights []float32) {
	found := oneHead(j.layer, weights).Check()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.judged++
	for _, p := range found {
		j.rows[p.Cause] += p.Rows
	}
}

// lines returns a line for each kind of error in the weights of the layer.
func (j *judge) lines() []string {
	list := []string{}
	for _, c := range []struct {
		cause heads.Cause
		what  string
	}{{heads.NotFinite, "have numbers that are not finite"}, {heads.Negative, "have negative weights"}, {heads.WrongSum, "do not sum to 1"}} {
		if n := j.rows[c.cause]; n > 0 {
			list = append(list, fmt.Sprintf("%s: %d of %d rows %s", j.layer.Name, n, j.layer.Heads*len(j.layer.Queries), c.what))
		}
	}
	return list
}

// note stores the errors found while all heads of a layer were drawn, so that warnings need not
// read or compute the heads again.
func (e *entry) note(layer int, j *judge) {
	if j.judged == j.layer.Heads {
		e.wrong.Store(layer, j.lines())
	}
}

// warnings returns the errors in the weights of a layer.
func (e *entry) warnings(layer int) ([]string, error) {
	if lines, known := e.wrong.Load(layer); known {
		return lines.([]string), nil
	}
	j := newJudge(&e.record.Layers[layer])
	_, err := inParallel(j.layer.Heads, func(h int) (any, error) {
		weights, err := e.head(layer, h)
		if err == nil {
			j.head(weights)
		}
		return nil, err
	})
	if err != nil {
		return nil, err
	}
	e.note(layer, j)
	return j.lines(), nil
}
