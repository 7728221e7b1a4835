package main

import (
	"context"

	"github.com/attn-go/attn/heads"
	"github.com/attn-go/attn/internal/input"
	"github.com/attn-go/attn/internal/recording"
	"github.com/attn-go/attn/models"
)

// isPretrained reports whether a directory contains a pretrained model rather than a translator of attn train.
func isPretrained(dir string) bool { return exists(dir) && !models.IsTranslator(dir) }

// modelSource is a recording.Source that reports unknown characters of texts.
type modelSource struct {
	m        *models.Model
	unknown  *unknowns
	generate int
}

// openSource loads a model whose attention can be recorded. generate is the number of tokens that a
// pretrained decoder adds to each text.
func openSource(dir string, c console, generate int) (s modelSource, err error) {
	m, err := load(c, models.Load, dir, models.Options{})
	if err != nil {
		return s, err
	}
	s = modelSource{m, newUnknown(c.err), generate}
	switch h := m.Head(); {
	case m.Translator != nil && generate > 0:
		return s, usage("--generate requires a pretrained decoder, and %s is a translator", quoted(dir))
	case m.Translator != nil:
		return s, nil
	case generate > 0 && (h == nil || h.Task != models.NextWord || m.Sizes().Decoder != nil):
		err = usage("--generate requires a pretrained decoder, and %s is a %s model", quoted(dir), m.Family.Name)
	}
	if _, untokened := m.Tokenizer(); untokened != nil {
		err = untokened
	}
	return s, err
}

func (s modelSource) source() recording.Source {
	return recording.Source{Model: s.m, Generate: s.generate, Pair: func(source, target string) {
		s.unknown.source(s.m, source)
		s.unknown.target(s.m, target)
	}}
}

// Record records a text or a pair of texts.
func (s modelSource) Record(ctx context.Context, first, second string) (*heads.Record, error) {
	return s.source().Record(ctx, first, second)
}

// NoVectors returns why a record has no queries and keys.
func (s modelSource) NoVectors(r *heads.Record) string { return s.source().NoVectors(r) }

// deref returns the value of a text flag, or "" if it is not given.
func deref(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// recordError returns the error for a text of the command line.
func recordError(number int, err error) error {
	return &input.Error{Name: "argument", Line: number, Err: err}
}
