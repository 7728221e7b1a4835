package view

import (
	"fmt"

	"github.com/attn-go/attn/heads"
)

// mostWarnings is how many layers are named before the rest is only counted.
const mostWarnings = 5

// warnings returns a line for each layer and each way in which its weights are
// none.
func warnings(r *heads.Record) []string {
	var list []string
	for i := range r.Layers {
		l := &r.Layers[i]
		rows := map[heads.Cause]int{}
		for _, p := range l.Check() {
			rows[p.Cause] += p.Rows
		}
		for _, c := range []struct {
			cause heads.Cause
			what  string
		}{{heads.NotFinite, "have numbers that are not finite"}, {heads.Negative, "have negative weights"}, {heads.WrongSum, "do not sum to 1"}} {
			if n := rows[c.cause]; n > 0 {
				list = append(list, fmt.Sprintf("%s: %d of %d rows %s", l.Name, n, l.Heads*len(l.Queries), c.what))
			}
		}
	}
	if len(list) > mostWarnings {
		list = append(list[:mostWarnings], fmt.Sprintf("and %d more", len(list)-mostWarnings))
	}
	return list
}
