package tokenizer

import (
	"encoding/json"
	"fmt"

	"github.com/attn-go/attn/internal/quote"
	"github.com/attn-go/attn/internal/strictjson"
)

// A model cuts words into tokens.
type model interface {
	// tokenize appends the tokens of a piece that is not empty.
	tokenize(out []token, p *piece) ([]token, error)
	id(token string) (int, bool)
	token(id int) (string, bool)
	size() int
}

// token is a token of a piece, with the bytes of the normalized text that it covers.
type token struct {
	id         int
	text       string
	start, end int
}

// readModel reads a model of a tokenizer.json.
func readModel(raw json.RawMessage) (model, error) {
	c := openComponent(raw, "model")
	if c.err != nil && c.have != nil {
		c.kind = guessKind(c.have) // files from before 2021 do not say it
	}
	switch c.kind {
	case "BPE":
		return readBPE(c)
	case "Unigram":
		return readUnigram(c)
	case "WordPiece":
		return readWordPiece(c)
	case "WordLevel":
		return readWordLevel(c)
	default:
		return nil, c.unknown()
	}
}

// guessKind tells models without a type by settings that only one of them has.
func guessKind(have map[string]json.RawMessage) string {
	for _, only := range []struct{ setting, kind string }{{"merges", "BPE"}, {"max_input_chars_per_word", "WordPiece"}} {
		if _, ok := have[only.setting]; ok {
			return only.kind
		}
	}
	return ""
}

// wordLevel has whole words only.
type wordLevel struct {
	vocabulary
	unknown string
}

func readWordLevel(c component) (model, error) {
	var n struct {
		typed
		Vocab   map[string]int `json:"vocab"`
		Unknown string         `json:"unk_token"`
	}
	if err := c.decode(&n, "vocab", "unk_token"); err != nil {
		return nil, err
	}
	v, err := readVocabulary(n.Vocab)
	return &wordLevel{v, n.Unknown}, c.fail(err)
}

func (m *wordLevel) tokenize(out []token, p *piece) ([]token, error) {
	p.plain()
	if id, ok := m.id(p.s); ok {
		return append(out, token{id, p.s, 0, len(p.s)}), nil
	}
	return appendUnknown(out, &m.vocabulary, m.unknown, p)
}

// appendUnknown appends the token for words that a vocabulary does not have.
func appendUnknown(out []token, v *vocabulary, unknown string, p *piece) ([]token, error) {
	id, ok := v.id(unknown)
	if !ok {
		return nil, fmt.Errorf("%s is not in the vocabulary, and neither is unk_token %s",
			quote.Text(p.s), quote.Text(unknown))
	}
	return append(out, token{id, unknown, 0, len(p.s)}), nil
}

// readNullable reads a text that may be null.
func readNullable(c component, name string) (string, bool, error) {
	raw := c.have[name]
	if absent(raw) {
		return "", false, nil
	}
	var s string
	if err := strictjson.Unmarshal(raw, &s); err != nil {
		return "", false, fmt.Errorf("%s: %w", name, err)
	}
	return s, true, nil
}
