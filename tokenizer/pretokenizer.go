package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/attn-go/attn/internal/quote"
)

// A preTokenizer cuts a normalized text into the words that a model sees.
type preTokenizer interface {
	// preTokenize appends the parts of a piece. Empty ones are dropped by the caller.
	preTokenize(out []piece, p piece) []piece
}

// readPreTokenizer reads a pre-tokenizer of a tokenizer.json.
func readPreTokenizer(raw json.RawMessage) (preTokenizer, error) {
	switch c := openComponent(raw, "pre-tokenizer"); c.kind {
	case "BertPreTokenizer":
		return preTokenizers{cutter{splitter{at: oneOf(space), keep: removed}}, cutter{splitter{at: oneOf(punct)}}}, c.decode(nil)
	case "ByteLevel":
		b, err := readByteLevel(c)
		return b, err
	case "Metaspace":
		m, err := readMetaspace(c)
		return m, err
	case "Split":
		return readSplit(c)
	case "Digits":
		var d struct {
			typed
			Individual bool `json:"individual_digits"`
		}
		err := c.decode(&d, "individual_digits")
		keep := contiguous
		if d.Individual {
			keep = isolated
		}
		return cutter{splitter{at: oneOf(numeric), keep: keep}}, err
	case "Punctuation":
		var n struct {
			typed
			Behavior string `json:"behavior"`
		}
		n.Behavior = "Isolated"
		if err := c.decode(&n); err != nil {
			return nil, err
		}
		keep, err := readBehavior(n.Behavior)
		return cutter{splitter{at: oneOf(punct), keep: keep}}, c.fail(err)
	case "Whitespace":
		return cutter{splitter{at: wordsAndSigns{}, keep: removed, invert: true}}, c.decode(nil)
	case "WhitespaceSplit":
		return cutter{splitter{at: oneOf(space), keep: removed}}, c.decode(nil)
	case "CharDelimiterSplit":
		var n struct {
			typed
			Delimiter string `json:"delimiter"`
		}
		if err := c.decode(&n, "delimiter"); err != nil {
			return nil, err
		}
		_, err := readRune("delimiter", n.Delimiter)
		return cutter{splitter{at: literal(n.Delimiter), keep: removed}}, c.fail(err)
	case "Sequence":
		var n struct {
			typed
			Parts []json.RawMessage `json:"pretokenizers"`
		}
		if err := c.decode(&n, "pretokenizers"); err != nil {
			return nil, err
		}
		all, err := readAll(n.Parts, readPreTokenizer)
		return preTokenizers(all), err
	default:
		return nil, c.unknown()
	}
}

// preTokenizers work one after the other.
type preTokenizers []preTokenizer

func (all preTokenizers) preTokenize(out []piece, p piece) []piece {
	parts := []piece{p}
	for i, t := range all {
		var next []piece
		if i == len(all)-1 {
			next = out
		} else {
			next = make([]piece, 0, 2*len(parts))
		}
		for _, part := range parts {
			if part.s != "" {
				next = t.preTokenize(next, part)
			}
		}
		parts = next
	}
	if len(all) == 0 {
		return append(out, p)
	}
	return parts
}

// cutter cuts at the matches of a pattern.
type cutter struct{ splitter }

func (c cutter) preTokenize(out []piece, p piece) []piece {
	p.plain()
	return c.split(out, p)
}

func readSplit(c component) (preTokenizer, error) {
	var n struct {
		typed
		Pattern  json.RawMessage `json:"pattern"`
		Behavior string          `json:"behavior"`
		Invert   bool            `json:"invert"`
	}
	if err := c.decode(&n, "pattern", "behavior", "invert"); err != nil {
		return nil, err
	}
	at, err := readPattern(n.Pattern)
	if err != nil {
		return nil, c.fail(err)
	}
	keep, err := readBehavior(n.Behavior)
	return cutter{splitter{at, keep, n.Invert}}, c.fail(err)
}

// byteLevel writes bytes as characters, after cutting as GPT-2 does if it is to. As a
// post-processor it takes spaces off the offsets; as a decoder it makes bytes again.
type byteLevel struct{ prefixSpace, trimOffsets, words bool }

func readByteLevel(c component) (byteLevel, error) {
	var n struct {
		typed
		Prefix bool `json:"add_prefix_space"`
		Trim   bool `json:"trim_offsets"`
		Regex  bool `json:"use_regex"`
	}
	n.Regex = true
	err := c.decode(&n, "add_prefix_space", "trim_offsets")
	return byteLevel{n.Prefix, n.Trim, n.Regex}, err
}

func (b byteLevel) preTokenize(out []piece, p piece) []piece {
	p.plain()
	if b.prefixSpace && !strings.HasPrefix(p.s, " ") {
		p.prepend(" ")
	}
	first := len(out)
	if b.words {
		out = splitter{at: gpt2{}}.split(out, p)
	} else {
		out = append(out, p)
	}
	for i := range out[first:] {
		out[first+i].byteLevel = true
	}
	return out
}

// metaspace writes spaces as a character that can be seen, ▁, puts one in front, and
// cuts before each.
type metaspace struct {
	char    rune
	prepend string // "always", "first" or "never"
	split   bool
}

func readMetaspace(c component) (metaspace, error) {
	var n struct {
		typed
		Char    string  `json:"replacement"`
		Prefix  *bool   `json:"add_prefix_space"`
		Prepend *string `json:"prepend_scheme"`
		Split   *bool   `json:"split"`
		Written *string `json:"str_rep"` // what old files have beside replacement
	}
	if err := c.decode(&n, "replacement"); err != nil {
		return metaspace{}, err
	}
	char, err := readRune("replacement", n.Char)
	m := metaspace{char, "always", n.Split == nil || *n.Split}
	if n.Prepend != nil {
		m.prepend = *n.Prepend
	}
	switch m.prepend {
	case "always", "first", "never":
	default:
		err = fmt.Errorf("prepend_scheme %s, want always, first or never", quote.Text(m.prepend))
	}
	if n.Prefix != nil && !*n.Prefix {
		if n.Prepend != nil && m.prepend != "never" {
			err = errors.New("add_prefix_space is false, but prepend_scheme is not never")
		}
		m.prepend = "never"
	}
	return m, c.fail(err)
}

func (m metaspace) preTokenize(out []piece, p piece) []piece {
	p.plain()
	p.replace(literal(" "), string(m.char))
	first, _ := utf8.DecodeRuneInString(p.s)
	if first != m.char && (m.prepend == "always" || m.prepend == "first" && p.base == 0) {
		p.prepend(string(m.char))
	}
	if !m.split {
		return append(out, p)
	}
	return splitter{at: literal(string(m.char)), keep: withNext}.split(out, p)
}
