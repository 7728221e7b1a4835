package tokenizer

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// Properties have the same numbers of characters as in version 0.23.3 of the library, which uses Unicode
// 16.0, with any release of Go.
func TestProperties(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: every character in every class")
	}
	var b strings.Builder
	for r := range rune(unicode.MaxRune + 1) {
		if utf8.ValidRune(r) {
			b.WriteRune(r)
		}
	}
	for expr, want := range map[string]int{
		`\p{L}`: 141028, `\p{Lo}`: 136477, `\p{S}`: 8514, `\p{M}`: 2501, `\p{N}`: 1911,
		`\p{Nd}`: 760, `\p{P}`: 855, `\p{Z}`: 19,
		`\p{Han}`: 99030, `\p{Greek}`: 518, `\p{Latin}`: 1487, `\p{Common}`: 9053, `\w`: 144671, `\p{Cn}`: 819533,
		`\P{Cn}`: 1112064 - 819533, `\W`: 1112064 - 144671, `[^\W]`: 144671, `\p{lower-case letter}`: 2258,
	} {
		p, err := readExpression(expr)
		if err != nil {
			t.Errorf("%s: %v", expr, err)
			continue
		}
		chars := 0
		for _, at := range p.(expression).FindAllStringIndex(b.String(), -1) {
			chars += utf8.RuneCountInString(b.String()[at[0]:at[1]])
		}
		if chars != want {
			t.Errorf("%s has %d characters, want %d", expr, chars, want)
		}
	}
}

// The matches of an expression become "_", as with the library's normalizer Replace.
func TestEscapes(t *testing.T) {
	for _, c := range []struct{ expr, text, want string }{
		{`\x20`, "a b", "a_b"},
		{`\x2`, "a\x02b", "a_b"},
		{`\x{20}`, "a b", "a_b"},
		{`\x{1F642}`, "a🙂", "a_"},
		{`[\x20-\x2f]`, "a b!", "a_b_"},
		{`[\x5b\x2d\x5D]`, "[-]", "___"},
		{`\x41{2}`, "AAA", "_A"},
		{`\x{e9}`, "é", "_"},
		{`\u0041`, "A1", "_1"},
		{`\w`, "aé_1²ⅷ‿a\u0301\u200dⒶ", "_________\u200d_"},
		{`\W`, "a -é", "a__é"},
		{`[^\W]`, "a -é", "_ -_"},
		{`[\W\d]`, "a1 -", "a___"},
		{`[^\s\W]`, "a1 -", "__ -"},
		{`[\S]`, "a b", "_ _"},
		{`[\w-]+`, "a-b c", "_ _"},
		{`[-\w]+`, "a-b c", "_ _"},
		{`(?i:\p{Lu})`, "aAé", "a_é"},
		{`(?i:\p{Ll})`, "aAé", "_A_"},
		{`(?i:\w)`, "aſ-", "__-"},
		{`\p{greek}`, "αa", "_a"},
		{`\p{L l}`, "aA", "_A"},
		{`\w+|\s+(?!\S)|\s+`, "foo  bar ", "_____"},
	} {
		p, err := readExpression(c.expr)
		if err != nil {
			t.Errorf("%s: %v", c.expr, err)
			continue
		}
		piece := newPiece(c.text)
		if piece.replace(p, "_"); piece.s != c.want {
			t.Errorf("%s: %q becomes %q, want %q", c.expr, c.text, piece.s, c.want)
		}
	}
	for expr, want := range map[string]string{
		`\xe9`: `\xe9, a byte of a character`, `\x`: `\x without the digits`, `\x{20`: `\x without`,
		`\x{110000}`: `\x without`,
		`\x{20 41}`:  `\x without`, `\u41`: `\u without`, `(?i:\x41)`: `(?i: with \x`, `[a-\w]`: "a range in brackets",
		`\p{Is_L}`: `it has "\\p{Is_L}"`, `\p{^L}`: "without a name", `\pL`: "without a name",
	} {
		if _, err := readExpression(expr); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", expr, err, want)
		}
	}
}
