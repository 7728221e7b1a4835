package models

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/attn-go/attn/tokenizer"
)

// encode returns the tokens that a model reads of a text, or of a pair of texts if second is not empty. It may truncate
// them to most tokens if most is not 0.
func (m *Model) encode(first, second string, most int) (*tokenizer.Encoding, error) {
	t := m.tokenizer
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

// encodeTarget is encode for a target text of an encoder–decoder.
func (m *Model) encodeTarget(target string) (*tokenizer.Encoding, error) {
	if _, err := m.forced(); err != nil { // the tokenizer would begin the target with the language of sources
		return nil, err
	}
	most := m.Sizes().Decoder.Positions
	y, err := m.tokenizer.Target().Encode(target, atMost(most))
	if err == nil {
		err = tooMany("target", y, most)
	}
	if err == nil && len(y.IDs) == 0 {
		err = errors.New("the target has no tokens, want one or more")
	}
	return y, err
}

// encodingOf returns the encoding of tokens that an encoder–decoder has written.
func (m *Model) encodingOf(ids []int) *tokenizer.Encoding {
	y := &tokenizer.Encoding{IDs: ids, Special: make([]bool, len(ids))}
	for _, id := range ids {
		token, _ := m.tokenizer.Target().Token(id)
		y.Tokens = append(y.Tokens, token)
	}
	return y
}

// Decode returns the text of target tokens of an encoder–decoder with a tokenizer, without a space at its end.
func (m *Model) Decode(ids []int) string {
	return strings.TrimSuffix(m.tokenizer.Target().Decode(ids), " ")
}

// labels returns the tokens for people to read. A byte-level vocabulary represents each byte by a
// letter; if the bytes of a token are text, labels returns that text instead. An unknown token has its part of the
// texts that were encoded, after "⁇".
func labels(t *tokenizer.Tokenizer, e *tokenizer.Encoding, texts ...string) []string {
	list := slices.Clone(e.Tokens)
	unknown, some := t.ID(t.UnknownToken())
	for i, at := range e.Offsets {
		if some && e.IDs[i] == unknown && e.Texts[i] >= 0 && e.Texts[i] < len(texts) {
			if part := strings.TrimSpace(texts[e.Texts[i]][at.Start:at.End]); part != "" {
				list[i] = "⁇" + part
			}
		}
	}
	_, spaces := t.ID("Ġ")
	_, lines := t.ID("Ċ")
	if !spaces || !lines { // every byte-level vocabulary has both
		for i, token := range list {
			list[i] = printable(token)
		}
		return list
	}
	for i, id := range e.IDs {
		text := t.Decode([]int{id})
		if e.Special[i] || text == "" || strings.ContainsRune(text, '\uFFFD') {
			continue
		}
		for mark, space := range map[string]string{"Ġ": " ", "Ċ": "\n"} {
			if body, cut := strings.CutPrefix(text, space); cut {
				text = mark + body
				break
			}
		}
		list[i] = text
	}
	return list
}

// printable returns a label for a token: "▁" shows a space at its beginning, a dotted circle precedes a combining mark
// that has no letter, and invisible characters are written as U+200B.
func printable(token string) string {
	var label strings.Builder
	body, space := strings.CutPrefix(token, " ")
	if space {
		label.WriteRune('▁')
	}
	for i, r := range body {
		joiner := (r == '\u200d' || r == '\u200c') && len(body) > utf8.RuneLen(r)
		switch {
		case i == 0 && unicode.IsMark(r):
			label.WriteString("◌" + string(r))
		case unicode.IsPrint(r) || joiner: // a joiner changes the shape of its neighbours
			label.WriteRune(r)
		default:
			fmt.Fprintf(&label, "U+%04X", r)
		}
	}
	return label.String()
}
