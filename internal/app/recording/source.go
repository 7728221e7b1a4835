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

// NewSource returns the source of a model in a directory. generate is the number of tokens that a decoder adds to each
// text. The source reports unknown pieces of texts to messages.
//
// Errors: *flags.Error if the model cannot generate, and an error of the tokenizer.
func NewSource(dir string, m *models.Model, generate int, messages io.Writer) (Source, error) {
	s := Source{m, generate, texts.NewUnknown(m, messages)}
	if _, err := m.Tokenizer(); err != nil {
		return s, err
	}
	if h := m.Head(); generate > 0 && (h == nil || h.Task != models.NextWord || m.Sizes().Decoder != nil) {
		return s, flags.Errorf("--generate requires a decoder, and %s is a %s model", quote.Shell(dir), m.Family.Name)
	}
	return s, nil
}

// Page returns the options of a page that records texts with the model.
func (s Source) Page() view.Options {
	o := view.Options{Source: s, MaxText: MaxText, Keep: 2 * (maxKept + 64<<20)} // room for two records, to compare them
	switch z := s.Model.Sizes(); {
	case z.Decoder != nil: // the second text of an encoder-decoder is the target
	case z.Kind == heads.Decoder:
		o.Second = view.Second{Label: "Continuation", Hint: "text that follows the first, if any"}
	default:
		o.Second = view.Second{Label: "Second text", Hint: "none"}
	}
	return o
}

// Record records a text or, if second is not empty, a pair of texts: an encoder-decoder writes a second one that is empty.
//
// Errors: a text that the model cannot read; one that would take too much memory.
func (s Source) Record(ctx context.Context, first, second string) (*heads.Record, error) {
	z := s.Model.Sizes()
	if s.Unknown != nil {
		s.Unknown.Source(first)
		if z.Decoder != nil {
			s.Unknown.Target(second)
		} else {
			s.Unknown.Source(second)
		}
	}
	source, target, err := Lengths(s.Model, first, second)
	if err != nil {
		return nil, err
	}
	n := max(source, target) + s.Generate
	if n > maxTokens {
		return nil, fmt.Errorf("the text has %d tokens, want at most %d", n, maxTokens)
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

// NoVectors returns why a record has no queries and keys, as a sentence for the page.
func (s Source) NoVectors(r *heads.Record) string {
	source, target, err := Lengths(s.Model, r.Source, r.Target)
	if err == nil && 2*keptBytes(s.Model.Sizes(), source, target) <= maxVectors {
		return "The scores of this model are not products of queries and keys."
	}
	return fmt.Sprintf("The queries and keys of this text take more than %d MB; a shorter text has them.", maxVectors>>20)
}
