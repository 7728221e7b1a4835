package tokenizer

import (
	"bytes"
	"sync"
	"testing"
	"unicode/utf8"
)

// fuzzed are tokenizers that have all parts between them.
var fuzzed = sync.OnceValue(func() map[string]*Tokenizer {
	g := readGolden()
	all := map[string]*Tokenizer{}
	for i := range g.Cases {
		all[g.Cases[i].Name] = g.load(new(testing.T), g.Cases[i].Name)
	}
	return all
})

// Any text has tokens whose offsets lie in it, and byte-level tokenizers give it back.
func FuzzEncode(f *testing.F) {
	for _, text := range readGolden().Texts {
		f.Add(text)
	}
	f.Add("\xff\xfe a\xe2\x82")
	f.Fuzz(func(t *testing.T, text string) {
		for name, tok := range fuzzed() {
			e, err := tok.Encode(text, Options{NoTruncation: true})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for i, at := range e.Offsets {
				if at.Start < 0 || at.Start > at.End || at.End > len(text) {
					t.Fatalf("%s: token %d is at %v of %d bytes", name, i, at, len(text))
				}
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
			if got := tok.DecodeSpecial(e.IDs); got != text && !bytes.Contains([]byte(text), []byte("<mask>")) { // which takes spaces
				t.Fatalf("%s: %q comes back as %q", name, text, got)
			}
		}
	})
}

// No file makes the program fail, at loading or later.
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
		if tok.padding != nil && (tok.padding.fixed > 1<<16 || tok.padding.Multiple != nil && *tok.padding.Multiple > 1<<16) {
			return // allowed, and slow
		}
		e, err := tok.Encode(text, Options{})
		if err == nil {
			tok.Decode(e.IDs)
		}
		if e, err = tok.EncodePair(text, "b", Options{}); err == nil {
			tok.DecodeSpecial(e.IDs)
		}
	})
}
