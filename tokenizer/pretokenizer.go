package tokenizer

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/attn-go/attn/internal/quote"
)

// A preTokenizer splits a normalized text into words for the model.
//
// Words are passed on one by one, because a text may have millions of them where only its first tokens are wanted.
type preTokenizer interface {
	// preTokenize calls yield with the parts of a piece, some of which may be empty, until yield returns false. It
	// returns whether yield always returned true.
	preTokenize(p piece, yield func(piece) bool) bool
}

// preTokenizerStage reads the pre-tokenizer of a tokenizer.json.
func preTokenizerStage() stage[preTokenizer] {
	return stage[preTokenizer]{
		name: "pre-tokenizer", parts: "pretokenizers",
		join: func(parts []preTokenizer) (preTokenizer, error) { return preTokenizers(parts), nil },
		kinds: map[string]kind[preTokenizer]{
			"BertPreTokenizer": fixed[preTokenizer](bertWords),
			"ByteLevel":        as(func() preTokenizer { return &byteLevel{Words: true} }),
			"Metaspace":        from(func(s metaspaceSettings) (preTokenizer, error) { return s.finish() }),
			"Split":            as(func() preTokenizer { return new(splitter) }),
			"Whitespace":       fixed[preTokenizer](splitter{place{wordsAndSigns}, removed, true}),
			"WhitespaceSplit":  fixed[preTokenizer](atSpaces),
			"Digits": from(func(s struct { // each digit separately, or a run of digits as a whole
				Individual bool `json:"individual_digits"`
			}) (preTokenizer, error) {
				if s.Individual {
					return splitter{At: place{oneOf(numeric)}}, nil
				}
				return splitter{At: place{oneOf(numeric)}, Keep: contiguous}, nil
			}),
			"Punctuation": from(func(s struct {
				Keep behavior `json:"behavior,omitempty"`
			}) (preTokenizer, error) {
				return splitter{At: place{oneOf(punct)}, Keep: s.Keep}, nil
			}),
			"CharDelimiterSplit": from(func(s struct {
				Char char `json:"delimiter"`
			}) (preTokenizer, error) {
				return splitter{At: place{literal(s.Char)}, Keep: removed}, nil
			}),
		},
	}
}

// bertWords is the pre-tokenizer of BERT. atSpaces is its first half.
var (
	atSpaces  = splitter{At: place{oneOf(space)}, Keep: removed}
	bertWords = preTokenizers{atSpaces, splitter{At: place{oneOf(punct)}}}
)

// preTokenizers run one after the other.
type preTokenizers []preTokenizer

func (all preTokenizers) preTokenize(p piece, yield func(piece) bool) bool {
	for _, t := range slices.Backward(all) {
		size, then := 0, yield
		yield = func(part piece) bool {
			if part.s == "" {
				return true
			}
			size += len(part.s) // each may add a few bytes to every part that it gets, and the next one again
			checkGrowth(len(p.s), size)
			return t.preTokenize(part, then)
		}
	}
	return yield(p)
}

// byteLevel writes bytes as characters, optionally after splitting like GPT-2. As a post-processor it
// removes spaces from the offsets. As a decoder it restores the bytes.
type byteLevel struct {
	PrefixSpace bool `json:"add_prefix_space"`
	TrimOffsets bool `json:"trim_offsets"`
	Words       bool `json:"use_regex,omitempty"`
}

// The words keep their bytes, and are only marked: writing each byte as a character would double most texts, and a
// model that has a token for each byte reads them directly.
func (b byteLevel) preTokenize(p piece, yield func(piece) bool) bool {
	p.plain()
	if b.PrefixSpace && !strings.HasPrefix(p.s, " ") {
		p.prepend(" ")
	}
	inBytes := func(part piece) bool {
		part.byteLevel = true
		return yield(part)
	}
	if b.Words {
		return splitter{At: place{gpt2}}.preTokenize(p, inBytes)
	}
	return inBytes(p)
}

// metaspace replaces spaces by the visible character ▁, adds one at the beginning, and splits before each.
type metaspace struct {
	mark    string
	prepend string // "always", "first" or "never"
	split   bool
}

type metaspaceSettings struct {
	Char    char    `json:"replacement"`
	Prefix  *bool   `json:"add_prefix_space,omitempty"`
	Prepend *string `json:"prepend_scheme,omitempty"`
	Split   *bool   `json:"split,omitempty"`
	Written *string `json:"str_rep,omitempty"` // old files have it besides replacement
}

func (s metaspaceSettings) finish() (*metaspace, error) {
	m := &metaspace{string(s.Char), "always", s.Split == nil || *s.Split}
	if s.Prepend != nil {
		m.prepend = *s.Prepend
	}
	if !slices.Contains([]string{"always", "first", "never"}, m.prepend) {
		return nil, fmt.Errorf("prepend_scheme %s, want always, first or never", quote.Text(m.prepend))
	}
	if s.Prefix != nil && !*s.Prefix {
		if s.Prepend != nil && m.prepend != "never" {
			return nil, errors.New("add_prefix_space is false, but prepend_scheme is not never")
		}
		m.prepend = "never"
	}
	return m, nil
}

func (m *metaspace) preTokenize(p piece, yield func(piece) bool) bool {
	p.plain()
	// A ▁ in the text is like a space from here on: the model cannot tell them apart, and neither can the decoder.
	p.replace(literal(" "), m.mark)
	if !strings.HasPrefix(p.s, m.mark) && (m.prepend == "always" || m.prepend == "first" && p.base == 0) {
		p.prepend(m.mark)
	}
	if !m.split {
		return yield(p)
	}
	return splitter{At: place{literal(m.mark)}, Keep: withNext}.preTokenize(p, yield)
}
