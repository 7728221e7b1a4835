package tokenizer

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A normalizer rewrites a text before it is split into words.
type normalizer interface {
	normalize(p *piece)
}

// normalizerStage reads the normalizer of a tokenizer.json.
func normalizerStage() stage[normalizer] {
	return stage[normalizer]{
		name: "normalizer", parts: "normalizers",
		join: func(parts []normalizer) (normalizer, error) { return normalizers(parts), nil },
		kinds: map[string]kind[normalizer]{
			"BertNormalizer": as(func() normalizer { return new(bertNormalizer) }),
			"NFC":            fixed[normalizer](unicodeForm(norm.NFC)),
			"NFD":            fixed[normalizer](unicodeForm(norm.NFD)),
			"NFKC":           fixed[normalizer](unicodeForm(norm.NFKC)),
			"NFKD":           fixed[normalizer](unicodeForm(norm.NFKD)),
			"Lowercase":      fixed[normalizer](lowercase{}),
			"StripAccents":   fixed[normalizer](stripMarks{mark}),
			"Strip":          as(func() normalizer { return new(strip) }),
			"Nmt":            fixed[normalizer](nmt{}),
			"Precompiled": from(func(s struct {
				Map []byte `json:"precompiled_charsmap"`
			}) (normalizer, error) {
				return readCharsMap(s.Map)
			}),
			"Replace":   as(func() normalizer { return new(replace) }),
			"Prepend":   as(func() normalizer { return new(prepend) }),
			"ByteLevel": fixed[normalizer](byteLevelForm{}),
		},
	}
}

// normalizers run one after the other.
type normalizers []normalizer

func (all normalizers) normalize(p *piece) {
	before := len(p.s)
	for _, n := range all {
		n.normalize(p)
		checkGrowth(before, len(p.s))
	}
}

// bertNormalizer applies the cleaning of BERT's original tokenizer.
type bertNormalizer struct {
	Clean   bool  `json:"clean_text"`
	Chinese bool  `json:"handle_chinese_chars"`
	Accents *bool `json:"strip_accents,omitempty"` // nil means the value of Lower
	Lower   bool  `json:"lowercase"`
}

// The order is that of BERT, and matters: accents are stripped before the text becomes lower case, and only if it
// does unless the file says otherwise.
func (n bertNormalizer) normalize(p *piece) {
	table := classes()
	if n.Clean {
		p.rewrite(func(r rune) (rune, string) {
			switch {
			case table.has(r, control):
				return drop, ""
			case table.has(r, space):
				return ' ', ""
			}
			return r, ""
		})
	}
	if n.Chinese {
		p.rewrite(func(r rune) (rune, string) {
			if isChinese(r) {
				return ' ', string(r) + " "
			}
			return r, ""
		})
	}
	if n.Accents == nil && n.Lower || n.Accents != nil && *n.Accents {
		unicodeForm(norm.NFD).normalize(p)
		stripMarks{accent}.normalize(p)
	}
	if n.Lower {
		lowercase{}.normalize(p)
	}
}

// isChinese reports whether BERT treats a character as Chinese. The ranges are those of the reference,
// which omits U+2B820 to U+2B91F.
func isChinese(r rune) bool {
	return r >= 0x3400 && (r <= 0x4dbf || 0x4e00 <= r && r <= 0x9fff || 0xf900 <= r && r <= 0xfaff ||
		0x20000 <= r && r <= 0x2a6df || 0x2a700 <= r && r <= 0x2b81f || 0x2b920 <= r && r <= 0x2ceaf ||
		0x2f800 <= r && r <= 0x2fa1f)
}

// lowercase converts each character separately to lower case: Σ becomes σ even at the end of a word.
type lowercase struct{}

func (lowercase) normalize(p *piece) {
	if isASCII(p.s) { // lengths do not change
		p.s = strings.ToLower(p.s)
		return
	}
	p.rewrite(lower)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// stripMarks removes the characters of a class.
type stripMarks struct{ class class }

func (n stripMarks) normalize(p *piece) {
	if isASCII(p.s) {
		return
	}
	table := classes()
	p.rewrite(func(r rune) (rune, string) {
		if table.has(r, n.class) {
			r = drop
		}
		return r, ""
	})
}

// strip removes white space from the ends of a text.
type strip struct {
	Left  bool `json:"strip_left"`
	Right bool `json:"strip_right"`
}

func (n strip) normalize(p *piece) { p.strip(n.Left, n.Right) }

// nmt is sentencepiece's rule "nmt": it removes control characters, and replaces white space and some
// characters without width by spaces.
type nmt struct{}

func (nmt) normalize(p *piece) {
	p.rewrite(func(r rune) (rune, string) {
		switch {
		case 1 <= r && r <= 8 || r == 0x0b || 0x0e <= r && r <= 0x1f || r == 0x7f || r == 0x8f || r == 0x9f:
			r = drop
		case strings.ContainsRune("\t\n\f\r\u1680\u200b\u200c\u200d\u200e\u200f\u2028\u2029\u2581\ufeff\ufffd", r):
			r = ' '
		}
		return r, ""
	})
}

// replace replaces each match of a pattern by a text. It is also a decoder.
type replace struct {
	At   place  `json:"pattern"`
	With string `json:"content"`
}

func (n replace) normalize(p *piece) { p.replace(n.At, n.With) }

// prepend adds a text before a text that is not empty.
type prepend struct {
	Text string `json:"prepend"`
}

func (n prepend) normalize(p *piece) { p.prepend(n.Text) }

// byteLevelForm writes bytes as characters, like the pre-tokenizer ByteLevel.
type byteLevelForm struct{}

func (byteLevelForm) normalize(p *piece) {
	p.byteLevel = true
	p.plain()
}
