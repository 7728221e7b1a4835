package tokenizer

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// NewTrained returns the tokenizer that Read returns for the file, in all its fields.
func TestNewTrained(t *testing.T) {
	special := []string{"<pad>", "<bos>", "<unk>"}
	counts := map[string]int{" low": 5, " lower": 2, " newest": 6, " widest": 3, " é": 1}
	parts, merges := TrainBPE(counts, special, 30)
	for _, c := range []struct {
		words  string
		tokens []string
		merges [][2]int32
	}{
		{"bpe", parts, merges},
		{"bpe", special, nil},
		{"word", TrainWords(counts, special, 6), nil},
		{"char", append(special, " ", "a", "é", "\u0301"), nil},
	} {
		want, err := Read(bytes.NewReader(Trained(c.words, len(special), 0, c.tokens, c.merges)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := NewTrained(c.words, len(special), 0, c.tokens, c.merges)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", c.words, got, want)
		}
	}
}

func TestNewTrainedRefuses(t *testing.T) {
	merge := func(a, b int32) [][2]int32 { return [][2]int32{{a, b}} }
	for _, c := range []struct {
		words   string
		special int
		end     int
		tokens  string
		merges  [][2]int32
		want    string
	}{
		{"words", 1, 0, "<unk> a", nil, `words "words", want char, word or bpe`},
		{"", 1, 0, "<unk> a", nil, `words "", want char, word or bpe`},
		{"word", 1, 0, "<unk> a b ab", merge(1, 2), "1 merges, but words word"},
		{"char", 1, 0, "<unk> a b ab", merge(1, 2), "1 merges, but words char"},
		{"char", 0, 0, "<unk> a", nil, "0 of 2 tokens are special, want at least one"},
		{"char", 3, 0, "<unk> a", nil, "3 of 2 tokens are special, want at least one"},
		{"char", 1, 1, "<unk> a", nil, "token 1 ends a text, want a special one, 0 to 0"},
		{"char", 1, -1, "<unk> a", nil, "token -1 ends a text, want a special one, 0 to 0"},
		{"char", 1, 0, "<unk> a b a", nil, `tokens 1 and 3 are both "a"`},
		{"bpe", 1, 0, "<unk> a b ab", merge(1, 4), "merge 0 joins tokens 1 and 4 of 4"},
		{"bpe", 1, 0, "<unk> a b ab", merge(-1, 2), "merge 0 joins tokens -1 and 2 of 4"},
		{"bpe", 1, 0, "<unk> a b ab", merge(2, 1), `merge 0 joins "b" and "a", want both and the result in the vocabulary`},
	} {
		tok, err := NewTrained(c.words, c.special, c.end, strings.Fields(c.tokens), c.merges)
		if tok != nil || err == nil || err.Error() != "tokenizer: "+c.want {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// The scanner of spaces finds the same matches as the regular expression.
func TestBlanks(t *testing.T) {
	rng, expr := rand.New(rand.NewPCG(1, 5)), regexp.MustCompile(blanks)
	for range 300 {
		var b strings.Builder
		for range rng.IntN(8) {
			b.WriteString([]string{" ", " ", "a", "é", "\t", "\u00a0"}[rng.IntN(6)])
		}
		want := expr.ReplaceAllStringFunc(b.String(), func(s string) string { return "<" + s + ">" })
		var got strings.Builder
		at := 0
		for {
			start, end, ok := blankRun.next(b.String(), at)
			if !ok {
				break
			}
			got.WriteString(b.String()[at:start] + "<" + b.String()[start:end] + ">")
			at = end
		}
		if got.WriteString(b.String()[at:]); got.String() != want {
			t.Errorf("%q: %q, want %q", b.String(), got.String(), want)
		}
	}
}
