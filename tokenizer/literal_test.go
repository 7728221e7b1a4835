package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// Special tokens within Options.Literal are text, and others are not.
func TestLiteral(t *testing.T) {
	tok, err := Load("../models/testdata/sentence_dense")
	if err != nil {
		t.Fatal(err)
	}
	sep, _ := tok.ID("[SEP]")
	const text = "the [SEP] cat [SEP]"
	for _, c := range []struct {
		literal []Span
		want    []int // starts of the offsets of [SEP]
	}{
		{nil, []int{4, 14}},
		{[]Span{{4, 9}}, []int{14}},
		{[]Span{{8, 15}}, nil},
		{[]Span{{9, 14}}, []int{4, 14}},
		{[]Span{{0, len(text)}}, nil},
	} {
		e, err := tok.Encode(text, Options{NoSpecial: true, Literal: c.literal})
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for i, id := range e.IDs {
			if id == sep {
				got = append(got, e.Offsets[i].Start)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("literal %v: [SEP] at %v, want %v", c.literal, got, c.want)
		}
	}
}

// literalFiles are tokenizers in whose special tokens a user's text could take part, by normalizer.
func literalFiles(t *testing.T) map[string]*Tokenizer {
	t.Helper()
	added := []addedToken{
		{Content: "<|im_start|>", Special: true}, {Content: "<|im_end|>", Special: true},
		{Content: "<|end|>", Special: true, RStrip: true},
		{Content: "x<|end|>", Special: true}, {Content: "<<|end|>", Special: true}, {Content: "<|end|>>", Special: true},
		{Content: "y<", Special: false}, {Content: "end", Special: false}, {Content: "<|", Special: true, SingleWord: true},
		{Content: "  ", Special: false}, {Content: "\n\n", Special: false}, {Content: "[M]", Special: true, LStrip: true},
		{Content: "<s>", Special: true, Normalized: true}, {Content: "</s>", Special: true, Normalized: true},
		{Content: "<é>", Special: true, Normalized: true}, {Content: "q<s", Special: false, Normalized: true},
		{Content: "a<s>", Special: true, Normalized: true}, {Content: "<S2>", Special: true, Normalized: true},
		{Content: "<u>", Special: false}, {Content: "<v>", Special: false, Normalized: true},
	}
	var vocab []string
	for c := ' '; c < 127; c++ {
		vocab = append(vocab, string(c))
	}
	vocab = append(vocab, "\n", "é", "▁", "≯", "?")
	files := map[string]*Tokenizer{}
	for name, normalizer := range map[string]string{
		"none": "null", "NFC": `{"type": "NFC"}`, "NFKC": `{"type": "NFKC"}`,
		"lower case": `{"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Lowercase"}]}`,
		"accents":    `{"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}, {"type": "Lowercase"}]}`,
		"bert": `{"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null,
			"lowercase": true}`,
		"replace": `{"type": "Sequence", "normalizers": [{"type": "Replace", "pattern": {"String": "@@"}, "content": "<s>"},
			{"type": "Replace", "pattern": {"Regex": ">+"}, "content": ">"}]}`,
		"prepend": `{"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"},
			{"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}`,
		"ascii": `{"type": "Replace", "pattern": {"Regex": "[^ -~]"}, "content": ""}`,
		"strip": `{"type": "Strip", "strip_left": true, "strip_right": true}`,
	} {
		ids := map[string]int{}
		for i, c := range vocab[:len(vocab)-1] {
			ids[c] = i
		}
		list := slices.Clone(added)
		for i := range list {
			list[i].ID = len(ids) + i
		}
		file, err := json.Marshal(map[string]any{
			"version": "1.0", "normalizer": json.RawMessage(normalizer), "added_tokens": list,
			"model": map[string]any{"type": "BPE", "vocab": ids, "merges": []string{}, "unk_token": "?"},
		})
		if err != nil {
			t.Fatal(err)
		}
		if files[name], err = Read(bytes.NewReader(file)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return files
}

// specialTokens returns the special tokens of an encoding, and others with the given names.
func specialTokens(tok *Tokenizer, e *Encoding, others ...string) (tokens []string) {
	for _, id := range e.IDs {
		if token, _ := tok.Token(id); tok.IsSpecial(id) || slices.Contains(others, token) {
			tokens = append(tokens, token)
		}
	}
	return tokens
}

// neutralText returns a neutral text with what matters of a user's: whether a word is beside the text before and after
// it, and a space at the end.
func neutralText(user string) string {
	isWord := func(r rune, _ int) bool { return classes().has(r, wordChar) }
	text := ","
	if isWord(utf8.DecodeRuneInString(user)) {
		text = "b,"
	}
	if isWord(utf8.DecodeLastRuneInString(user)) {
		return text + "b"
	} else if strings.HasSuffix(user, " ") {
		return text + " "
	}
	return text
}

// Whatever a user's ranges contain, the special tokens of a text are those that it has with neutral ranges. Text without
// special tokens in these ranges has the same tokens as without Options.Literal.
func TestLiteralRanges(t *testing.T) {
	ours := []string{
		"<|im_start|>", "<|im_end|>", "<|end|>", "<s>", "</s>", "<é>", "[M]", "<S2>", "<", ">", "<|", "|>", "end",
		"im_end|>", " ", "\n", "<u>", "<v>", "<s", "s>", "user", ".", "@", "x", "＜s＞", "<e\u0301>",
	}
	theirs := []string{
		"<|im_end|>", "<|im_", "end|>", "|im_end|>", "<", ">", "<|", "|>", "x", "y", "a", "q", "s", "/s>", "<s>", "</s>", "<",
		"＜s＞", "<S>", "＜/s＞", "\u0338", "\u0301", "e", "@", "@@", ">>", "[M]", "M]", "[", " ", "\n", "<é>", "<e\u0301>",
		"É>", "<u>", "<v>", "u>", "<V>", "<|END|>", "<ｓ>", "2", "S2>", "x<|", "\ufffd",
	}
	benign := []string{"b", "c ", "the cat", " d", "1", ",\n", "  ", "\n\n", "ü", "日本", "B"}
	rounds := 2000
	if testing.Short() {
		rounds = 500
	}
	for name, tok := range literalFiles(t) {
		if name == "ascii" { // it joins texts of both
			continue
		}
		rng := rand.New(rand.NewPCG(1, 2))
		some := func(from []string, most int) (s string) {
			for range rng.IntN(most + 1) {
				s += from[rng.IntN(len(from))]
			}
			return s
		}
		for range rounds {
			var text, plain, calm string
			var literal, neutral, calmly []Span
			for range 1 + rng.IntN(4) {
				own := some(ours, 3)
				text, plain, calm = text+own, plain+own, calm+own
				if user := some(theirs, 4); user != "" {
					literal = append(literal, Span{len(text), len(text + user)})
					calmer := neutralText(user)
					neutral = append(neutral, Span{len(plain), len(plain + calmer)})
					quiet := "." + some(benign, 3) + "."
					calmly = append(calmly, Span{len(calm), len(calm + quiet)})
					text, plain, calm = text+user, plain+calmer, calm+quiet
				}
			}
			e, err := tok.Encode(text, Options{Literal: literal})
			if err != nil {
				t.Fatalf("%s: %q: %v", name, text, err)
			}
			want, err := tok.Encode(plain, Options{})
			if err != nil {
				t.Fatal(err)
			}
			var marks []string // they look special
			for _, token := range specialTokens(tok, want, "<u>", "<v>") {
				if token == "<u>" || token == "<v>" {
					marks = append(marks, token)
				}
			}
			if got, want := specialTokens(tok, e, marks...), specialTokens(tok, want, marks...); !slices.Equal(got, want) {
				t.Fatalf("%s: %q with the user's %v has %q, want %q, as %q", name, text, literal, got, want, plain)
			}
			if e, err = tok.Encode(plain, Options{Literal: neutral}); err != nil || !reflect.DeepEqual(e, want) {
				t.Fatalf("%s: %q with the user's %v: %q, want %q, %v", name, plain, neutral, e.Tokens, want.Tokens, err)
			}
			e, err = tok.Encode(calm, Options{Literal: calmly})
			if want, _ = tok.Encode(calm, Options{}); err != nil || !reflect.DeepEqual(e, want) {
				t.Fatalf("%s: %q with the user's %v: %q, want %q, %v", name, calm, calmly, e.Tokens, want.Tokens, err)
			}
		}
	}
}

// Models whose vocabulary has the special tokens do not make them of a user's text.
func TestLiteralModels(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range readGolden().Cases {
		tok := readGolden().load(t, c.Name)
		unknown := map[string]bool{}
		e, err := tok.Encode("\U0001F9FF \u0e5b ẞẞẞ", Options{NoSpecial: true})
		if err != nil { // a vocabulary without an unknown token
			e = &Encoding{}
		}
		for _, token := range specialTokens(tok, e) {
			unknown[token] = true
		}
		var tokens []string
		for _, token := range slices.Sorted(maps.Keys(tok.added.special)) {
			if !unknown[token] {
				tokens = append(tokens, token)
			}
		}
		if len(tokens) == 0 {
			continue
		}
		for range 20 {
			var text, plain string
			var literal []Span
			for range 3 {
				own, user := tokens[rng.IntN(len(tokens))], " "
				for range 1 + rng.IntN(3) {
					token := tokens[rng.IntN(len(tokens))]
					from := rng.IntN(len(token))
					user += []string{token, strings.ToUpper(token), token[:from], token[from:], " a"}[rng.IntN(5)]
				}
				literal = append(literal, Span{len(text + own), len(text + own + user)})
				text, plain = text+own+user, plain+own+" a"[:min(2, len(user))]
			}
			o := Options{NoSpecial: true, NoTruncation: true, NoPadding: true}
			want, err2 := tok.Encode(plain, o)
			o.Literal = literal
			e, err := tok.Encode(text, o)
			if err != nil || err2 != nil {
				if !strings.Contains(fmt.Sprint(err, err2), "not in the vocabulary") {
					t.Errorf("%s: %q: %v, %v", c.Name, text, err, err2)
				}
				continue
			}
			known := func(e *Encoding) []string {
				return slices.DeleteFunc(specialTokens(tok, e), func(token string) bool { return unknown[token] })
			}
			if got, want := known(e), known(want); !slices.Equal(got, want) {
				t.Fatalf("%s: %q with the user's %v has %q, want %q, as %q", c.Name, text, literal, got, want, plain)
			}
		}
	}
}

// A normalizer that removes the user's text may join the text on both sides, which is not one special token then.
func TestLiteralRemoved(t *testing.T) {
	tok := literalFiles(t)["ascii"]
	e, err := tok.Encode("<és>é</s>", Options{Literal: []Span{{1, 3}, {5, 7}}})
	if got := specialTokens(tok, e); err != nil || !slices.Equal(got, []string{"</s>"}) {
		t.Errorf("%q, %v", e.Tokens, err)
	}
}

// The vocabulary of a model may have a special token as a whole word, or reach it by merges.
func TestLiteralWords(t *testing.T) {
	const added = `"added_tokens": [{"id": 0, "content": "[E]", "single_word": true, "lstrip": false, "rstrip": false,
		"normalized": false, "special": true}, {"id": 1, "content": "#", "single_word": false, "lstrip": false, "rstrip": false,
		"normalized": false, "special": true}]`
	for name, model := range map[string]string{
		"words": `{"type": "WordLevel", "vocab": {"[E]": 0, "#": 1, "?": 2, "[": 3, "E]": 4, "a": 5}, "unk_token": "?"}`,
		"pieces": `{"type": "WordPiece", "vocab": {"[E]": 0, "#": 1, "?": 2, "[": 3, "E": 4, "##]": 5, "a": 6}, "unk_token": "?",
			"continuing_subword_prefix": "##", "max_input_chars_per_word": 100}`,
		"merges": `{"type": "BPE", "vocab": {"[E]": 0, "#": 1, "?": 2, "[": 3, "E": 4, "]": 5, "E]": 6, "a": 7},
			"merges": ["E ]", "[ E]"], "unk_token": "?"}`,
		"whole": `{"type": "BPE", "vocab": {"[E]": 0, "#": 1, "?": 2, "[": 3, "E": 4, "]": 5, "a": 6}, "merges": [],
			"ignore_merges": true, "unk_token": "?"}`,
		"scores": `{"type": "Unigram", "vocab": [["[E]", 0], ["#", 0], ["?", 0], ["[", -9], ["E", -9], ["]", -9], ["a", -9]],
			"unk_id": 2}`,
	} {
		const before = `{"version": "1.0", "pre_tokenizer": {"type": "WhitespaceSplit"}, `
		tok, err := Read(strings.NewReader(before + added + `, "model": ` + model + `}`))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		const text = "[E] [E] a[E] [E]"
		e, err := tok.Encode(text, Options{Literal: []Span{{3, len(text) - 3}}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if found := specialTokens(tok, e); len(found) != 2 || e.IDs[0] != 0 || e.IDs[len(e.IDs)-1] != 0 {
			t.Errorf("%s: tokens %q", name, e.Tokens)
		}
		for i, at := range e.Offsets {
			if i > 0 && at.Start < e.Offsets[i-1].End || at.End <= at.Start {
				t.Errorf("%s: offsets %v", name, e.Offsets)
			}
		}
		if e.Words[2] != 1 {
			t.Errorf("%s: words %v", name, e.Words)
		}
		// In text that is not the user's, the model may make a special token of one that is no single word.
		want, _ := tok.Encode("a[E] a", Options{})
		if e, err = tok.Encode("a[E] a", Options{Literal: []Span{{5, 6}}}); err != nil || !reflect.DeepEqual(e, want) {
			t.Errorf("%s: tokens %q, want %q, %v", name, e.Tokens, want.Tokens, err)
		}
		e, err = tok.Encode("a #", Options{SpecialAsText: true})
		if err == nil || !strings.Contains(err.Error(), `"#" is a special token, and there is no other`) {
			t.Errorf("%s: %v, %v", name, e, err)
		}
	}
}
