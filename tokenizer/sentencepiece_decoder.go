package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// pieceDecoder writes texts like SentencePiece, and special tokens unchanged.
type pieceDecoder struct {
	model        *pieceModel
	unknownText  string
	leading      bool // removes the space before the first word
	allLeading   bool // removes all spaces before the first word
	denormalizer *pieceNormalizer
	special      map[string]bool
	marian       bool // adds a space after each special token, and trims spaces from the ends of the text
	cleanup      bool
}

// newPieceDecoder returns the decoder for a file.
func newPieceDecoder(f *pieceFile, m *pieceModel) *pieceDecoder {
	d := &pieceDecoder{
		model: m, unknownText: f.unknownText,
		leading:    f.normalizer.dummyPrefix || f.normalizer.extraSpaces,
		allLeading: f.normalizer.extraSpaces,
	}
	if f.denormalizer != nil {
		d.denormalizer = &pieceNormalizer{pieceRules: *f.denormalizer, decodes: true}
	}
	return d
}

func (d *pieceDecoder) decode(tokens []string) []string {
	var b strings.Builder
	from := 0
	for i, token := range tokens {
		if !d.special[token] {
			continue
		}
		b.WriteString(d.join(tokens[from:i]))
		b.WriteString(token)
		if d.marian {
			b.WriteByte(' ')
		}
		from = i + 1
	}
	b.WriteString(d.join(tokens[from:]))
	text := b.String()
	if d.marian {
		text = strings.TrimFunc(strings.ReplaceAll(text, metaSpace, " "), isSpace)
	}
	if d.cleanup {
		text = closeUp(text)
	}
	return []string{text}
}

// join returns the text of tokens that are not special.
func (d *pieceDecoder) join(tokens []string) string {
	var text []byte
	var bytes []byte // from tokens like <0xE4>, not yet in text
	flush := func() {
		for len(bytes) > 0 {
			r, n := utf8.DecodeRune(bytes)
			text = utf8.AppendRune(text, r)
			bytes = bytes[n:]
		}
	}
	begins, spaceSeen := true, false // whether the first word is still to come, and its space was seen
	for _, token := range tokens {
		id, known := d.model.ids[token]
		if known && d.model.pieces[id].kind == bytePiece {
			b, _ := byteOf(token)
			bytes = append(bytes, b)
			continue
		}
		flush()
		if spaceSeen || len(text) > 0 {
			begins = false
		}
		spaceSeen = false
		switch {
		case known && d.model.pieces[id].kind == controlPiece:
		case known && id == d.model.unknown:
			text = append(text, d.unknownText...)
		case !known:
			text = append(text, token...)
		default:
			if begins && d.leading {
				token, spaceSeen = strings.CutPrefix(token, metaSpace)
				spaceSeen = spaceSeen && !d.allLeading
			}
			text = append(text, strings.ReplaceAll(token, metaSpace, " ")...)
		}
	}
	flush()
	if d.denormalizer == nil {
		return string(text)
	}
	p := newPiece(string(text))
	d.denormalizer.normalize(&p)
	return p.s
}
