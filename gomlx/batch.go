package main

import (
	"iter"
	"slices"

	"github.com/attn-go/attn/models"
)

// lengths are the numbers of tokens to which the sources and the targets of a batch are padded.
type lengths struct{ source, target int }

// lengthsOf returns the longest source and target.
func lengthsOf(pairs []models.Example) (l lengths) {
	for _, p := range pairs {
		l.source, l.target = max(l.source, len(p.IDs)), max(l.target, len(p.Targets))
	}
	return l
}

// within reports whether a batch of lengths l can be padded to m.
func (l lengths) within(m lengths) bool { return l.source <= m.source && l.target <= m.target }

func (l lengths) sum() int { return l.source + l.target }

const (
	// mostPrograms limits the lengths of a run, because a backend compiles a program for each. XLA takes half a minute
	// for one of a large network.
	mostPrograms = 4
	// roundTo is the multiple to which lengths are rounded up.
	roundTo = 8
	// mostCuts limits the lengths of an axis among which cut chooses.
	mostCuts = 64
)

// cut returns at most mostPrograms lengths, ascending in source and target. Each batch fits the last. Among all such
// lengths, these need the fewest tokens if each batch is padded to the first that it fits.
func cut(batches iter.Seq[[]models.Example]) []lengths {
	// Counts the batches for each cell of a grid of lengths.
	var all []lengths
	var longest lengths
	for b := range batches {
		l := lengthsOf(b)
		all = append(all, l)
		longest = lengths{max(longest.source, l.source), max(longest.target, l.target)}
	}
	up := func(n, to int) int { return (n + to - 1) / to * to }
	unit := up((max(longest.source, longest.target)+mostCuts-1)/mostCuts, roundTo)
	counts := map[lengths]int{}
	for _, l := range all {
		counts[lengths{up(l.source, unit), up(l.target, unit)}]++
	}

	// The best path to a choice is known once those to all smaller choices are.
	type choice struct {
		lengths
		batches int     // that fit
		tokens  int     // that they need
		before  *choice // the next smaller lengths
	}
	var best []choice
	for s := unit; s <= up(longest.source, unit); s += unit {
		for t := unit; t <= up(longest.target, unit); t += unit {
			c := choice{lengths: lengths{s, t}}
			for l, n := range counts {
				if l.within(c.lengths) {
					c.batches += n
				}
			}
			c.tokens = c.batches * c.sum()
			best = append(best, c)
		}
	}
	for range mostPrograms - 1 {
		longer := slices.Clone(best) // paths with one more length, where that saves tokens
		for i := range longer {
			c := &longer[i]
			for j, b := range best[:i] {
				if tokens := b.tokens + (c.batches-b.batches)*c.sum(); tokens < c.tokens && b.within(c.lengths) {
					c.tokens, c.before = tokens, &best[j]
				}
			}
		}
		best = longer
	}
	var chosen []lengths
	for c := &best[len(best)-1]; c != nil; c = c.before {
		chosen = append(chosen, c.lengths)
	}
	slices.Reverse(chosen)
	return chosen
}

// rectangles are the pairs of a step, padded with Pad.
type rectangles struct{ source, lengths, read, write []int32 }

// newRectangles returns pairs in rectangles of n rows and the given lengths. Rows without a pair have weight zero,
// because all their targets are Pad.
func newRectangles(pairs []models.Example, n int, to lengths) rectangles {
	b := rectangles{
		source:  make([]int32, n*to.source),
		lengths: slices.Repeat([]int32{1}, n), // so that the softmax has a key
		read:    make([]int32, n*to.target),
		write:   make([]int32, n*to.target),
	}
	write := func(row []int32, ids []int) {
		for i, id := range ids {
			row[i] = int32(id)
		}
	}
	for i, p := range pairs {
		b.lengths[i] = int32(len(p.IDs))
		write(b.source[i*to.source:][:to.source], p.IDs)
		write(b.read[i*to.target:][:to.target], p.Reads)
		write(b.write[i*to.target:][:to.target], p.Targets)
	}
	return b
}
