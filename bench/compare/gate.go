package main

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/attn-go/attn/bench/history"
)

// errSlower says that a ratio has fallen.
var errSlower = errors.New("slower than before, compared with other libraries")

// gate compares a table of a record with the newest table with the same title, kind of machine and number of threads.
// It reports each ratio that is more than percent lower.
func gate(records []*history.Record, r *history.Record, t *history.Table, percent float64, messages io.Writer) error {
	i := slices.IndexFunc(records, func(old *history.Record) bool {
		was := old.Find(t.Title)
		return was != nil && old.Kind() == r.Kind() && was.Threads == t.Threads && was.Rows != nil
	})
	if i < 0 {
		return fmt.Errorf("no measurement of %s on %s with %d threads to compare with; --save makes one",
			t.Title, r.Kind(), t.Threads)
	}
	was, fallen := records[i].Find(t.Title), 0
	for _, now := range t.Rows {
		at := slices.IndexFunc(was.Rows, func(old history.Row) bool { return old.Work == now.Work })
		if at < 0 {
			continue
		}
		for p, peer := range t.Peers {
			q := slices.IndexFunc(was.Peers, func(v history.Version) bool { return v.Name == peer.Name })
			if q < 0 || now.Peers[p].Ratio == 0 {
				continue
			}
			if ratio, old := now.Peers[p].Ratio, was.Rows[at].Peers[q].Ratio; ratio < old*(1-percent/100) {
				fallen++
				fmt.Fprintf(messages, "%s: %.2f× %s, %.2f× on %s\n", now.Work, ratio, peer.Name, old, records[i].Date)
			}
		}
	}
	if fallen > 0 {
		return errSlower
	}
	return nil
}
