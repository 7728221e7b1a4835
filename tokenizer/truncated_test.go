package tokenizer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/text/unicode/norm"

	"github.com/attn-go/attn/internal/par/partest"
)

// allTokenizers has the tokenizers of all goldens, which together have all components, and trained ones.
var allTokenizers = sync.OnceValue(func() map[string]*Tokenizer {
	all := maps.Clone(fuzzed())
	t := new(testing.T)
	for _, c := range readPieceGolden().Models {
		all["pieces "+c.Name] = readPieceModel(t, c.Model)
	}
	for _, c := range readPieceGolden().Directories {
		tok, err := loadFiles(c.Files)
		if err != nil {
			panic(err)
		}
		all["directory "+c.Name] = tok
		if tok.target != nil {
			all["target of "+c.Name] = tok.target
		}
	}
	letters := strings.Split("<unk> _ a b c d e é ǆ 語 字 ' ’ . \u0301 🙂 \u200d x y z", " ")
	letters[1] = " "
	for _, words := range []string{"char", "word", "bpe"} {
		tok, err := NewTrained(words, 1, 0, letters, nil)
		if err != nil {
			panic(err)
		}
		all["trained "+words] = tok
	}
	return all
})

// loadFiles loads the tokenizer of a directory with some files.
func loadFiles(files map[string][]byte) (*Tokenizer, error) {
	dir, err := os.MkdirTemp("", "attn-tokenizer-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return nil, err
		}
	}
	return Load(dir)
}

// difficult are parts of texts at which components look far ahead, or have several equally good results.
var difficult = []string{
	" ", "  ", "\n", "\r\n", "\t", "\u00a0", "\u3000", "\u200b", "\u200d", "\u00ad", "\ufeff", "\x00", "\x01", "▁", "▁▁",
	"a", "aa", "aaa", "b", "ab", "the", " the", " of", "ing", "'", "'s", "'r", "'re", "'LL", "’", "’s", "ſ", "K", "İ", "ß",
	"1", "12", "0000", "½", "½\x01x", "㍿\x7fx", "\u0301", "\u0323", "\u0308", "e\u0301", "o\u0302\u0303", "\u0345", "\u1161", "\u11ab", "한", "각",
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
func checkBeginnings(tok *Tokenizer, text string, l *literals) error {
	all := newPiece(text)
	whole, err := tok.cutText(&all, l, math.MaxInt)
	if err != nil {
		return nil // the error may be in the rest
	}
	for n := range len(text) {
		n = beginning(text, n)
		p := newPiece(text[:n])
		p.open = true
		if err := checkStages(tok, p, text, l); err != nil && !errors.Is(err, errGrowth) {
			return err
		}
		got, err := tok.cutText(&p, l, math.MaxInt)
		if errors.Is(err, errGrowth) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%q of %q: %w", text[:n], text, err)
		}
		if len(got) > len(whole) || !slices.Equal(got, whole[:len(got)]) {
			return fmt.Errorf("%q: the first %d bytes, %q, have the tokens\n%v, but the text has\n%v", text, n, text[:n], got, whole)
		}
	}
	return nil
}

// checkStages is checkBeginnings for the normalizer, and for the words that the model gets.
func checkStages(tok *Tokenizer, p piece, text string, l *literals) (err error) {
	defer catchGrowth(&err)
	if n := tok.normalizer; n != nil && p.s != "" {
		got, want := p, newPiece(text)
		n.normalize(&got)
		if n.normalize(&want); !begins(&got, &want) {
			return fmt.Errorf("the first %d bytes of %q are normalized to %q, but the text to %q", len(p.s), text, got.s, want.s)
		}
	}
	words := func(text piece) (all []piece, err error) {
		err = tok.words(text, l, func(p piece) bool {
			all = append(all, p)
			return true
		})
		return all, err
	}
	got, err := words(p)
	want, err2 := words(newPiece(text))
	for i := range got {
		if err != nil || err2 != nil {
			break
		}
		if i >= len(want) || !begins(&got[i], &want[i]) || !got[i].open && got[i].s != want[i].s || got[i].open && i < len(got)-1 {
			return fmt.Errorf("word %d of the first %d bytes of %q is %q, unlike that of the text", i, len(p.s), text, got[i].s)
		}
	}
	return nil
}

// begins reports whether a piece is the beginning of another.
func begins(p, whole *piece) bool {
	if !strings.HasPrefix(whole.s, p.s) || p.token != whole.token {
		return false
	}
	for i := range len(p.s) {
		if p.align(i) != whole.align(i) {
			return false
		}
	}
	return true
}

// Tokens of the beginning of a text do not depend on what follows.
func TestBeginnings(t *testing.T) {
	texts := 12
	if testing.Short() {
		texts = 2
	}
	for name, tok := range allTokenizers() {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(3, uint64(len(name))))
			for range texts {
				text := drawText(rng, 1+rng.IntN(24))
				s := reading{text: text}
				if rng.IntN(4) == 0 {
					s.literal = []Span{{0, len(text)}}
				}
				l, err := tok.literalsOf(s)
				if err != nil {
					t.Fatal(err)
				}
				if err := checkBeginnings(tok, text, l); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// sameEncoding returns an error if two encodings differ, except for their overflow.
func sameEncoding(got, want *Encoding) error {
	a, b := *got, *want
	a.Overflow, b.Overflow = nil, nil
	if g, w := fmt.Sprintf("%+v", a), fmt.Sprintf("%+v", b); g != w {
		return fmt.Errorf("is\n%s, want\n%s", g, w)
	}
	return nil
}

// A truncated encoding is the beginning of the encoding of the whole text, or the first of the windows into which it is
// cut: these need all tokens.
func TestTruncated(t *testing.T) {
	lengths := []int{1, 3, 16, 25, 100}
	if testing.Short() {
		lengths = []int{2, 25}
	}
	for name, tok := range allTokenizers() {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(5, uint64(len(name))))
			valid := func(text string) string { return strings.ToValidUTF8(text, "\ufffd") }
			first, second := valid(drawText(rng, 50+rng.IntN(200))), valid(drawText(rng, rng.IntN(250)))
			whole, err := tok.Encode(first, Options{NoSpecial: true, NoTruncation: true, NoPadding: true})
			if err != nil {
				t.Fatal(err)
			}
			if whole.Truncated {
				t.Error("an encoding without truncation is marked as truncated")
			}
			for _, n := range append(lengths, len(whole.IDs), len(whole.IDs)+1) {
				o := Options{MaxLength: max(n, 1), NoPadding: true, NoSpecial: true}
				e, err := tok.Encode(first, o)
				if err != nil {
					t.Fatal(err)
				}
				if k := min(n, len(whole.IDs)); tok.truncation == nil || tok.truncation.Direction == "Right" {
					want := &Encoding{IDs: whole.IDs[:k], Tokens: whole.Tokens[:k], Offsets: whole.Offsets[:k], TypeIDs: whole.TypeIDs[:k],
						Texts: whole.Texts[:k], Words: whole.Words[:k], Special: whole.Special[:k], Mask: whole.Mask[:k], Truncated: n < len(whole.IDs)}
					if err := sameEncoding(e, want); err != nil {
						t.Fatalf("%q, %d tokens: %v", first, n, err)
					}
				}
				o.MaxLength, o.NoSpecial, o.SpecialAsText = n+4, rng.IntN(2) == 0, rng.IntN(4) == 0
				o.NoPadding, o.Strategy = rng.IntN(2) == 0, strategies[rng.IntN(3)]
				checkTruncated(t, tok, o, first)
				checkTruncated(t, tok, o, first, second)
				checkTruncated(t, tok, o, second, first)
			}
		})
	}
}

// checkTruncated compares a truncated encoding with the first of all windows.
func checkTruncated(t *testing.T, tok *Tokenizer, o Options, texts ...string) {
	t.Helper()
	encode := func(o Options) (*Encoding, error) {
		if len(texts) == 1 {
			return tok.Encode(texts[0], o)
		}
		return tok.EncodePair(texts[0], texts[1], o)
	}
	got, err := encode(o)
	all := o
	all.Overflow = true
	want, wantErr := encode(all)
	switch {
	case wantErr != nil && (strings.Contains(wantErr.Error(), "stride is") || strings.Contains(wantErr.Error(), "encodings overflow")):
	case err != nil || wantErr != nil:
		if fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Fatalf("%q, %+v: error %v, want %v", texts, o, err, wantErr)
		}
	default:
		if err := sameEncoding(got, want); err != nil {
			t.Fatalf("%q, %+v: %v", texts, o, err)
		}
		if got.Truncated != (len(want.Overflow) > 0) {
			t.Fatalf("%q, %+v: truncated %t, but %d encodings overflow", texts, o, got.Truncated, len(want.Overflow))
		}
	}
}

// runs are parts of which a long text may consist.
var runs = map[string]string{
	"words": "The quick brown fox doesn't jump over the lazy dog; ", "word": "a", "letters": "ab", "spaces": " ", "signs": ".",
	"digits": "1", "ideographs": "字", "marks": "\u0301", "emoji": "👩\u200d", "removed": "\u200b", "lines": "\n", "unknown": "\ue123",
	"unknown signs": "𓀀", "spaces of SentencePiece": "▁", "zeros": "\x00", "special tokens": "[SEP]", "masks": "<mask> ",
}

// Of a text of 10 MB, no more is read than the limit needs, whatever it consists of.
func TestTruncatedMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: texts of 10 MB; TestTruncated compares tokens")
	}
	const size, most = 10 << 20, 256
	parts := []string{
		"words", "word", "spaces", "signs", "ideographs", "marks", "emoji", "special tokens", "removed", "lines",
	}
	for name, slow := range map[string][]string{ // texts of few tokens, of which all has to be read
		"bert uncased":    {"word", "spaces", "marks", "emoji", "removed", "lines"},
		"gpt2":            nil,
		"llama2":          nil,
		"directory llama": nil,
		"directory gemma": nil,
		"pieces bpe":      {"spaces", "marks", "removed", "lines"},
		"pieces unigram":  {"spaces", "marks", "removed", "lines"},
		"t5":              {"marks", "removed"},
		"whole text":      {"spaces", "marks", "removed", "lines"},
		"trained bpe":     {"spaces", "lines"},
	} {
		tok := allTokenizers()[name]
		if _, err := tok.Encode("a", Options{}); err != nil { // tables are built once
			t.Fatal(err)
		}
		for _, kind := range parts {
			if slices.Contains(slow, kind) {
				continue
			}
			text := strings.Repeat(runs[kind], size/len(runs[kind]))
			for _, pair := range []bool{false, true} {
				e, n, err := encodeCounted(tok, text, pair, Options{MaxLength: most, NoSpecial: true})
				if err != nil || len(e.IDs) != most || !e.Truncated {
					t.Errorf("%s, %s: %d tokens, truncated %t, error %v", name, kind, len(e.IDs), e.Truncated, err)
				}
				if n > 4<<20 {
					t.Errorf("%s, %s: %d bytes are allocated", name, kind, n)
				}
			}
		}
	}
}

// encodeCounted encodes a text, or a pair of it with itself, and returns the number of bytes that this allocates.
func encodeCounted(tok *Tokenizer, text string, pair bool, o Options) (e *Encoding, n int, err error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if pair {
		e, err = tok.EncodePair(text, text, o)
	} else {
		e, err = tok.Encode(text, o)
	}
	runtime.ReadMemStats(&after)
	return e, int(after.TotalAlloc - before.TotalAlloc), err
}

// A run is one word, or removed, or has few tokens for other reasons: then all of it is read, but the memory for each
// of its bytes is bounded, and no more tokens are made than the limit has.
func TestRunsMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: many tokenizers and long texts; TestRuns compares tokens")
	}
	const size, most, perByte = 1 << 17, 256, 100
	for name, tok := range allTokenizers() {
		if tok.truncation != nil && tok.truncation.Direction == "Left" { // see TestLastTokensMemory
			continue
		}
		for kind, part := range runs {
			text := strings.Repeat(part, size/len(part))
			if e, n, err := encodeCounted(tok, text, false, Options{MaxLength: most, NoSpecial: true}); err != nil {
				t.Errorf("%s, %s: %v", name, kind, err)
			} else if n > perByte*size {
				t.Errorf("%s, %s: %d bytes for each one of the text are allocated, for %d tokens", name, kind, n/size, len(e.IDs))
			}
		}
	}
}

// lefts are tokenizers of every model that are set to cut at the left.
func lefts() map[string]*Tokenizer {
	all := map[string]*Tokenizer{}
	for _, name := range []string{
		"bert uncased", "gpt2", "llama2", "fallback partly", "t5", "pieces bpe", "pieces bpe unused", "pieces unigram", "directory gemma",
	} {
		left := *allTokenizers()[name]
		left.side = "Left"
		all[name] = &left
	}
	return all
}

// The tokens that are cut at the left take no memory.
func TestLastTokensMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: texts of half a megabyte; TestLastTokens compares tokens")
	}
	const size, most, perByte = 1 << 19, 256, 230
	for name, tok := range lefts() {
		for _, kind := range []string{"words", "word", "spaces"} {
			text := strings.Repeat(runs[kind], size/len(runs[kind]))
			if _, n, err := encodeCounted(tok, text, false, Options{MaxLength: most, NoSpecial: true}); err != nil || n > perByte*size {
				t.Errorf("%s, %s: %d bytes for each one of the text are allocated, error %v", name, kind, n/size, err)
			}
		}
	}
}

// Of a long text that is cut at the left, the last tokens are those of the whole text, although most of the others are
// dropped while it is read.
func TestLastTokens(t *testing.T) {
	parts := []string{"words", "word", "special tokens"}
	if testing.Short() {
		parts = parts[1:2]
	}
	last := func(t *testing.T, left *Tokenizer) {
		for _, kind := range parts {
			text := "x" + strings.Repeat(runs[kind], 5*joined/2/len(runs[kind])) + "abc def y"
			for _, o := range []Options{
				{MaxLength: 7, NoPadding: true, NoSpecial: true}, {MaxLength: 101, NoPadding: true, NoSpecial: true, SpecialAsText: kind == "words"},
			} {
				for _, texts := range [][]string{{text}, {"abc", text}, {text, text[:2*joined]}} {
					for _, o.Strategy = range strategies[:2] {
						checkTruncated(t, left, o, texts...)
					}
				}
			}
		}
	}
	for name, tok := range lefts() {
		t.Run(name, func(t *testing.T) { last(t, tok) })
	}
}

// The beginning of a long run, which is tokenized in parts, has the tokens that the whole run begins with.
func TestRuns(t *testing.T) {
	for name, tok := range allTokenizers() {
		if tok.truncation != nil {
			continue
		}
		sizes := []int{backPart + 99} // only pieceJoins has longer parts
		if _, ok := tok.model.(*pieceJoins); ok && !testing.Short() {
			sizes = []int{joined - 5, 2*joined + 1}
		}
		for kind, part := range runs {
			for _, size := range sizes {
				text := "x" + strings.Repeat(part, size/len(part)) + "y"
				whole, err := tok.Encode(text, Options{NoSpecial: true, NoPadding: true})
				if err != nil {
					t.Fatal(err)
				}
				for _, n := range []int{1, 7, 200} {
					got, err := tok.Encode(text, Options{NoSpecial: true, NoPadding: true, MaxLength: n})
					n = min(n, len(whole.IDs))
					if err != nil || !slices.Equal(got.IDs, whole.IDs[:n]) || !slices.Equal(got.Offsets, whole.Offsets[:n]) ||
						!slices.Equal(got.Words, whole.Words[:n]) || got.Truncated != (n < len(whole.IDs)) {
						t.Errorf("%s, %s: the first %d tokens of %d bytes differ, error %v", name, kind, n, len(text), err)
					}
				}
			}
		}
	}
}

// A text that is merged in parts has the tokens of the same text merged as a whole.
func TestJoinsInParts(t *testing.T) {
	for name, tok := range allTokenizers() {
		j, ok := tok.model.(*pieceJoins)
		if !ok || j.hasUnused {
			continue
		}
		rng := rand.New(rand.NewPCG(7, uint64(len(name))))
		texts := []string{drawText(rng, 6000)}
		for _, part := range runs {
			texts = append(texts, drawText(rng, 9)+strings.Repeat(part, 2*joined/len(part))+drawText(rng, 9))
		}
		for _, text := range texts {
			text = strings.ToValidUTF8(text, "\ufffd")
			want, _ := j.join(nil, 0, &symbols{in: new(piece)}, text, 0, len(text), false)
			p := newPiece(text)
			if got, err := j.tokenize(nil, &p); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s, %.30q: %d tokens in parts differ from %d of the whole, error %v", name, text, len(got), len(want), err)
			}
		}
	}
}

// Of a text that begins with a special token, which is text, no more is read than the limit needs either.
func TestTruncatedMemoryOfLiterals(t *testing.T) {
	const most = 64
	for _, name := range []string{"llama2", "directory llama", "directory gemma", "directory t5", "target of marian"} {
		tok := allTokenizers()[name]
		for _, special := range slices.Sorted(maps.Keys(tok.added.special))[:1] {
			text := special + strings.Repeat("The quick brown fox doesn't jump. ", 30_000)
			e, n, err := encodeCounted(tok, text, false, Options{MaxLength: most, NoSpecial: true, SpecialAsText: true})
			if err != nil || len(e.IDs) != most || !e.Truncated {
				t.Errorf("%s, %s: %d tokens, truncated %t, error %v", name, special, len(e.IDs), e.Truncated, err)
			}
			if n > 4<<20 {
				t.Errorf("%s, %s: %d bytes are allocated", name, special, n)
			}
		}
	}
}

// Spaces after a line break are a separate word only if no line break follows, which is not known at an open end.
func TestLineBreakAfterOpenEnd(t *testing.T) {
	if start, end, whole := (wordsAndDigits{3}).open("\n      ", 0); whole {
		t.Errorf("the match is %d to %d, want one that may grow: before another line break it is longer", start, end)
	}
}

// Every loop over the characters of a text asks whether the caller has left, also where a text is one run of marks, which
// are sorted, or where characters are rewritten.
func TestStagesAsk(t *testing.T) {
	const size = 1 << 17
	nfkc := allTokenizers()["pieces unigram nfkc"].normalizer.(*pieceNormalizer)
	marks, sorted := strings.Repeat("\u0301\u0323", size/4), strings.Repeat("\u0323", size/2)
	for _, c := range []struct {
		name string
		n    normalizer
		text string
		want int // number of checks
	}{
		{"NFD", unicodeForm(norm.NFD), "e" + marks, 140},
		{"NFD in order", unicodeForm(norm.NFD), "é" + sorted, 84},
		{"NFC", unicodeForm(norm.NFC), "e" + marks, 168},
		{"characters", nfkc.chars, strings.Repeat("ﬁ", size/3), 54},
		{"bytes", byteLevelForm{}, strings.Repeat("é", size/2), 54},
		{"at odd positions", nmt{}, "e" + strings.Repeat("é", size/2), 11},
	} {
		for _, open := range []bool{false, true} {
			checks := 0
			p := newPiece(c.text)
			p.open, p.ended = open, func() error { checks++; return nil }
			if c.n.normalize(&p); checks < c.want && (!open || checks == 0) {
				t.Errorf("%s, open %t: %d checks, want %d", c.name, open, checks, c.want)
			}
		}
	}
}

// Marks are sorted by their combining class, and equal ones stay in their order.
func TestSortMarks(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 5))
	some := []rune("\u0301\u0323\u0308\u0327\u0345\u05b0\u064b\u0300")
	for n := range 200 {
		text := []rune{'a'}
		for range n {
			text = append(text, some[rng.IntN(len(some))])
		}
		p := newPiece(string(text))
		unicodeForm(norm.NFD).normalize(&p)
		want := norm.NFD.String(string(text[:min(len(text), 25)])) // package norm breaks longer runs
		if got := []rune(p.s); n < 25 && p.s != want || len(got) != len(text) {
			t.Fatalf("%q becomes %q, want %q", string(text), p.s, want)
		} else if !slices.IsSortedFunc(got[1:], func(a, b rune) int {
			return int(norm.NFD.PropertiesString(string(a)).CCC()) - int(norm.NFD.PropertiesString(string(b)).CCC())
		}) {
			t.Fatalf("%q becomes %q, which is not in order", string(text), p.s)
		}
	}
}

// A context that ends ends the reading of a long text, whose loops ask for it. A tokenizer that was left is as before.
func TestEncodeContext(t *testing.T) {
	for _, dir := range []string{
		"../testdata/tokenizer/m2m100", "../testdata/tokenizer/marian", "../models/testdata/sentence_mean",
	} {
		tok, err := Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{" ", "a", "\u4e2d", "e\u0301 ", "ab1. \u4e2d", "\u00e9"} {
			text := strings.Repeat(part, 1<<17/len(part))
			all := partest.NewCountdown(math.MaxInt)
			o := Options{NoTruncation: true, Context: all}
			want, err := tok.Encode(text, o)
			if err != nil || all.Checks() < 1<<17>>14 {
				t.Fatalf("%s, %q: %d checks, error %v", dir, part, all.Checks(), err)
			}
			for end := 1; end <= all.Checks(); end += 1 + all.Checks()/3 {
				o.Context = partest.NewCountdown(end)
				if _, err := tok.Encode(text, o); !errors.Is(err, context.Canceled) {
					t.Fatalf("%s, %q: error %v, want that of the context", dir, part, err)
				}
			}
			o.Context = nil
			if again, err := tok.Encode(text, o); err != nil || !slices.Equal(again.IDs, want.IDs) {
				t.Errorf("%s, %q: other tokens after a text that was left (%v)", dir, part, err)
			}
		}
	}
}
