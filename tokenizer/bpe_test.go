package tokenizer

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The byte tokens of an unknown character have its offsets, and so have the bytes of BPE's prefix and
// suffix around it. They do not shift the offsets of later tokens.
func TestOffsetsOfBytes(t *testing.T) {
	vocab := []string{`"a": 0`, `"@@ ": 1`, `"<0x62><0x40>": 2`, `"<0x62><0x40><0x40>": 3`}
	for b := range 256 {
		vocab = append(vocab, fmt.Sprintf(`"<0x%02X>": %d`, b, 4+b))
	}
	for _, c := range []struct {
		settings, text string
		want           []Span
	}{
		{`"continuing_subword_prefix": "@@", "merges": []`, "ab ", []Span{{0, 1}, {1, 2}, {1, 2}, {1, 2}, {2, 3}}},
		{`"continuing_subword_prefix": "@@", "merges": []`, "é", []Span{{0, 2}, {0, 2}}},
		{`"continuing_subword_prefix": "@@", "merges": []`, "aé ", []Span{{0, 1}, {1, 3}, {1, 3}, {1, 3}, {1, 3}, {3, 4}}},
		{`"end_of_word_suffix": "@", "merges": []`, "ab", []Span{{0, 1}, {1, 2}, {1, 2}}},
		{`"end_of_word_suffix": "@", "merges": []`, "aé", []Span{{0, 1}, {1, 3}, {1, 3}, {1, 3}}},
		{`"end_of_word_suffix": "@@", "merges": ["<0x62> <0x40>", "<0x62><0x40> <0x40>"]`, "ab", []Span{{0, 1}, {1, 2}}},
		{`"continuing_subword_prefix": "@@", "end_of_word_suffix": "é", "merges": []`, "a語",
			[]Span{{0, 1}, {1, 4}, {1, 4}, {1, 4}, {1, 4}, {1, 4}, {1, 4}, {1, 4}}},
	} {
		model := `{"type": "BPE", "byte_fallback": true, "vocab": {` + strings.Join(vocab, ", ") + `}, ` + c.settings + `}`
		tok, err := Read(strings.NewReader(refusedFile("model", model)))
		if err != nil {
			t.Fatal(err)
		}
		e, err := tok.Encode(c.text, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(e.Offsets, c.want) {
			t.Errorf("%s: %q has tokens %q at %v, want %v", c.settings, c.text, e.Tokens, e.Offsets, c.want)
		}
	}
}
