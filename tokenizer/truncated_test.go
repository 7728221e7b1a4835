package tokenizer

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
)

// everyTokenizer has the tokenizers of all goldens, which together have all components, and trained ones.
var everyTokenizer = sync.OnceValue(func() map[string]*Tokenizer {
	all := map[string]*Tokenizer{}
	for name, tok := range fuzzed() {
		all[name] = tok
	}
	pieces := readPieceGolden()
	for _, c := range pieces.Models {
		all["pieces "+c.Name] = readPieceModel(new(testing.T), c.Model)
	}
	return all
})

// allTokenizers returns everyTokenizer and those that are read from directories.
func allTokenizers(t *testing.T) map[string]*Tokenizer {
	all := map[string]*Tokenizer{}
	for name, tok := range everyTokenizer() {
		all[name] = tok
	}
	for _, c := range readPieceGolden().Directories {
		tok, err := Load(writeFiles(t, c.Files))
		if err != nil {
			t.Fatal(err)
		}
		all["directory "+c.Name] = tok
		if tok.target != nil {
			all["target of "+c.Name] = tok.target
		}
	}
	letters := strings.Split("<unk> ▁ a b c d e é ǆ 語 字 ' ’ . \u0301 🙂 \u200d x y z", " ")
	letters[1] = " "
	for _, words := range []string{"char", "word", "bpe"} {
		tok, err := NewTrained(words, 1, letters, nil)
		if err != nil {
			t.Fatal(err)
		}
		all["trained "+words] = tok
	}
	return all
}

// difficult are parts of texts at which components look far ahead, or have several equally good results.
var difficult = []string{
	" ", "  ", "\n", "\r\n", "\t", "\u00a0", "\u3000", "\u200b", "\u200d", "\u00ad", "\ufeff", "\x00", "\x01", "▁", "▁▁",
	"a", "aa", "aaa", "b", "ab", "the", " the", " of", "ing", "'", "'s", "'r", "'re", "'LL", "’", "’s", "ſ", "K", "İ", "ß",
	"1", "12", "0000", "½", "\u0301", "\u0323", "\u0308", "e\u0301", "o\u0302\u0303", "\u0345", "\u1161", "\u11ab", "한", "각",
	"\u1100", "ﾊ", "ﾞ", "語", "字", "東京", "カ", "ー", "ﬁ", "①", "ﷺ", "㍿", "🙂", "👍🏽", "👩\u200d👩", "🇩🇪", "🇫", "5️⃣", ".", "...",
	"---", "!", "?!", ",", "\"", "_", "<", "[", "[SEP]", "[MASK]", "<mask>", "<s>", "</s>", "<|endoftext|>", "<pad>", "<l>",
	"<r>", "<b>", "solo", "special", "<special>", "<0x41>", "\xff", "\xe2\x82", "\x80\x80\x80\x80\x80", "Déjà", "नमस्ते", "ก", "ำ",
	"مرحبا", "ll", "@@", "</w>", ">>", ">>fr<<", "<<", "x", "y", "  \n  ", "quick", "tokenization", "xxxxxxxxxxxxxxxx",
}

// drawText returns a random text of n parts, some of which are repeated.
func drawText(rng *rand.Rand, n int) string {
	golden := readGolden()
	var b strings.Builder
	for range n {
		part := difficult[rng.IntN(len(difficult))]
		switch rng.IntN(12) {
		case 0:
			part = strings.Repeat(part, 1+rng.IntN(12))
		case 1:
			part = golden.Texts[rng.IntN(len(golden.Texts))]
		case 2:
			letters := golden.Alphabets[rng.IntN(len(golden.Alphabets))]
			part = letters[rng.IntN(len(letters))]
		}
		b.WriteString(part)
	}
	return b.String()
}

// checkBeginnings returns an error if the tokens of a beginning of a text, whose rest is not known, are not the first
// tokens of the text.
func checkBeginnings(tok *Tokenizer, text string, literal []Span) (kept, of int, err error) {
	whole, err := tok.cutText(newPiece(text), literal)
	if err != nil {
		return 0, 0, nil // what is wrong may be in the rest
	}
	for n := range len(text) {
		n = beginning(text, n)
		p := newPiece(text[:n])
		p.open = true
		got, err := tok.cutText(p, literal)
		if errors.Is(err, errGrowth) {
			continue
		}
		if err != nil {
			return 0, 0, fmt.Errorf("%q of %q: %w", text[:n], text, err)
		}
		kept, of = len(got), len(whole)
		if len(got) > len(whole) || !slices.Equal(got, whole[:len(got)]) {
			return 0, 0, fmt.Errorf("%q: the first %d bytes, %q, have the tokens\n%v, but the text has\n%v", text, n, text[:n], got, whole)
		}
	}
	return kept, of, nil
}

// Tokens of the beginning of a text do not depend on what follows.
func TestBeginnings(t *testing.T) {
	texts := 30
	if testing.Short() {
		texts = 4
	}
	for name, tok := range allTokenizers(t) {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(3, uint64(len(name))))
			for range texts {
				text := drawText(rng, 1+rng.IntN(24))
				var literal []Span
				if rng.IntN(4) == 0 {
					literal = everywhere
				}
				if _, _, err := checkBeginnings(tok, text, literal); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
