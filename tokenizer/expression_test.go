package tokenizer

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	charclass "regexp/syntax"
	"strings"
	"testing"
	"unicode"
)

// Classes have the same characters as in version 0.23.3 of the library, in brackets and outside, with any release of Go:
// testdata/tokenizer_classes.py has tried every character.
func TestClasses(t *testing.T) {
	data, err := os.ReadFile("../testdata/tokenizer/classes.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string][2]any // the number of characters, and the hash of their ranges
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	if len(all) < 400 {
		t.Errorf("%d expressions, want more than 400", len(all))
	}
	for expr, want := range all {
		translated, err := translate(expr)
		if err != nil {
			t.Errorf("%s: %v", expr, err)
			continue
		}
		chars, n := charactersOf(t, translated)
		hash := fmt.Sprintf("%x", sha256.Sum256([]byte(chars)))[:16]
		if float64(n) != want[0] || hash != want[1] {
			t.Errorf("%s has %d characters with hash %s, want %v", expr, n, hash, want)
		}
	}
}

// charactersOf returns the ranges of the characters that an expression of package regexp matches, without surrogates,
// and the number of these characters.
func charactersOf(t *testing.T, expr string) (list string, n int) {
	t.Helper()
	re, err := charclass.Parse(expr, charclass.Perl)
	if err != nil {
		t.Fatal(err)
	}
	var class []rune
	switch re.Op {
	case charclass.OpCharClass, charclass.OpNoMatch:
		class = re.Rune
	case charclass.OpLiteral:
		class = []rune{re.Rune[0], re.Rune[0]}
	case charclass.OpAnyChar:
		class = []rune{0, unicode.MaxRune}
	case charclass.OpAnyCharNotNL:
		class = []rune{0, '\n' - 1, '\n' + 1, unicode.MaxRune}
	default:
		t.Fatalf("%q is no class", expr)
	}
	var ranges []string
	add := func(first, last rune) {
		if first == last {
			ranges = append(ranges, fmt.Sprintf("%x", first))
		} else if first < last {
			ranges = append(ranges, fmt.Sprintf("%x-%x", first, last))
		}
		n += max(0, int(last-first)+1)
	}
	for i := 0; i < len(class); i += 2 {
		first, last := class[i], class[i+1]
		add(first, min(last, 0xd7ff))
		add(max(first, 0xe000), last)
	}
	return strings.Join(ranges, " "), n
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
		{`[\w]`, "a¹²³¼½¾ⅷ", "_¹²³¼½¾_"},
		{`[^\w\s]+`, "a.-²# ½", "a_ _"},
		{`\p{lower-case letter}`, "aA", "_A"},
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
