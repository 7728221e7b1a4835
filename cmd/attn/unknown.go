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

// unknowns reports pieces of a user's texts that are not in a vocabulary. The model reads
// them as <unk>, so its answer is about another text. Every piece is named once, and at most
// mostNamed of them.
type unknowns struct {
	w    io.Writer
	mu   sync.Mutex
	told map[string]bool // by side and piece
	full bool
}

const mostNamed = 20

func newUnknown(w io.Writer) *unknowns { return &unknowns{w: w, told: map[string]bool{}} }

// source reports unknown pieces in texts that the model reads.
func (u *unknowns) source(m *models.Model, texts ...string) []string {
	return u.tell("source", m.Translator.Source, texts)
}

// target reports unknown pieces in texts that are given as output of the model.
func (u *unknowns) target(m *models.Model, texts ...string) []string {
	return u.tell("target", m.Translator.Target, texts)
}

// tell writes a line if there is something new, and returns all that is new.
func (u *unknowns) tell(side string, v *seq2seq.Vocabulary, texts []string) []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	var fresh, named []string
	for _, text := range texts {
		for _, piece := range v.Unknown(text) {
			if key := side + piece; !u.told[key] {
				if len(u.told) < mostNamed {
					named = append(named, strconv.Quote(piece))
				}
				u.told[key] = true
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

// pairs reports both sides of pairs, and returns the new pieces of each side, in order.
func (u *unknowns) pairs(m *models.Model, pairs []seq2seq.Pair) []string {
	sources, targets := make([]string, len(pairs)), make([]string, len(pairs))
	for i, p := range pairs {
		sources[i], targets[i] = p.Source, p.Target
	}
	all := append(u.source(m, sources...), u.target(m, targets...)...)
	slices.Sort(all)
	return slices.Compact(all)
}
