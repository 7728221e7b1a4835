package models

import (
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/attn-go/attn/seq2seq"
	"github.com/attn-go/attn/tokenizer"
)

// language converts texts to tokens and back, with a tokenizer or with the vocabularies of a
// translator of attn train.
type language interface {
	// encode returns the tokens that a model reads of a text, or of a pair of texts if
	// second is not empty. It may truncate them to most tokens if most is not 0.
	encode(first, second string, most int) (*tokenizer.Encoding, error)
	// encodeTarget is encode for a target text of an encoder–decoder.
	encodeTarget(text string, most int) (*tokenizer.Encoding, error)
	// written returns the encoding of tokens that an encoder–decoder has written.
	written(ids []int) *tokenizer.Encoding
	// decode returns the text of a target.
	decode(ids []int) string
	// labels returns the tokens of a source or a target for people to read.
	labels(e *tokenizer.Encoding, target bool) []string
}

// tokenized is the language of a tokenizer.
type tokenized struct{ *tokenizer.Tokenizer }

func (t tokenized) encode(first, second string, most int) (*tokenizer.Encoding, error) {
	if second == "" {
		return t.Encode(first, atMost(most))
	}
	// A first text that is too long alone is rejected without reading all of the second.
	o := atMost(most)
	o.NoSpecial = true
	if e, err := t.Encode(first, o); err != nil || e.Truncated {
		return e, err
	}
	return t.EncodePair(first, second, atMost(most))
}

// atMost returns the options for a text of no more than most tokens; 0 for any number.
func atMost(most int) tokenizer.Options {
	return tokenizer.Options{NoPadding: true, NoTruncation: most == 0, MaxLength: most, Strategy: tokenizer.LongestFirst}
}

// tooMany returns an error for truncated tokens.
func tooMany(what string, e *tokenizer.Encoding, most int) error {
	if e.Truncated {
		return fmt.Errorf("the %s has more than %d tokens, the limit of the model", what, most)
	}
	return nil
}

func (t tokenized) encodeTarget(target string, most int) (*tokenizer.Encoding, error) {
	y, err := t.Target().Encode(target, atMost(most))
	if err == nil {
		err = tooMany("target", y, most)
	}
	if err == nil && len(y.IDs) == 0 {
		err = errors.New("the target has no tokens, want one or more")
	}
	return y, err
}

func (t tokenized) written(ids []int) *tokenizer.Encoding {
	y := &tokenizer.Encoding{IDs: ids, Special: make([]bool, len(ids))}
	for _, id := range ids {
		token, _ := t.Target().Token(id)
		y.Tokens = append(y.Tokens, token)
	}
	return y
}

func (t tokenized) decode(ids []int) string { return t.Target().Decode(ids) }

func (t tokenized) labels(e *tokenizer.Encoding, target bool) []string {
	if target {
		return labels(t.Target(), e)
	}
	return labels(t.Tokenizer, e)
}

func (v *Translator) encode(first, second string, _ int) (*tokenizer.Encoding, error) {
	if second != "" {
		return nil, errors.New("the model reads one text, want no second one")
	}
	if !utf8.ValidString(first) {
		return nil, errInvalid
	}
	// EOS at its end gives the decoder a key to attend to even if the text is empty.
	return encoding(v.Source, append(v.Source.Encode(first), seq2seq.EOS)), nil
}

// errInvalid is the error for a text that a tokenizer, too, rejects.
var errInvalid = errors.New("the text is invalid UTF-8")

func (v *Translator) encodeTarget(text string, _ int) (*tokenizer.Encoding, error) {
	if !utf8.ValidString(text) {
		return nil, errInvalid
	}
	return v.written(append(v.Target.Encode(text), seq2seq.EOS)), nil
}

func (v *Translator) written(ids []int) *tokenizer.Encoding         { return encoding(v.Target, ids) }
func (v *Translator) decode(ids []int) string                       { return v.Target.Decode(ids) }
func (v *Translator) labels(e *tokenizer.Encoding, _ bool) []string { return slices.Clone(e.Tokens) }

// sameTexts reports whether two translators have the same vocabularies.
func (v *Translator) sameTexts(w *Translator) bool {
	same := func(a, b *seq2seq.Vocabulary) bool { return a == b || a.Hash() == b.Hash() }
	return same(v.Source, w.Source) && same(v.Target, w.Target)
}

// encoding returns tokens of a vocabulary. Unknown tokens count as text.
func encoding(v *seq2seq.Vocabulary, ids []int) *tokenizer.Encoding {
	e := &tokenizer.Encoding{IDs: ids, TypeIDs: make([]int, len(ids))}
	for _, id := range ids {
		e.Tokens, e.Mask = append(e.Tokens, v.Token(id)), append(e.Mask, true)
		e.Special = append(e.Special, id < seq2seq.UNK)
	}
	return e
}
