package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// fuzzed are tokenizers that together contain all components.
var fuzzed = sync.OnceValue(func() map[string]*Tokenizer {
	g := readGolden()
	all := map[string]*Tokenizer{}
	for i := range g.Cases {
		all[g.Cases[i].Name] = g.load(new(testing.T), g.Cases[i].Name)
	}
	return all
})

// checkOffsets returns an error if a token does not cover whole characters of its text.
func checkOffsets(e *Encoding, texts ...string) error {
	for i, at := range e.Offsets {
		text := texts[max(e.Texts[i], 0)]
		if at.Start < 0 || at.Start > at.End || at.End > len(text) {
			return fmt.Errorf("token %d of %q is at %v of %d bytes", i, e.Tokens, at, len(text))
		}
		for _, place := range []int{at.Start, at.End} {
			if utf8.ValidString(text) && place < len(text) && !utf8.RuneStart(text[place]) {
				return fmt.Errorf("token %d of %q is at %v, inside a character", i, e.Tokens, at)
			}
		}
	}
	for _, more := range e.Overflow {
		if err := checkOffsets(more, texts...); err != nil {
			return err
		}
	}
	return nil
}

// The tokens of any text have offsets within the text, and byte-level tokenizers decode to the same text.
func FuzzEncode(f *testing.F) {
	for _, text := range readGolden().Texts {
		f.Add(text)
	}
	f.Add("\xff\xfe a\xe2\x82")
	f.Fuzz(func(t *testing.T, text string) {
		for name, tok := range fuzzed() {
			e, err := tok.Encode(text, Options{NoTruncation: true})
			if utf8.ValidString(text) != (err == nil) {
				t.Fatalf("%s: %v", name, err)
			}
			if err != nil {
				continue
			}
			if err := checkOffsets(e, text); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			tok.Decode(e.IDs)
		}
		if !utf8.ValidString(text) {
			return
		}
		for _, name := range []string{"smollm", "llama3", "gpt2"} {
			tok := fuzzed()[name]
			e, err := tok.Encode(text, Options{NoSpecial: true})
			if err != nil {
				t.Fatal(err)
			}
			if got := tok.DecodeSpecial(e.IDs); got != text && !bytes.Contains([]byte(text), []byte("<mask>")) { // <mask> removes spaces
				t.Fatalf("%s: %q comes back as %q", name, text, got)
			}
		}
	})
}

// No file causes a panic, neither when loading it nor later.
func FuzzRead(f *testing.F) {
	g := readGolden()
	for i := range g.Cases {
		parts := g.Cases[i]
		data := g.file(f, &parts)
		if len(data) < 8000 {
			f.Add(data, "Hello, wörld 123")
		}
	}
	for _, field := range []string{"model", "normalizer", "decoder"} {
		f.Add([]byte(refusedFile(field, `{"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"], "unk_token": "a"}`)), "abc")
	}
	f.Add([]byte(refusedFile("model", `{"type": "Unigram", "vocab": [["a", -1], ["ab", -1.5]], "unk_id": 0}`)), "abc")
	f.Add([]byte(refusedFile("model", `{"type": "WordPiece", "vocab": {"a": 0, "##b": 1}, "unk_token": "a", "continuing_subword_prefix": "##", "max_input_chars_per_word": 9}`)), "ab c")
	f.Fuzz(func(t *testing.T, file []byte, text string) {
		tok, err := Read(bytes.NewReader(file))
		if err != nil {
			return
		}
		if tok.padding != nil && (tok.padding.fixed > 1<<16 || tok.padding.Multiple > 1<<16) {
			return // allowed, but slow
		}
		checkEncodings(t, tok, text, "b", Options{})
	})
}

// checkEncodings encodes and decodes a text and a pair of texts, if the tokenizer supports them.
func checkEncodings(t *testing.T, tok *Tokenizer, text, second string, o Options) {
	if e, err := tok.Encode(text, o); err == nil {
		if err := checkOffsets(e, text); err != nil {
			t.Fatal(err)
		}
		tok.Decode(e.IDs)
	}
	if e, err := tok.EncodePair(text, second, o); err == nil {
		if err := checkOffsets(e, text, second); err != nil {
			t.Fatal(err)
		}
		tok.DecodeSpecial(e.IDs)
	}
}

// choices are the bytes that determine a random tokenizer.
type choices []byte

// below returns the next number below n; 0 if no bytes are left.
func (c *choices) below(n int) int {
	if len(*c) == 0 {
		return 0
	}
	first := (*c)[0]
	*c = (*c)[1:]
	return int(first) % n
}

func (c *choices) yes() bool { return c.below(2) == 1 }

func choose[T any](c *choices, of ...T) T { return of[c.below(len(of))] }

// randomFile returns a tokenizer.json with components of the golden tokenizers and a random model: a
// vocabulary of short texts and their bytes, and random settings.
func randomFile(c *choices) ([]byte, error) {
	alphabet := []string{"a", "b", "é", "語", " ", "▁", "Ġ", "#", "@", "\u0301", "🙂", "ǆ"}
	prefix, suffix := choose(c, "", "##", "@@", "é"), choose(c, "", "</w>", "é")
	ids, scores := map[string]int{}, [][2]any{}
	add := func(token string) {
		if _, ok := ids[token]; !ok {
			ids[token] = len(ids)
			scores = append(scores, [2]any{token, -float64(c.below(64)) / 8})
		}
	}
	add("<unk>")
	for range c.below(30) {
		token := choose(c, "", prefix)
		for range 1 + c.below(3) {
			token += choose(c, alphabet...)
		}
		add(token + choose(c, "", suffix))
	}
	tokens := sorted(ids)
	for b, step := 0, choose(c, 1, 7, 256); b < 256; b += step {
		add(fmt.Sprintf("<0x%02X>", b))
	}
	var merges [][2]string
	for _, left := range tokens {
		for _, right := range tokens {
			inner, ok := strings.CutPrefix(right, prefix)
			if _, whole := ids[left+inner]; ok && whole {
				merges = append(merges, [2]string{left, right})
			}
		}
	}
	model := choose(c,
		map[string]any{"type": "BPE", "vocab": ids, "merges": merges,
			"continuing_subword_prefix": prefix, "end_of_word_suffix": suffix,
			"byte_fallback": !c.yes(), "fuse_unk": c.yes(), "ignore_merges": c.yes(), "unk_token": choose[any](c, nil, "<unk>")},
		map[string]any{"type": "Unigram", "vocab": scores, "unk_id": 0, "byte_fallback": c.yes()},
		map[string]any{"type": "WordPiece", "vocab": ids, "unk_token": "<unk>",
			"continuing_subword_prefix": prefix, "max_input_chars_per_word": 9},
		map[string]any{"type": "WordLevel", "vocab": ids, "unk_token": "<unk>"},
	)
	file := map[string]any{"version": "1.0", "model": model}
	g := readGolden()
	for _, part := range []string{"normalizer", "pre_tokenizer", "post_processor", "decoder"} {
		if c.yes() {
			file[part] = g.Cases[c.below(len(g.Cases))].Tokenizer[part]
		}
	}
	if c.yes() {
		file["added_tokens"] = []addedToken{{ID: len(ids), Content: choose(c, "[x]", "ab", "é "),
			SingleWord: c.yes(), LStrip: c.yes(), RStrip: c.yes(), Normalized: c.yes(), Special: c.yes()}}
	}
	return json.Marshal(file)
}

// The offsets of every tokenizer are within the text, and tokens do not depend on what follows them.
func FuzzOffsets(f *testing.F) {
	rng, texts := rand.New(rand.NewPCG(1, 2)), readGolden().Texts
	seeds := 500 // CI fuzzes, and tries more
	if testing.Short() {
		seeds = 100
	}
	for range seeds {
		c := make([]byte, rng.IntN(150))
		for i := range c {
			c[i] = byte(rng.Uint32())
		}
		f.Add(c, texts[rng.IntN(len(texts))], texts[rng.IntN(len(texts))])
	}
	f.Fuzz(func(t *testing.T, bytesOfChoices []byte, text, second string) {
		c := choices(bytesOfChoices)
		o := Options{MaxLength: c.below(12), Stride: c.below(3), Overflow: c.yes(),
			SpecialAsText: c.yes(), NoSpecial: c.yes(),
			Literal: []Span{{c.below(8), c.below(20)}, {c.below(30), c.below(40)}}[c.below(3):]}
		file, err := randomFile(&c)
		if err != nil {
			t.Fatal(err)
		}
		tok, err := Read(bytes.NewReader(file))
		if err != nil {
			return // such as merges of a token without the prefix
		}
		checkEncodings(t, tok, text, second, o)
		if err := checkBeginnings(tok, text[:min(len(text), 300)], nil); err != nil {
			t.Fatal(err)
		}
	})
}
