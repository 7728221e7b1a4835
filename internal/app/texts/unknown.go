package texts

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

// Unknown reports the pieces of texts that are not in the vocabulary of a model. The model reads them as its unknown token,
// such as <unk>, so its output is for another text. Each piece is reported once, and at most mostNamed pieces. It is thread-safe.
type Unknown struct {
	messages io.Writer
	model    *models.Model
	mu       sync.Mutex
	seen     map[string]bool // by side and piece
	full     bool            // mostNamed pieces have been reported
}

const mostNamed = 20

// NewUnknown returns an Unknown that writes its reports to messages.
func NewUnknown(m *models.Model, messages io.Writer) *Unknown {
	return &Unknown{messages: messages, model: m, seen: map[string]bool{}}
}

// Source reports the unknown pieces of source texts, and returns the new ones.
func (u *Unknown) Source(texts ...string) []string { return u.report("source", texts) }

// Target reports the unknown pieces of target texts, and returns the new ones.
func (u *Unknown) Target(texts ...string) []string { return u.report("target", texts) }

// Pairs reports the unknown pieces of both sides of pairs, and returns the new ones, sorted.
func (u *Unknown) Pairs(pairs []seq2seq.Pair) []string {
	sources, targets := make([]string, len(pairs)), make([]string, len(pairs))
	for i, p := range pairs {
		sources[i], targets[i] = p.Source, p.Target
	}
	all := append(u.Source(sources...), u.Target(targets...)...)
	slices.Sort(all)
	return slices.Compact(all)
}

// report writes a line if there are new unknown pieces, and returns them.
func (u *Unknown) report(side string, texts []string) []string {
	t, err := u.model.Tokenizer()
	if err != nil || t == nil {
		return nil
	}
	vocabulary := "vocabulary"
	if t.Target() != t {
		vocabulary = side + " vocabulary"
	}
	if side == "target" {
		t = t.Target()
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	var fresh, named []string
	for _, text := range texts {
		for _, piece := range t.Unknown(text) {
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
	fmt.Fprintf(u.messages, "not in the %s, read as %s: %s\n", vocabulary, t.UnknownToken(), strings.Join(named, " "))
	return fresh
}
