package tokenizer

import (
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A text of a single repeated letter is one word. Programs with quadratic time do not finish on it.
func TestLongWord(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: words of half a megabyte; TestLongSpaces is similar")
	}
	g := readGolden()
	for name, long := range map[string]int{
		"bert uncased": 1 << 19, "gpt2": 1 << 19, "llama2": 1 << 19, "whole text": 1 << 19,
		"llama3": 1 << 16, "t5": 1 << 16, "clip": 1 << 16, "split endings": 1 << 16,
	} {
		tok := g.load(t, name)
		for letter, size := range map[string]int{"a": long, "é": 1 << 16, " ": 1 << 16, "\n": 1 << 16, "字": 1 << 16} {
			text := strings.Repeat(letter, size/len(letter))
			e, err := tok.Encode(text, Options{NoSpecial: true})
			if err != nil {
				t.Fatal(err)
			}
			if n := len(e.Offsets); n > 0 && e.Offsets[n-1].End > len(text) {
				t.Errorf("%s, %q: the last token ends at %d of %d", name, letter, e.Offsets[n-1].End, len(text))
			}
		}
	}
}

// White space may belong to the tokens before and after it. It must not be scanned again for each of them.
func TestLongSpaces(t *testing.T) {
	text := strings.Repeat(" \n", 1<<18)
	for _, flags := range []addedToken{{LStrip: true}, {RStrip: true}, {LStrip: true, RStrip: true}} {
		flags.Content, flags.ID = "\n", 17
		tok := readGolden().load(t, "words")
		var err error
		if tok.added, err = newAddedTokens([]addedToken{flags}, tok.model, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := tok.Encode(text, Options{}); err != nil {
			t.Fatal(err)
		}
	}
}

// A tokenizer is thread-safe, including its cache of words.
func TestConcurrent(t *testing.T) {
	g := readGolden()
	for _, name := range []string{"llama3", "t5", "bert uncased"} {
		tok := g.load(t, name)
		texts := g.random(500)
		want := make([][]byte, len(texts))
		for i, text := range texts {
			e, err := tok.Encode(text, Options{})
			if err != nil {
				t.Fatal(err)
			}
			want[i] = appendLine(nil, tok, e)
		}
		tok = g.load(t, name)
		var wait sync.WaitGroup
		for worker := range 4 {
			wait.Go(func() {
				for i := range texts {
					i = (i + 131*worker) % len(texts)
					e, err := tok.Encode(texts[i], Options{})
					if err != nil {
						t.Error(err)
					} else if got := appendLine(nil, tok, e); string(got) != string(want[i]) {
						t.Errorf("%s: %q has other tokens", name, texts[i])
					}
				}
			})
		}
		wait.Wait()
	}
}

func TestOptions(t *testing.T) {
	tok := readGolden().load(t, "padded")
	lengths := func(o Options) int {
		t.Helper()
		e, err := tok.Encode("a b c d e", o)
		if err != nil {
			t.Fatal(err)
		}
		return len(e.IDs)
	}
	for _, c := range []struct {
		o    Options
		want int
	}{
		{Options{}, 16}, {Options{NoPadding: true}, 7}, {Options{NoPadding: true, NoSpecial: true}, 5},
		{Options{NoPadding: true, MaxLength: 4}, 4}, {Options{NoPadding: true, MaxLength: 4, NoSpecial: true}, 4}, {Options{MaxLength: 4}, 16},
	} {
		if got := lengths(c.o); got != c.want {
			t.Errorf("%+v: %d tokens, want %d", c.o, got, c.want)
		}
	}
	e, err := tok.EncodePair("a b c d e", "x y z", Options{MaxLength: 9, NoPadding: true})
	if err != nil || strings.Join(e.Tokens, " ") != "[CLS] a b c [SEP] x y z [SEP]" {
		t.Errorf("pair is %v, %v", e, err)
	}
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{MaxLength: -1}, "tokenizer: MaxLength is -1, want at least 0"},
		{Options{MaxLength: 5, Stride: -2}, "tokenizer: Stride is -2, want at least 0"},
		{Options{MaxLength: 5, NoTruncation: true}, "tokenizer: MaxLength and NoTruncation exclude each other"},
		{Options{MaxLength: 1}, "tokenizer: truncation: max_length is 1, want room for 2 special tokens"},
	} {
		if _, err := tok.Encode("a", c.o); err == nil || err.Error() != c.want {
			t.Errorf("%+v: %v, want %s", c.o, err, c.want)
		}
	}
}

// A text that is not UTF-8 is an error, wherever its invalid bytes are.
func TestInvalid(t *testing.T) {
	tok := readGolden().load(t, "words")
	const want = "tokenizer: the text is invalid UTF-8"
	for _, text := range []string{"\xff", "a \xe2\x82 b", "a b\xc3", "\xed\xa0\x80"} {
		if e, err := tok.Encode(text, Options{MaxLength: 3}); err == nil || err.Error() != want {
			t.Errorf("%q: %v, %v, want %s", text, e, err, want)
		}
		if e, err := tok.EncodePair("a", text, Options{}); err == nil || err.Error() != want {
			t.Errorf("pair with %q: %v, %v, want %s", text, e, err, want)
		}
	}
}

func TestLookup(t *testing.T) {
	tok := readGolden().load(t, "added tokens")
	for _, c := range []struct {
		token   string
		id      int
		special bool
	}{{"quick", 2, false}, {"[MASK]", 23, true}, {"Déjà", 22, false}} {
		id, ok := tok.ID(c.token)
		token, has := tok.Token(c.id)
		if id != c.id || !ok || token != c.token || !has || tok.IsSpecial(id) != c.special {
			t.Errorf("%q: id %d %v, token %q %v, special %v", c.token, id, ok, token, has, tok.IsSpecial(id))
		}
	}
	if _, ok := tok.ID("nothing"); ok {
		t.Error("a missing token has an id")
	}
	for _, id := range []int{-1, 26, math.MaxInt} {
		if token, ok := tok.Token(id); ok || tok.Decode([]int{id}) != "" {
			t.Errorf("id %d is %q", id, token)
		}
	}
	if tok.Size() != 26 {
		t.Errorf("size is %d, want 26", tok.Size())
	}
}

// A small SentencePiece model cannot take much memory, neither for a text nor for its decoding.
func TestHostilePieces(t *testing.T) {
	good := wirePieces("<unk>", "a", "b")
	open := func(rules []byte) *Tokenizer {
		t.Helper()
		tok, err := pieceTokenizer(append(slices.Clone(good), rules...))
		if err == nil {
			err = tok.setSpecial(nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		return tok
	}
	tok := open(longRules(3, 100_000))
	if _, err := tok.Encode(strings.Repeat("a", 1000), Options{}); err == nil || !strings.Contains(err.Error(), "the text becomes too long") {
		t.Errorf("error %v", err)
	}
	const n = 5000
	if got := open(longRules(5, 64)).Decode(slices.Repeat([]int{1}, n)); got != metaSpace+strings.Repeat("x", 64*n) {
		t.Errorf("%d bytes are decoded", len(got))
	}
}
