package probe

import (
	"slices"
	"strings"
	"testing"

	"github.com/attn-go/attn/tokenizer"
)

// byteLevel is a tokenizer.json whose letters are bytes: é is Ã and ©.
const byteLevel = `{"version": "1.0", "added_tokens": [{"id": 0, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}],
 "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
 "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
 "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
  "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}], "special_tokens": {"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}}},
 "model": {"type": "BPE", "vocab": {"<s>": 0, "Ġ": 1, "Ċ": 2, "Ã": 3, "©": 4, "a": 5, "Ã©": 6, "ĠÃ©": 7, "ð": 8, "Ł": 9, "ĺ": 10, "Ģ": 11, "Ċa": 12},
  "merges": ["Ã ©", "Ġ Ã©", "Ċ a"]}}`

func TestLabels(t *testing.T) {
	tok, err := tokenizer.Read(strings.NewReader(byteLevel))
	if err != nil {
		t.Fatal(err)
	}
	e, err := tok.Encode("aé é\na😀", tokenizer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// Bytes that are not valid UTF-8 by themselves are unchanged.
	want := []string{"<s>", "a", "é", "Ġé", "Ċ", "a", "ð", "Ł", "ĺ", "Ģ"}
	if got := labels(tok, e); !slices.Equal(got, want) {
		t.Errorf("labels %q, want %q", got, want)
	}
}

// An unknown token keeps its face, with a sign; so do those of a second text.
func TestLabelsOfUnknownTokens(t *testing.T) {
	tok, err := tokenizer.Read(strings.NewReader(`{"version": "1.0", "added_tokens": [], "pre_tokenizer": {"type": "Whitespace"},
		"model": {"type": "WordLevel", "unk_token": "<unk>", "vocab": {"<unk>": 0, "a": 1, "b": 2}}}`))
	if err != nil {
		t.Fatal(err)
	}
	e, err := tok.EncodePair("a 漢 ж", "é b", tokenizer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for want, texts := range map[string][]string{"a ⁇漢 ⁇ж ⁇é b": {"a 漢 ж", "é b"}, "a <unk> <unk> <unk> b": nil} {
		if got := strings.Join(labels(tok, e, texts...), " "); got != want {
			t.Errorf("labels %q, want %q", got, want)
		}
	}
}
