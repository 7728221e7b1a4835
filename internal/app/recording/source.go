package recording

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/app/flags"
	"github.com/attn-go/attn/internal/app/texts"
	"github.com/attn-go/attn/internal/app/view"
	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/models"
	"github.com/attn-go/attn/train"
)

// Source is a model that records texts for a page. Weights are computed on request.
type Source struct {
	Model *models.Model
	// Generate is the number of tokens that a pretrained decoder adds to each text.
	Generate int
	// Unknown, if not nil, reports the unknown pieces of the texts.
	Unknown *texts.Unknown
}

var _ view.Source = Source{}

// NewSource returns the source of a model in a directory. generate is the number of tokens that a pretrained decoder adds
// to each text. The source reports unknown pieces of texts to messages.
//
// Errors: *flags.Error if the model cannot generate, and an error of the tokenizer.
func NewSource(dir string, m *models.Model, generate int, messages io.Writer) (Source, error) {
	s := Source{m, generate, texts.NewUnknown(m, messages)}
	if m.Translator != nil {
		if generate > 0 {
			return s, flags.Errorf("--generate requires a pretrained decoder, and %s is a translator", quote.Shell(dir))
		}
		return s, nil
	}
	if _, err := m.Tokenizer(); err != nil {
		return s, err
	}
	if h := m.Head(); generate > 0 && (h == nil || h.Task != models.NextWord || m.Sizes().Decoder != nil) {
		return s, flags.Errorf("--generate requires a pretrained decoder, and %s is a %s model", quote.Shell(dir), m.Family.Name)
	}
	return s, nil
}

// MaxText returns the length in bytes of the longest text that the model reads.
func (s Source) MaxText() int {
	if s.Model.Translator != nil {
		return train.LongestText
	}
	return maxText
}

// Page returns the options of a page that records texts with the model.
func (s Source) Page() view.Options {
	o := view.Options{Source: s, MaxText: s.MaxText()}
	if s.Model.Translator != nil {
		return o
	}
	o.Keep = 2 * (maxKept + 64<<20) // room for two, to compare them
	switch z := s.Model.Sizes(); {
	case z.Decoder != nil: // the second text of an encoder-decoder is the target
	case z.Kind == heads.Decoder:
		o.Second = view.Second{Label: "Continuation", Hint: "text that follows the first, if any"}
	default:
		o.Second = view.Second{Label: "Second text", Hint: "none"}
	}
	return o
}

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
	if bytes > maxKept {
		return nil, fmt.Errorf("the queries and keys of %d tokens take %d MB, want at most %d MB, enough for %d tokens",
			n, bytes>>20, maxKept>>20, int64(n)*maxKept/bytes)
	}
	o := heads.RecorderOptions{OnRequest: true, ValueNorms: true, Vectors: 2*bytes <= maxVectors}
	switch {
	case s.Generate == 0:
		return s.Model.Record(ctx, first, second, o)
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
	given := &target
	if target == "" {
		given = nil
	}
	if target, err = s.target(ctx, source, given); err != nil {
		return nil, err
	}
	m, err := tokens(s.Model.Translator.Target.Encode(target), "translation")
	if err != nil {
		return nil, err
	}
	vectors := vectorBytes(s.Model, n, m) <= maxVectors
	r, err := s.Model.Record(ctx, source, target, heads.RecorderOptions{OnRequest: true, ValueNorms: true, Vectors: vectors})
	if err != nil {
		return nil, err
	}
	s.numberHeads(r)
	return r, nil
}

// RecordWhole records everything at once that o selects, of a translator of attn train. If target is nil, the model writes
// it.
func (s Source) RecordWhole(ctx context.Context, source string, target *string, o heads.RecorderOptions) (*heads.Record, error) {
	written, err := s.target(ctx, source, target)
	if err != nil {
		return nil, err
	}
	return s.Model.Record(ctx, source, written, o)
}

// target returns the given target, or the translation if none is given. It reports unknown pieces.
func (s Source) target(ctx context.Context, source string, given *string) (string, error) {
	if s.Unknown != nil {
		s.Unknown.Source(source)
	}
	if given == nil {
		written, err := s.Model.Translate(ctx, []string{source}, 1)
		if err != nil {
			return "", err
		}
		return written[0], nil
	}
	if s.Unknown != nil {
		s.Unknown.Target(*given)
	}
	return *given, nil
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
