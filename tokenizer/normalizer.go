package tokenizer

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// A normalizer rewrites a text before it is cut into words.
type normalizer interface {
	normalize(p *piece)
}

// readNormalizer reads a normalizer of a tokenizer.json.
func readNormalizer(raw json.RawMessage) (normalizer, error) {
	switch c := openComponent(raw, "normalizer"); c.kind {
	case "BertNormalizer":
		var n struct {
			typed
			Clean   bool  `json:"clean_text"`
			Chinese bool  `json:"handle_chinese_chars"`
			Accents *bool `json:"strip_accents"`
			Lower   bool  `json:"lowercase"`
		}
		err := c.decode(&n, "clean_text", "handle_chinese_chars", "lowercase")
		accents := n.Lower
		if n.Accents != nil {
			accents = *n.Accents
		}
		return bertNormalizer{n.Clean, n.Chinese, accents, n.Lower}, err
	case "NFC":
		return unicodeForm{compose: true}, c.decode(nil)
	case "NFD":
		return unicodeForm{}, c.decode(nil)
	case "NFKC":
		return unicodeForm{compatible: true, compose: true}, c.decode(nil)
	case "NFKD":
		return unicodeForm{compatible: true}, c.decode(nil)
	case "Lowercase":
		return lowercase{}, c.decode(nil)
	case "StripAccents":
		return stripMarks{mark}, c.decode(nil)
	case "Strip":
		var n struct {
			typed
			Left  bool `json:"strip_left"`
			Right bool `json:"strip_right"`
		}
		err := c.decode(&n, "strip_left", "strip_right")
		return strip{n.Left, n.Right}, err
	case "Nmt":
		return nmt{}, c.decode(nil)
	case "Precompiled":
		var n struct {
			typed
			Map []byte `json:"precompiled_charsmap"`
		}
		if err := c.decode(&n, "precompiled_charsmap"); err != nil {
			return nil, err
		}
		m, err := readCharsMap(n.Map)
		return m, c.fail(err)
	case "Replace":
		return readReplace(c)
	case "Prepend":
		var n struct {
			typed
			Prepend string `json:"prepend"`
		}
		err := c.decode(&n, "prepend")
		return prepend(n.Prepend), err
	case "ByteLevel":
		return byteLevelForm{}, c.decode(nil)
	case "Sequence":
		var n struct {
			typed
			Parts []json.RawMessage `json:"normalizers"`
		}
		if err := c.decode(&n, "normalizers"); err != nil {
			return nil, err
		}
		all, err := readAll(n.Parts, readNormalizer)
		return normalizers(all), err
	default:
		return nil, c.unknown()
	}
}

// normalizers work one after the other.
type normalizers []normalizer

func (all normalizers) normalize(p *piece) {
	for _, n := range all {
		n.normalize(p)
	}
}

// bertNormalizer does what BERT's own tokenizer does before it splits.
type bertNormalizer struct{ clean, chinese, accents, lower bool }

func (n bertNormalizer) normalize(p *piece) {
	table := classes()
	if n.clean {
		p.filter(func(r rune) bool { return !table.has(r, control) })
		p.rewrite(func(r rune) rune {
			if table.has(r, space) {
				return ' '
			}
			return r
		})
	}
	if n.chinese {
		surroundChinese(p)
	}
	if n.accents {
		unicodeForm{}.normalize(p)
		stripMarks{accent}.normalize(p)
	}
	if n.lower {
		lowercase{}.normalize(p)
	}
}

// surroundChinese puts spaces around each Chinese character. The space before it and
// the character stand for it in the text, so the one behind it does too.
func surroundChinese(p *piece) {
	if strings.IndexFunc(p.s, isChinese) < 0 {
		return
	}
	changes := make([]change, 0, 2*len(p.s))
	for _, r := range p.s {
		if isChinese(r) {
			changes = append(changes, change{' ', 0}, change{r, 1}, change{' ', 1})
		} else {
			changes = append(changes, change{r, 0})
		}
	}
	p.transform(0, changes)
}

// isChinese reports whether BERT takes a character for Chinese. The ranges are those
// of the reference, which leaves out U+2B820 to U+2B91F.
func isChinese(r rune) bool {
	return r >= 0x3400 && (r <= 0x4dbf || 0x4e00 <= r && r <= 0x9fff || 0xf900 <= r && r <= 0xfaff ||
		0x20000 <= r && r <= 0x2a6df || 0x2a700 <= r && r <= 0x2b81f || 0x2b920 <= r && r <= 0x2ceaf ||
		0x2f800 <= r && r <= 0x2fa1f)
}

// lowercase writes each character in lower case by itself: Σ at the end of a word too
// becomes σ.
type lowercase struct{}

func (lowercase) normalize(p *piece) {
	if isLower(p.s) {
		return
	}
	if isASCII(p.s) { // nothing moves
		p.s = strings.ToLower(p.s)
		return
	}
	changes := make([]change, 0, len(p.s))
	for _, r := range p.s {
		first, rest := lower(r)
		changes = append(changes, change{first, 0})
		for _, more := range rest {
			changes = append(changes, change{more, 1})
		}
	}
	p.transform(0, changes)
}

func isLower(s string) bool {
	for _, r := range s {
		if low, _ := lower(r); low != r {
			return false
		}
	}
	return true
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// stripMarks drops the characters of a class.
type stripMarks struct{ class class }

func (n stripMarks) normalize(p *piece) {
	if isASCII(p.s) {
		return
	}
	table := classes()
	p.filter(func(r rune) bool { return !table.has(r, n.class) })
}

// strip removes white space from the ends of a text.
type strip struct{ left, right bool }

func (n strip) normalize(p *piece) { p.strip(n.left, n.right) }

// nmt is the cleaning of sentencepiece's rule "nmt": control characters go, and white
// space and some marks without a width become spaces.
type nmt struct{}

func (nmt) normalize(p *piece) {
	p.filter(func(r rune) bool {
		return !(1 <= r && r <= 8 || r == 0x0b || 0x0e <= r && r <= 0x1f || r == 0x7f || r == 0x8f || r == 0x9f)
	})
	p.rewrite(func(r rune) rune {
		switch r {
		case 0x09, 0x0a, 0x0c, 0x0d, 0x1680, 0x200b, 0x200c, 0x200d, 0x200e, 0x200f, 0x2028, 0x2029, 0x2581, 0xfeff, 0xfffd:
			return ' '
		}
		return r
	})
}

// replace puts a text in the place of each match of a pattern. It is a decoder too.
type replace struct {
	at   pattern
	with string
}

func readReplace(c component) (replace, error) {
	var n struct {
		typed
		Pattern json.RawMessage `json:"pattern"`
		Content string          `json:"content"`
	}
	if err := c.decode(&n, "pattern", "content"); err != nil {
		return replace{}, err
	}
	at, err := readPattern(n.Pattern)
	return replace{at, n.Content}, c.fail(err)
}

func (n replace) normalize(p *piece) { p.replace(n.at, n.with) }

// prepend puts a text in front of one that is not empty.
type prepend string

func (n prepend) normalize(p *piece) { p.prepend(string(n)) }

// byteLevelForm writes bytes as characters, as the pre-tokenizer ByteLevel does.
type byteLevelForm struct{}

func (byteLevelForm) normalize(p *piece) {
	p.byteLevel = true
	p.plain()
}
