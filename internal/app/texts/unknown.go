package texts

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/probe"
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

// Read reports the unknown pieces of texts that the model has read.
func (u *Unknown) Read(list ...probe.Reading) {
	var sources, targets []string
	t, err := u.model.Tokenizer()
	if err != nil || t == nil {
		return
	}
	for _, r := range list {
		sources = append(sources, t.UnknownIn(r.Tokens, r.First, r.Second)...)
		if r.Target != nil && u.model.Sizes().Decoder != nil {
			targets = append(targets, t.Target().UnknownIn(r.Target, r.Second)...)
		}
	}
	u.report("source", sources)
	u.report("target", targets)
}

// Pairs reports the unknown pieces of both sides of pairs, and returns the new ones, sorted.
func (u *Unknown) Pairs(pairs []seq2seq.Pair) []string {
	t, err := u.model.Tokenizer()
	if err != nil || t == nil {
		return nil
	}
	var sources, targets []string
	for _, p := range pairs {
		sources, targets = append(sources, t.Unknown(p.Source)...), append(targets, t.Target().Unknown(p.Target)...)
	}
	all := append(u.report("source", sources), u.report("target", targets)...)
	slices.Sort(all)
	return slices.Compact(all)
}

// report writes a line if there are new unknown pieces, and returns them.
func (u *Unknown) report(side string, pieces []string) (fresh []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	var named []string
	for _, piece := range pieces {
		if key := side + piece; !u.seen[key] {
			if len(u.seen) < mostNamed {
				named = append(named, strconv.Quote(piece))
			}
			u.seen[key] = true
			fresh = append(fresh, piece)
		}
	}
	if u.full || len(fresh) == 0 {
		return fresh
	}
	if len(named) < len(fresh) {
		named, u.full = append(named, "and others"), true
	}
	t, _ := u.model.Tokenizer() // there is one, which has found the pieces
	vocabulary := "vocabulary"
	if t.Target() != t {
		vocabulary = side + " vocabulary"
	}
	if side == "target" {
		t = t.Target()
	}
	fmt.Fprintf(u.messages, "not in the %s, read as %s: %s\n", vocabulary, t.UnknownToken(), strings.Join(named, " "))
	return fresh
}
