package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/seq2seq"
)

// unknowns reports the pieces of texts that are not in a vocabulary. The model reads them as <unk>, so its
// output is for another text. Each piece is reported once, and at most mostNamed pieces.
type unknowns struct {
	w    io.Writer
	mu   sync.Mutex
	seen map[string]bool // by side and piece
	full bool            // mostNamed pieces have been reported
}

const mostNamed = 20

func newUnknown(w io.Writer) *unknowns { return &unknowns{w: w, seen: map[string]bool{}} }

// source reports unknown pieces of source texts.
func (u *unknowns) source(m *models.Model, texts ...string) []string {
	return u.report("source", m.Translator.Source, texts)
}

// target reports unknown pieces of target texts.
func (u *unknowns) target(m *models.Model, texts ...string) []string {
	return u.report("target", m.Translator.Target, texts)
}

// report writes a line if there are new unknown pieces, and returns them.
func (u *unknowns) report(side string, v *seq2seq.Vocabulary, texts []string) []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	var fresh, named []string
	for _, text := range texts {
		for _, piece := range v.Unknown(text) {
			if key := side + piece; !u.seen[key] {
				if len(u.seen) < mostNamed {
					named = append(named, strconv.Quote(piece))
				}
				u.seen[key] = true
				fresh = append(fresh, piece)
			}
		}
	}
	if u.full || len(fresh) == 0 {
		return fresh
	}
	if len(named) < len(fresh) {
		named, u.full = append(named, "and others"), true
	}
	fmt.Fprintf(u.w, "not in the %s vocabulary, read as <unk>: %s\n", side, strings.Join(named, " "))
	return fresh
}

// pairs reports the unknown pieces of both sides of pairs, and returns the new ones, sorted.
func (u *unknowns) pairs(m *models.Model, pairs []seq2seq.Pair) []string {
	sources, targets := make([]string, len(pairs)), make([]string, len(pairs))
	for i, p := range pairs {
		sources[i], targets[i] = p.Source, p.Target
	}
	all := append(u.source(m, sources...), u.target(m, targets...)...)
	slices.Sort(all)
	return slices.Compact(all)
}
