package tokenizer

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A decoder converts tokens to parts of a text, which are then concatenated.
type decoder interface {
	decode(tokens []string) []string
}

// decoderStage reads the decoder of a tokenizer.json.
func decoderStage() stage[decoder] {
	return stage[decoder]{
		name: "decoder", parts: "decoders",
		join: func(parts []decoder) (decoder, error) { return decoders(parts), nil },
		kinds: map[string]kind[decoder]{
			"ByteLevel":    as(func() decoder { return new(byteLevel) }),
			"Metaspace":    from(func(s metaspaceSettings) (decoder, error) { return s.finish() }),
			"WordPiece":    as(func() decoder { return new(wordPieceDecoder) }),
			"BPEDecoder":   as(func() decoder { return new(bpeDecoder) }),
			"ByteFallback": fixed[decoder](byteFallback{}),
			"Fuse":         fixed[decoder](fuse{}),
			"Strip":        as(func() decoder { return new(stripDecoder) }),
			"Replace":      as(func() decoder { return new(replace) }),
			"CTC":          as(func() decoder { return new(ctc) }),
		},
	}
}

// decoders run one after the other.
type decoders []decoder

// mostGrowth is the maximum number of bytes that decoders may write for one byte. Decode cannot fail, so the limit
// applies when a file is read.
const mostGrowth = 64

// growth returns an upper bound of the number of bytes that a decoder writes for one byte of a long text.
func growth(d decoder) float64 {
	switch d := d.(type) {
	case decoders:
		n := 1.0
		for _, part := range d {
			n *= growth(part)
		}
		return n
	case *replace:
		old, _ := d.At.pattern.(literal)
		return max(1, float64(len(d.With))/float64(max(1, len(old))))
	case *bpeDecoder:
		return max(1, 2-float64(len(d.Suffix)))
	case *ctc:
		return max(1, 2-float64(len(d.Delimiter)))
	}
	return 1
}

func (all decoders) decode(tokens []string) []string {
	for _, d := range all {
		tokens = d.decode(tokens)
	}
	return tokens
}

// each is decode for a decoder that changes each token by itself.
func each(tokens []string, change func(i int, token string) string) []string {
	out := make([]string, len(tokens))
	for i, token := range tokens {
		out[i] = change(i, token)
	}
	return out
}

// decode converts the bytes that the tokens represent to one text.
func (b byteLevel) decode(tokens []string) []string {
	var bytes []byte
	for _, token := range tokens {
		var ok bool
		if bytes, ok = fromByteLevel(bytes, token); !ok {
			bytes = append(bytes, token...)
		}
	}
	return []string{lossy(bytes)}
}

// lossy converts bytes to text. Invalid UTF-8 becomes U+FFFD, one for each longest sequence of bytes that
// could begin a character.
// This is how Rust replaces invalid text. Go replaces each byte by itself, so that a model that is stopped within an
// emoji would end in three replacements and not in one.
func lossy(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	var s strings.Builder
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			for n < len(b) && !utf8.FullRune(b[:n]) { // extend an incomplete character
				n++
			}
			if n > 1 && utf8.FullRune(b[:n]) { // the last byte made it invalid, and may begin a character
				n--
			}
		}
		s.WriteRune(r)
		b = b[n:]
	}
	return s.String()
}

// decode replaces ▁ by a space. In the first token it removes ▁.
// A ▁ in the first token is removed wherever it is there, not only at its beginning, as in the reference.
func (m *metaspace) decode(tokens []string) []string {
	return each(tokens, func(i int, token string) string {
		with := " "
		if i == 0 && m.prepend != "never" {
			with = ""
		}
		return strings.ReplaceAll(token, m.mark, with)
	})
}

// wordPieceDecoder adds a space before each token that begins a word.
type wordPieceDecoder struct {
	Prefix  string `json:"prefix"`
	Cleanup bool   `json:"cleanup"`
}

func (d wordPieceDecoder) decode(tokens []string) []string {
	return each(tokens, func(i int, token string) string {
		rest, inner := strings.CutPrefix(token, d.Prefix)
		switch {
		case i > 0 && inner:
			token = rest
		case i > 0:
			token = " " + token
		}
		if d.Cleanup {
			token = cleanup(token)
		}
		return token
	})
}

// cleanup removes the spaces before English punctuation and endings, and contracts "do not".
func cleanup(s string) string { return strings.ReplaceAll(closeUp(s), " do not", " don't") }

// closeUp removes the spaces before English punctuation and endings.
func closeUp(s string) string {
	for _, r := range [...][2]string{
		{" .", "."}, {" ?", "?"}, {" !", "!"}, {" ,", ","}, {" ' ", "'"}, {" n't", "n't"}, {" 'm", "'m"},
		{" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
	} {
		s = strings.ReplaceAll(s, r[0], r[1])
	}
	return s
}

// closer applies closeUp to a whole text: clean_up_tokenization_spaces.
type closer struct{}

func (closer) decode(tokens []string) []string { return []string{closeUp(strings.Join(tokens, ""))} }

// bpeDecoder replaces the suffix that marks the end of a word by a space.
type bpeDecoder struct {
	Suffix string `json:"suffix"`
}

func (d bpeDecoder) decode(tokens []string) []string {
	return each(tokens, func(i int, token string) string {
		with := " "
		if i == len(tokens)-1 {
			with = ""
		}
		return strings.ReplaceAll(token, d.Suffix, with)
	})
}

// byteFallback converts tokens like <0xE4> to characters.
type byteFallback struct{}

func (byteFallback) decode(tokens []string) []string {
	var out []string
	var bytes []byte
	flush := func() {
		// All bytes of a run count together: one that is invalid makes all of them invalid, as in the reference.
		if utf8.Valid(bytes) {
			if len(bytes) > 0 {
				out = append(out, string(bytes))
			}
		} else {
			out = append(out, slices.Repeat([]string{"\ufffd"}, len(bytes))...)
		}
		bytes = bytes[:0]
	}
	for _, token := range tokens {
		if b, ok := byteOf(token); ok {
			bytes = append(bytes, b)
			continue
		}
		flush()
		out = append(out, token)
	}
	flush()
	return out
}

// byteOf returns the byte that a token like <0xE4> represents.
func byteOf(token string) (byte, bool) {
	if len(token) != len("<0xE4>") || !strings.HasPrefix(token, "<0x") || token[5] != '>' {
		return 0, false
	}
	digits := token[3:5]
	if digits[0] == '+' { // the reference accepts a sign
		digits = digits[1:]
	}
	b, err := strconv.ParseUint(digits, 16, 8)
	return byte(b), err == nil
}

// fuse concatenates all tokens.
type fuse struct{}

func (fuse) decode(tokens []string) []string { return []string{strings.Join(tokens, "")} }

// stripDecoder removes a character from the ends of each token, up to Start and Stop times.
type stripDecoder struct {
	Char  char `json:"content"`
	Start int  `json:"start"`
	Stop  int  `json:"stop"`
}

func (d stripDecoder) decode(tokens []string) []string {
	return each(tokens, func(_ int, token string) string {
		for n, ok := 0, true; n < d.Start && ok; n++ {
			token, ok = strings.CutPrefix(token, string(d.Char))
		}
		for n, ok := 0, true; n < d.Stop && ok; n++ {
			token, ok = strings.CutSuffix(token, string(d.Char))
		}
		return token
	})
}

func (n replace) decode(tokens []string) []string {
	return each(tokens, func(_ int, token string) string {
		p := piece{s: token}
		p.replace(n.At, n.With)
		return p.s
	})
}

// ctc merges consecutive equal tokens and removes the padding token.
type ctc struct {
	Pad       string `json:"pad_token"`
	Delimiter string `json:"word_delimiter_token"`
	Cleanup   bool   `json:"cleanup"`
}

func (d ctc) decode(tokens []string) []string {
	var out []string
	for i, token := range tokens {
		if i > 0 && token == tokens[i-1] {
			continue
		}
		token = strings.ReplaceAll(token, d.Pad, "")
		if d.Cleanup {
			token = strings.ReplaceAll(cleanup(token), d.Delimiter, " ")
		}
		if token != "" {
			out = append(out, token)
		}
	}
	return out
}
