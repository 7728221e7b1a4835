package probe

import (
	"math/rand/v2"
	"testing"
	"unicode"
)

func TestPrintable(t *testing.T) {
	for token, want := range map[string]string{
		"a": "a", "\x00": "U+0000", "\u0301": "◌\u0301", "\u200b": "U+200B", "\u202e": "U+202E", "\u200d": "U+200D",
		" été": "▁été", " 👩\u200d👧": "▁👩\u200d👧", " \u0301": "▁◌\u0301", " \ufeff": "▁U+FEFF", " ": "▁", "": "", "<eos>": "<eos>",
	} {
		if got := printable(token); got != want {
			t.Errorf("%q: got %q, want %q", token, got, want)
		}
	}
	rng := rand.New(rand.NewPCG(3, 3))
	for range 2000 {
		runes := make([]rune, 1+rng.IntN(4))
		for i := range runes {
			runes[i] = []rune{'a', ' ', '漢', '\u0301', '\u200c', '\u200d', '\u00ad', '\n', '\U000e0001', rune(rng.IntN(0x3000))}[rng.IntN(10)]
		}
		for _, r := range printable(string(runes)) {
			if !unicode.IsPrint(r) && r != '\u200d' && r != '\u200c' {
				t.Fatalf("label %q of %q", printable(string(runes)), runes)
			}
		}
	}
}
