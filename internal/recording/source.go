package recording

import (
	"context"
	"errors"
	"fmt"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/view"
	"github.com/attn-go/attn/models"
)

// Source is a model that records texts for a page. Weights are computed on request.
type Source struct {
	Model *models.Model
	// Generate is the number of tokens that a pretrained decoder adds to each text.
	Generate int
	// Pair, if not nil, is called with each pair of texts for a translator of attn train before it is
	// recorded. An empty target will be generated.
	Pair func(source, target string)
}

var _ view.Source = Source{}

// Record records a text or, if second is not empty, a pair of texts.
//
// Errors: a text that the model cannot read; one that would take too much memory.
func (s Source) Record(ctx context.Context, first, second string) (*heads.Record, error) {
	if s.Model.Translator != nil {
		return s.recordPair(ctx, first, second)
	}
	source, target, err := Lengths(s.Model, first, second)
	if err != nil {
		return nil, err
	}
	z, n := s.Model.Sizes(), max(source, target)+s.Generate
	if n > maxPretrained {
		return nil, fmt.Errorf("the text has %d tokens, want at most %d", n, maxPretrained)
	}
	bytes := keptBytes(z, source+s.Generate, target)
	if bytes > MaxKept {
		return nil, fmt.Errorf("the queries and keys of %d tokens take %d MB, want at most %d MB, enough for %d tokens",
			n, bytes>>20, MaxKept>>20, int64(n)*MaxKept/bytes)
	}
	o := heads.RecorderOptions{OnRequest: true, ValueNorms: true, Vectors: 2*bytes <= maxVectors}
	switch {
	case s.Generate == 0:
		return s.Model.Record(first, second, o)
	case second != "":
		return nil, errors.New("a second text and --generate exclude each other")
	case z.Positions > 0 && n > z.Positions:
		return nil, fmt.Errorf("the text has %d tokens, to which --generate adds %d, want at most %d in total",
			source, s.Generate, z.Positions)
	}
	return s.Model.RecordGenerated(ctx, first, models.Generation{Tokens: s.Generate}, o)
}

// recordPair is Record for a translator of attn train, which generates a target that is empty.
func (s Source) recordPair(ctx context.Context, source, target string) (*heads.Record, error) {
	n, err := tokens(s.Model.Translator.Source.Encode(source), "text")
	if err != nil {
		return nil, err
	}
	m, err := tokens(s.Model.Translator.Target.Encode(target), "translation")
	if err != nil {
		return nil, err
	}
	if s.Pair != nil {
		s.Pair(source, target)
	}
	if target == "" {
		written, err := s.Model.Translate(ctx, []string{source}, 1)
		if err != nil {
			return nil, err
		}
		target = written[0]
		if m, err = tokens(s.Model.Translator.Target.Encode(target), "translation"); err != nil {
			return nil, err
		}
	}
	vectors := vectorBytes(s.Model, n, m) <= maxVectors
	r, err := s.Model.Record(source, target, heads.RecorderOptions{OnRequest: true, ValueNorms: true, Vectors: vectors})
	if err != nil {
		return nil, err
	}
	s.numberHeads(r)
	return r, nil
}

// tokens returns the number of tokens of a text with its end mark, or an error for a text that is too long.
func tokens(ids []int, what string) (int, error) {
	if n := len(ids); n > maxTranslator {
		return 0, fmt.Errorf("the %s has %d tokens, want at most %d", what, n, maxTranslator)
	}
	return len(ids) + 1, nil
}

// numberHeads gives the heads of a pruned translator their numbers in the unpruned one, so that they can be
// found there.
func (s Source) numberHeads(r *heads.Record) {
	for i := range r.Layers {
		if l := &r.Layers[i]; len(s.Model.Translator.Config.PrunedHeads[l.Name]) > 0 {
			l.Chosen = s.Model.HeadNumbers(l.Name)
		}
	}
}

// NoVectors returns why a record has no queries and keys, as a sentence for the page.
func (s Source) NoVectors(r *heads.Record) string {
	if v := s.Model.Translator; v != nil {
		if vectorBytes(s.Model, len(v.Source.Encode(r.Source))+1, len(v.Target.Encode(r.Target))+1) <= maxVectors {
			return "The scores of this model are not products of queries and keys."
		}
	}
	return fmt.Sprintf("The queries and keys of this text take more than %d MB; a shorter text has them.", maxVectors>>20)
}
