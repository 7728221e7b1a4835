package tokenizer

import (
	"encoding/json"
	"fmt"

	"github.com/attn-go/attn/internal/quote"
)

// A model splits words into tokens.
type model interface {
	// tokenize appends the tokens of a piece. The piece is not empty. Of an open piece, it may append no tokens.
	tokenize(out []token, p *piece) ([]token, error)
	id(token string) (int, bool)
	token(id int) (string, bool)
	size() int
	// unk returns the id of the token for text that the vocabulary lacks, or none.
	unk() int
}

// modelStage reads the model of a tokenizer.json.
func modelStage() stage[model] {
	return stage[model]{
		name: "model",
		kinds: map[string]kind[model]{
			"BPE":       from(bpeSettings.finish),
			"Unigram":   from(unigramSettings.finish),
			"WordPiece": from(wordPieceSettings.finish),
			"WordLevel": from(wordLevelSettings.finish),
		},
		// Files from before 2021 have no type.
		guess: func(have map[string]json.RawMessage) string {
			switch {
			case have["merges"] != nil:
				return "BPE"
			case have["max_input_chars_per_word"] != nil:
				return "WordPiece"
			}
			return ""
		},
	}
}

// wordLevel has only whole words as tokens.
type wordLevel struct {
	vocabulary
	unknown string
}

type wordLevelSettings struct {
	Vocab   vocabulary `json:"vocab"`
	Unknown string     `json:"unk_token"`
}

func (s wordLevelSettings) finish() (model, error) { return &wordLevel{s.Vocab, s.Unknown}, nil }

func (m *wordLevel) unk() int { return m.idOr(m.unknown) }

func (m *wordLevel) tokenize(out []token, p *piece) ([]token, error) {
	if p.open {
		return out, nil
	}
	p.plain()
	if id, ok := m.id(p.s); ok {
		return append(out, token{id: id, text: p.s, at: Span{0, len(p.s)}}), nil
	}
	return appendUnknown(out, &m.vocabulary, m.unknown, p)
}

// appendUnknown appends the token for unknown words.
func appendUnknown(out []token, v *vocabulary, unknown string, p *piece) ([]token, error) {
	id, ok := v.id(unknown)
	if !ok {
		return nil, fmt.Errorf("%s is not in the vocabulary, and neither is unk_token %s",
			quote.Text(p.s), quote.Text(unknown))
	}
	return append(out, token{id: id, text: unknown, at: Span{0, len(p.s)}}), nil
}
