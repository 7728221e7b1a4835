package tokenizer

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// These are the scores that version 0.23.3 of the library writes after reading them. Some differ from the
// nearest float64, which would break ties between splits differently.
func TestScores(t *testing.T) {
	for text, want := range map[string]float64{
		"-11.041043875685073":               -11.041043875685071,
		"-12.990922710509967":               -12.990922710509968,
		"-6.3485926435276845":               -6.3485926435276845,
		"-0":                                math.Copysign(0, -1),
		"1E+5":                              1e5,
		"1.5e-3":                            0.0015,
		"9007199254740993":                  9007199254740992,
		"9007199254740993.0":                9007199254740994,
		"18446744073709551615":              1.8446744073709552e19,
		"18446744073709551616.59":           1.8446744073709552e19,
		"-9223372036854775809":              -9.223372036854776e18,
		"123456789012345678901234567890":    1.2345678901234568e29,
		"0.123456789012345678901234567890":  0.12345678901234568,
		"1844674407370955161.65e3":          1.8446744073709552e21,
		"100000000000000000000000.25e-10":   1e13,
		"4.9e-324":                          5e-324,
		"1e-400":                            0,
		"1e-99999999999":                    0,
		"0e99999999999":                     0,
		"1.7976931348623157e308":            math.MaxFloat64,
		"0.0000000000000000000000000000001": 1e-31,
	} {
		var list scoredTokens
		err := list.read([]byte(`[["a", ` + text + `]]`))
		if err != nil || math.Float64bits(list[0].score) != math.Float64bits(want) {
			t.Errorf("%s is read as %v, want %v (error %v)", text, list, want, err)
		}
		if x, ok := readNumber(text); !ok || math.Float64bits(x) != math.Float64bits(want) {
			t.Errorf("%s is %v, want %v", text, x, want)
		}
	}
	for _, text := range []string{"1e309", "-1e400", "1e99999999999", "2e308", `"1"`, "01", "1.", "null"} {
		var list scoredTokens
		if err := list.read([]byte(`[["a", ` + text + `]]`)); err == nil {
			t.Errorf("%s is read as %v", text, list)
		}
	}
}

// Of several splits with the same score, the one with the longest last token is used.
func TestTies(t *testing.T) {
	for vocab, want := range map[string][]int{
		`["a", -1], ["aa", -2]`:                                    {1},
		`["aa", -2], ["a", -1]`:                                    {0},
		`["a", -1], ["aa", -1.9]`:                                  {1},
		`["a", -1], ["aa", -2.1]`:                                  {0, 0},
		`["a", -11.041043875685073], ["aa", -22.0820877513701459]`: {0, 0},
	} {
		model := `{"type": "Unigram", "unk_id": null, "vocab": [` + vocab + `]}`
		tok, err := Read(strings.NewReader(refusedFile("model", model)))
		if err != nil {
			t.Fatal(err)
		}
		e, err := tok.Encode("aa", Options{})
		if err != nil || !slices.Equal(e.IDs, want) {
			t.Errorf("%s: ids %v, want %v (error %v)", vocab, e.IDs, want, err)
		}
	}
}

// The libraries sentencepiece 0.2.3 and tokenizers 0.23.3 give these tokens. They differ where only rounding decides:
// sentencepiece adds scores in float32, tokenizers in float64.
func TestUnigramReferences(t *testing.T) {
	normal := func(text string, score float32) filePiece { return filePiece{text, score, normalPiece} }
	user := func(text string) filePiece { return filePiece{text, 0, userPiece} }
	for name, c := range map[string]struct {
		pieces        []filePiece
		text          string
		sentencepiece []string
		tokenizers    []string // nil for a file with pieces that only sentencepiece has
	}{
		// −0.7 − 0.1 is −0.8 in float32, and greater than −0.8 in float64.
		"rounded": {[]filePiece{normal("a", -0.7), normal("aa", -0.1), normal("aaa", -0.8)}, "aaa",
			[]string{"aaa"}, []string{"a", "aa"}},
		// An unknown character has the lowest score minus 10, here −22.
		"unknown": {[]filePiece{normal("xy", -12), normal("z", -12), normal("yz", -1.9)}, "xyz",
			[]string{"x", "yz"}, []string{"x", "yz"}},
		"known": {[]filePiece{normal("xy", -12), normal("z", -12), normal("yz", -2.1)}, "xyz",
			[]string{"xy", "z"}, []string{"xy", "z"}},
		// A user-defined piece has the score 0.1 for each byte after the first.
		"user-defined":    {[]filePiece{normal("a", 0.04), normal("b", 0.05), user("ab")}, "ab", []string{"ab"}, nil},
		"better than one": {[]filePiece{normal("a", 0.04), normal("b", 0.07), user("ab")}, "ab", []string{"a", "b"}, nil},
		"of several bytes": {[]filePiece{normal("é", 0.14), normal("b", 0.04), user("éb")}, "éb",
			[]string{"éb"}, nil},
	} {
		compare := func(library string, m model, want []string) {
			t.Helper()
			p := newPiece(c.text)
			list, err := m.tokenize(nil, &p)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, x := range list {
				got = append(got, c.text[x.at.Start:x.at.End])
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %q has the tokens %q, want %q of %s", name, c.text, got, want, library)
			}
		}
		pieces := append([]filePiece{{text: "<unk>", kind: unknownPiece}}, c.pieces...)
		m, err := newPieceModel(&pieceFile{pieces: pieces})
		if err != nil {
			t.Fatal(err)
		}
		compare("sentencepiece", newPieceUnigrams(m), c.sentencepiece)
		if c.tokenizers == nil {
			continue
		}
		settings := unigramSettings{Unknown: new(int)}
		for _, p := range pieces {
			score, err := strconv.ParseFloat(fmt.Sprint(p.score), 64) // −0.7 rather than the nearest float32
			if err != nil {
				t.Fatal(err)
			}
			settings.Vocab = append(settings.Vocab, scoredToken{p.text, score})
		}
		u, err := settings.finish()
		if err != nil {
			t.Fatal(err)
		}
		compare("tokenizers", u, c.tokenizers)
	}
}
